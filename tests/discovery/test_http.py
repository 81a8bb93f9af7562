"""Lists over HTTP, from servers that tell the truth and others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from exporter.discovery.base import DiscoveryError, Found
from exporter.discovery.http import HttpList
from exporter.discovery.ray import RayServe
from exporter.fetching.http import HttpClient
from exporter.settings.discovery import HttpDiscovery, RayDiscovery
from tests.support.servers import http_server, text_handler

LIST = '[{"targets": ["10.0.0.5:8000"], "labels": {"__meta_x": "y", "pod": "p-0"}}]'
CAPTURE = Path(__file__).parents[1] / "captures/twinkle/0.5.1"


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(100_000) as client:
        yield client


async def test_a_list_is_sent_again_only_when_it_changed(http: HttpClient, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hush")
    asked: list[tuple[str | None, str | None]] = []
    tag, body = '"1"', LIST

    async def handle(request: web.Request) -> web.Response:
        known = request.headers.get("If-None-Match")
        asked.append((known, request.headers.get("Authorization")))
        if known == tag:
            return web.Response(status=304)
        return web.Response(text=body, headers={"ETag": tag})

    async with http_server({"/targets": handle}) as url:
        settings = HttpDiscovery(url=f"{url}/targets", auth={"bearer_token_file": str(token)})
        found = HttpList(settings, http)
        first = await found.find()
        assert first == (Found("http://10.0.0.5:8000", pod="p-0"),)
        assert await found.find() == first
        tag, body = '"2"', "[]"
        assert await found.find() == ()
    assert asked == [(None, "Bearer hush"), ('"1"', "Bearer hush"), ('"1"', "Bearer hush")]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (LIST, 500, "GET /targets: HTTP 500"),
        (LIST, 304, "GET /targets: HTTP 304, redirects are not followed"),
        (LIST, 401, "GET /targets: HTTP 401, credentials are missing or wrong"),
        (LIST[:20], 200, "the answer is no JSON"),
        ("<html>", 200, "the answer is no JSON"),
        ('{"targets": []}', 200, "wanted a list of {targets, labels}"),
        ('[{"targets": [["x"]]}]', 200, "entry 0: wanted targets such as 10.0.0.5:8000"),
        ("[" * 50_000, 200, "the answer is no JSON"),
        (" " * 200_000, 200, "GET /targets: the body is over poll.max_body (100000 bytes)"),
    ],
)
async def test_servers_that_lie(http: HttpClient, body: str, status: int, told: str) -> None:
    async with http_server({"/targets": text_handler(body, status)}) as url:
        found = HttpList(HttpDiscovery(url=f"{url}/targets"), http)
        with pytest.raises(DiscoveryError) as caught:
            await found.find()
    assert str(caught.value) == told


async def test_nobody_answers(http: HttpClient) -> None:
    async with http_server({}) as url:
        gone = url
    with pytest.raises(DiscoveryError, match="Connection refused"):
        await HttpList(HttpDiscovery(url=gone), http).find()


def dashboard(*replicas: str) -> str:
    return (
        '{"applications": {"llm": {"deployments": {"d": {"replicas": ['
        + ", ".join(replicas)
        + ']}}}, "other": {"deployments": {"d": {"replicas": ['
        + '{"state": "RUNNING", "node_ip": "10.0.0.9", "node_id": "n9"}]}}}}}'
    )


async def test_ray_serve_is_found_by_the_nodes_of_its_replicas(http: HttpClient) -> None:
    body = dashboard(
        '{"state": "RUNNING", "node_ip": "10.0.0.5", "node_id": "n5"}',
        '{"state": "RUNNING", "node_ip": "10.0.0.5", "node_id": "n5"}',
        '{"state": "STARTING", "node_ip": "10.0.0.6", "node_id": "n6"}',
        '{"state": "RUNNING", "node_ip": "fd00::7"}',
        '{"state": "RUNNING", "node_ip": null}',
        '"no replica"',
    )
    async with http_server({"/api/serve/applications/": text_handler(body)}) as url:
        every = RayServe(RayDiscovery(dashboard=url, port=8080), http)
        assert await every.find() == (
            Found("http://10.0.0.5:8080", node="n5"),
            Found("http://[fd00::7]:8080"),
            Found("http://10.0.0.9:8080", node="n9"),
        )
        one = RayServe(RayDiscovery(dashboard=url, port=8080, application="other"), http)
        assert await one.find() == (Found("http://10.0.0.9:8080", node="n9"),)


async def test_a_recorded_dashboard(http: HttpClient) -> None:
    recorded = next(CAPTURE.rglob("ray-1x2-dashboard-serve-applications.http"))
    body = (
        recorded.read_bytes().partition(b"\r\n\r\n")[2]
        or recorded.read_bytes().partition(b"\n\n")[2]
    )
    async with http_server({"/api/serve/applications/": text_handler(body)}) as url:
        found = await RayServe(RayDiscovery(dashboard=url, port=8080), http).find()
    assert [one.url for one in found] == ["http://127.0.0.1:8080"]


@pytest.mark.parametrize("body", ["[]", '{"applications": 5}', "x"])
async def test_a_dashboard_that_is_none(http: HttpClient, body: str) -> None:
    async with http_server({"/api/serve/applications/": text_handler(body)}) as url:
        with pytest.raises(DiscoveryError, match="no list of applications"):
            await RayServe(RayDiscovery(dashboard=url, port=8080), http).find()

"""One poll: detection, filters with fallback, and answers that are kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from exporter.discovery.targets import make_target
from exporter.engines import ENGINES
from exporter.engines.base import Answers
from exporter.fetching.ask import LARGE_BYTES, Asked, Asker, Memory
from exporter.fetching.http import HttpClient
from exporter.fleet import Reading, Reason, Source, Target
from exporter.settings import Slots, State, TargetGroup
from tests.support import servers
from tests.support.servers import (
    Handler,
    http_server,
    raw_server,
    text_handler,
    vllm_routes,
    vllm_text,
)

CAPACITY = '{"max_loras":5,"used_loras":2,"free_loras":3}'


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(1_000_000) as client:
        yield client


async def ask(
    http: HttpClient, group: TargetGroup, url: str, memory: Memory | None = None, seconds: float = 5
) -> Asked:
    asker = Asker(http, group, 30.0)
    try:
        return await asker.ask(make_target(group, url), memory or Memory(), seconds)
    finally:
        await asker.close()


def paths(asked: Asked) -> list[str]:
    return ["/" + x.request.url.split("/", 3)[3].partition("?")[0] for x in asked.exchanges]


AUTO = TargetGroup(name="g")
VLLM = TargetGroup(name="g", engine="vllm")


async def test_vllm_is_detected_and_then_asked_by_name_only(http: HttpClient) -> None:
    memory = Memory()
    async with http_server(vllm_routes()) as url:
        first = await ask(http, AUTO, url, memory)
        second = await ask(http, AUTO, url, memory)
    assert first.engine == "vllm"
    assert first.reading.up
    assert paths(second) == ["/metrics/"]
    assert second.reading == first.reading


async def test_vllm_without_statistics_is_detected_by_its_models(http: HttpClient) -> None:
    async with http_server(vllm_routes("# no statistics\n")) as url:
        asked = await ask(http, AUTO, url)
    assert (asked.engine, asked.reading.reason) == ("vllm", Reason.NO_STATS)


async def test_a_gateway_is_detected_with_and_without_prefix(http: HttpClient) -> None:
    async with http_server({"/api/v1/twinkle/capacity_info": text_handler(CAPACITY)}) as url:
        for address in (url, f"{url}/api/v1"):
            asked = await ask(http, AUTO, address)
            assert asked.engine == "twinkle"
            assert asked.reading.table is not None
            assert asked.reading.table.replicas[0].max == 5


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (servers.never_answers, Reason.TIMEOUT),
        (servers.dies_in_mid_body, Reason.CONNECT),
        (servers.endless_body, Reason.TOO_LARGE),
    ],
)
async def test_detection_tells_why_nothing_answered(
    http: HttpClient, serve: servers.Raw, reason: Reason
) -> None:
    async with raw_server(serve) as url:
        asked = await ask(http, AUTO, url, seconds=0.5 if reason is Reason.TIMEOUT else 20)
    assert (asked.engine, asked.reading.reason) == (None, reason)


async def test_another_server_is_unsupported(http: HttpClient) -> None:
    async with http_server({"/metrics": text_handler("node_load1 0.5\n")}) as url:
        asked = await ask(http, AUTO, url)
    assert asked.reading.reason is Reason.UNSUPPORTED
    assert "vllm, twinkle" in asked.reading.detail


@pytest.mark.parametrize("status", [200, 404])
async def test_a_filter_that_finds_nothing_falls_back_to_the_whole(
    http: HttpClient, status: int
) -> None:
    memory = Memory()
    routes = {**vllm_routes(), "/metrics/": text_handler("", status)}
    async with http_server(routes) as url:
        first = await ask(http, VLLM, url, memory)
        second = await ask(http, VLLM, url, memory)
    assert first.reading.up
    assert paths(first)[:1] == ["/metrics/"]
    assert "/metrics" in paths(first)
    # For a while the whole is asked at once.
    assert paths(second) == ["/metrics"]


async def test_a_key_on_the_models_degrades_and_is_not_asked_each_time(http: HttpClient) -> None:
    memory = Memory()
    routes = {**vllm_routes(), "/v1/models": text_handler("", 401)}
    async with http_server(routes) as url:
        asked = await ask(http, VLLM, url, memory)
        again = await ask(http, VLLM, url, memory)
    assert asked.reading.table is not None
    replica = asked.reading.table.replicas[0]
    assert (replica.max, replica.used, replica.registered) == (4, 1, None)
    assert paths(again) == ["/metrics/"]


async def test_a_slow_list_of_models_does_not_cost_the_slots(http: HttpClient) -> None:
    released = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        del request
        await released.wait()
        return web.Response()

    async with http_server({**vllm_routes(), "/v1/models": slow}) as url:
        asked = await ask(http, VLLM, url, seconds=0.5)
        released.set()
    assert asked.reading.up
    assert asked.reading.table is not None
    assert asked.reading.table.replicas[0].registered is None


async def test_the_operators_max_serves_before_the_first_request(http: HttpClient) -> None:
    text = (
        "# TYPE vllm:lora_requests_info gauge\n"
        'vllm:num_requests_running{engine="0",model_name="base"} 0.0\n'
    )
    group = TargetGroup(name="g", engine="vllm", slots=Slots(max=8))
    async with http_server(vllm_routes(text)) as url:
        asked = await ask(http, group, url)
    assert asked.reading.table is not None
    replica = asked.reading.table.replicas[0]
    assert (replica.max, replica.used, replica.source) == (8, 0, Source.OPERATOR)


async def test_rays_last_answer_is_kept_while_its_dashboard_is_away(
    http: HttpClient, tmp_path: Path
) -> None:
    state = tmp_path / "state.json"
    state.write_text('{"replica::dead::max_loras": {"value": 5, "expire_at": null}}')
    statuses = [200, 503, 503]
    applications = (
        '{"applications":{"m":{"route_prefix":"/api/v1/model/m","deployments":{"d":{"replicas":'
        '[{"replica_id":"live","state":"RUNNING"}]}}}}}'
    )

    async def dashboard(request: web.Request) -> web.Response:
        del request
        return web.Response(text=applications, status=statuses.pop(0))

    routes: dict[str, Handler] = {
        "/api/v1/twinkle/healthz": text_handler('{"status":"ok"}'),
        "/api/serve/applications/": dashboard,
    }
    async with http_server(routes) as url:
        group = TargetGroup(
            name="g", engine="twinkle", state=State(url=f"file://{state}"), ray_dashboard=url
        )
        memory = Memory()
        first = await ask(http, group, url, memory)
        kept = await ask(http, group, url, memory)
        fresh = await ask(http, group, url, Memory())
    assert first.reading.table is not None
    assert first.reading.table.ghosts == 1
    assert kept.reading == first.reading
    assert fresh.reading.table is not None
    assert (fresh.reading.table.ghosts, fresh.reading.table.replicas[0].source) == (
        None,
        Source.STATE,
    )


async def test_a_failed_poll_forgets_what_may_have_changed(http: HttpClient) -> None:
    memory = Memory()
    async with http_server(vllm_routes()) as url:
        assert (await ask(http, AUTO, url, memory)).engine == "vllm"
    asked = await ask(http, AUTO, url, memory)
    assert asked.reading.reason is Reason.CONNECT
    assert memory.engine is None
    assert memory.answers == {}


async def test_large_answers_are_read_off_the_loop(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    vllm = ENGINES["vllm"]

    def read(target: Target, answers: Answers, now: float) -> Reading:
        seen.append(threading.current_thread().name.partition("_")[0])
        return vllm.read(target, answers, now)

    monkeypatch.setattr("exporter.fetching.ask.ENGINES", {"vllm": replace(vllm, read=read)})
    many = ",".join(f"adapter-{n:09}" for n in range(LARGE_BYTES // 18))
    for running in ("a", many):
        async with http_server(vllm_routes(vllm_text(running))) as url:
            assert (await ask(http, VLLM, url)).reading.up
    assert seen == ["MainThread", "reading"]

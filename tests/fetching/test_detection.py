"""`auto`: which engine an address speaks, when that is asked again, and that it does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from exporter.discovery.targets import make_target
from exporter.engines import ENGINES, LAST_TURN
from exporter.fetching.ask import DETECTION_SHARES, Asked, Asker, Memory
from exporter.fetching.http import HttpClient
from exporter.fleet import CustomMap, Reason, SlotKind, Target
from exporter.settings import TargetGroup
from tests.support.engine_servers import SERVERS, Changing
from tests.support.servers import http_server

AUTO = TargetGroup(name="g")
OWNERS = b'{"data": [{"id": "m", "owned_by": "%s"}]}'
READ_ONLY = {
    "/-/routes",
    "/api/v1/get_server_capabilities",
    "/api/v1/twinkle/capacity_info",
    "/api/v1/twinkle/get_server_capabilities",
    "/get_server_info",
    "/info",
    "/lora-adapters",
    "/metrics",
    "/metrics/",
    "/prometheus/metrics",
    "/props",
    "/server_info",
    "/slots",
    "/stats",
    "/v1/loads",
    "/v1/loras",
    "/v1/metrics",
    "/v1/models",
    "/version",
}
"""Pages of which somebody looked up that reading them changes nothing."""


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(1_000_000) as client:
        yield client


async def ask(http: HttpClient, url: str, memory: Memory, seconds: float = 5.0) -> Asked:
    asker = Asker(http, AUTO, 30.0)
    try:
        return await asker.ask(make_target(AUTO, url), memory, seconds)
    finally:
        await asker.close()


@pytest.mark.parametrize("name", SERVERS)
async def test_the_engine_is_found_out(http: HttpClient, name: str) -> None:
    engine, pages = SERVERS[name]
    server = Changing(pages)
    async with http_server(server.routes) as url:
        asked = await ask(http, url, Memory())
    assert asked.engine == engine
    assert {method for method, _ in server.asked} == {"GET"}


@pytest.mark.parametrize("name", SERVERS)
async def test_a_port_that_another_engine_took_is_read_as_that_one(
    http: HttpClient, name: str
) -> None:
    for other, (engine, pages) in SERVERS.items():
        server = Changing(SERVERS[name][1])
        memory = Memory()
        async with http_server(server.routes) as url:
            assert (await ask(http, url, memory)).engine == SERVERS[name][0]
            server.pages = pages
            # The first poll finds that the engine has gone, the second the one that came.
            await ask(http, url, memory)
            found = await ask(http, url, memory)
        if found.engine != engine:
            # An engine that is passed through is still there, and read as what it is.
            assert (SERVERS[name][0], engine) == ("vllm", "dynamo"), other
            assert found.reading.table is not None
            assert "vllm:" in pages["/metrics"].decode()


async def test_the_engine_is_kept_while_it_answers(http: HttpClient) -> None:
    server = Changing(SERVERS["sglang"][1])
    memory = Memory()
    async with http_server(server.routes) as url:
        await ask(http, url, memory)
        server.asked.clear()
        assert (await ask(http, url, memory)).engine == "sglang"
    assert sorted(path for _, path in server.asked) == ["/metrics", "/v1/loads"]


async def test_what_another_engine_answered_is_forgotten(http: HttpClient) -> None:
    server = Changing(SERVERS["sglang"][1])
    memory = Memory()
    async with http_server(server.routes) as url:
        assert (await ask(http, url, memory)).engine == "sglang"
        assert "info" in memory.answers
        server.pages = SERVERS["lorax"][1]
        await ask(http, url, memory)
        found = await ask(http, url, memory)
    assert found.engine == "lorax"
    # Both engines keep an answer under this key.
    assert found.reading.table is not None
    assert found.reading.table.replicas[0].version == "0.12.1"


async def test_each_page_is_asked_once(http: HttpClient) -> None:
    server = Changing({})
    async with http_server(server.routes) as url:
        asked = await ask(http, url, Memory())
    assert asked.reading.reason is Reason.UNSUPPORTED
    paths = [path for _, path in server.asked]
    assert len(paths) == len(set(paths))
    assert "/metrics" in paths


async def test_few_pages_of_one_target_are_asked_at_once(http: HttpClient) -> None:
    open_now, most = 0, 0
    three = asyncio.Event()

    async def count(request: web.Request) -> web.Response:
        nonlocal open_now, most
        del request
        open_now += 1
        most = max(most, open_now)
        if open_now == 3:
            # Time for further ones to come, if they are sent.
            asyncio.get_running_loop().call_later(0.1, three.set)
        await three.wait()
        open_now -= 1
        return web.Response(status=404)

    async with http_server({"/{path:.*}": count}) as url:
        await ask(http, url, Memory())
    assert most == 3


def test_each_turn_has_its_share_of_the_time() -> None:
    assert len(DETECTION_SHARES) == LAST_TURN + 1
    assert sorted(DETECTION_SHARES) == list(DETECTION_SHARES)
    assert DETECTION_SHARES[-1] < 1
    for engine in ENGINES.values():
        target = Target("http://h:1", "g")
        assert all(0 <= request.turn <= LAST_TURN for request in engine.detection(target))


async def test_an_address_that_is_silent_is_not_asked_for_more(http: HttpClient) -> None:
    asked = []
    released = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        asked.append(request.path)
        await released.wait()
        return web.Response()

    async with http_server({"/{path:.*}": silent}) as url:
        found = await ask(http, url, Memory(), seconds=0.4)
        released.set()
    assert found.reading.reason is Reason.TIMEOUT
    assert sorted(asked) == ["/api/v1/twinkle/capacity_info", "/v1/metrics", "/v1/models"]


async def test_a_large_exposition_is_not_asked_for_where_the_models_tell(http: HttpClient) -> None:
    server = Changing(SERVERS["vllm"][1])
    async with http_server(server.routes) as url:
        asked = await ask(http, url, Memory())
    assert asked.engine == "vllm"
    assert "/metrics" not in [path for _, path in server.asked]


async def test_detection_never_empties_tensorrtllms_statistics(http: HttpClient) -> None:
    for name in ("tensorrtllm", "tensorrtllm, no series"):
        server = Changing({**SERVERS[name][1], "/metrics": b"[]"})
        memory = Memory()
        async with http_server(server.routes) as url:
            for _ in range(3):
                assert (await ask(http, url, memory)).engine == "tensorrtllm"
        assert "/metrics" not in [path for _, path in server.asked]


async def test_a_twinkle_server_that_speaks_tinkers_api_too_is_twinkle(http: HttpClient) -> None:
    pages = {**SERVERS["tinker"][1], **SERVERS["twinkle"][1]}
    async with http_server(Changing(pages).routes) as url:
        assert (await ask(http, url, Memory())).engine == "twinkle"


@pytest.mark.parametrize("owner", [b"lmdeploy", b"openai", b"library"])
async def test_a_list_of_models_alone_makes_no_engine(http: HttpClient, owner: bytes) -> None:
    async with http_server(Changing({"/v1/models": OWNERS % owner}).routes) as url:
        asked = await ask(http, url, Memory())
    assert (asked.engine, asked.reading.reason) == (None, Reason.UNSUPPORTED)


async def test_a_page_for_every_path_makes_no_engine(http: HttpClient) -> None:
    async def page(request: web.Request) -> web.Response:
        del request
        return web.Response(text="<!doctype html><p>vllm: sglang: lorax_ ray_serve_</p>\n")

    async with http_server({"/{path:.*}": page}) as url:
        asked = await ask(http, url, Memory())
    assert (asked.engine, asked.reading.reason) == (None, Reason.UNSUPPORTED)


async def test_a_page_that_hangs_leaves_time_to_find_out_and_to_read(http: HttpClient) -> None:
    released = asyncio.Event()
    server = Changing(SERVERS["lorax"][1])

    async def hang(request: web.Request) -> web.Response:
        del request
        await released.wait()
        return web.Response()

    async with http_server({"/v1/loras": hang, **server.routes}) as url:
        asked = await ask(http, url, Memory(), seconds=1.0)
        released.set()
    assert (asked.engine, asked.reading.up) == ("lorax", True)


def targets() -> list[Target]:
    custom = CustomMap("/stats", "json", SlotKind.EVICTABLE, (("max", "m"),))
    return [Target("http://h:1", "g", name, custom=custom) for name in ENGINES]


@pytest.mark.parametrize("target", targets(), ids=lambda target: str(target.engine))
def test_only_pages_that_change_nothing_are_asked(target: Target) -> None:
    engine = ENGINES[target.engine]
    asked = [*engine.requests(target), *engine.detection(target)]
    asked += [request.fallback for request in asked if request.fallback is not None]
    assert {urlsplit(request.url).path for request in asked} <= READ_ONLY

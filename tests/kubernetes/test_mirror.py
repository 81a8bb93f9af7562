"""The copy of a cluster's objects, by the real client against a fake API server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sys
from collections.abc import Callable

import pytest
from aiohttp import web

from exporter.kubernetes.mirror import Pace
from tests.kubernetes.copies import Make, Told, lists, node_of, true, watches
from tests.kubernetes.fake import FakeApi, failure
from tests.kubernetes.objects import pod
from tests.support.programs import until


async def test_it_lists_in_pages_and_then_follows(api: FakeApi, make: Make) -> None:
    for number in range(8):
        api.put("pods", pod(f"p{number}", node="a"))
    mirror = make()
    await mirror.tried()
    assert mirror.listed
    assert mirror.items == {f"prod/p{number}": "a" for number in range(8)}
    assert [query.get("limit") for query in lists(api)] == ["3", "3", "3"]
    assert ["continue" in query for query in lists(api)] == [False, True, True]
    assert not any("resourceVersion" in query for query in lists(api))
    api.put("pods", pod("new", node=None))
    api.put("pods", pod("p0", node="b"))
    api.delete("pods", "p1", "prod")
    await true(lambda: "prod/p1" not in mirror.items)
    assert mirror.items["prod/p0"] == "b"
    assert "prod/new" not in mirror.items
    api.put("pods", pod("new", node="c"))
    await true(lambda: mirror.items.get("prod/new") == "c")
    assert watches(api)[0]["allowWatchBookmarks"].lower() == "true"
    assert len(lists(api)) == 3


async def test_a_page_whose_token_is_too_old_makes_it_list_anew(api: FakeApi, make: Make) -> None:
    for number in range(5):
        api.put("pods", pod(f"p{number}", node="a"))

    async def compacted(request: web.Request) -> web.StreamResponse:
        del request
        return failure(410, "Expired")

    async def first(request: web.Request) -> web.StreamResponse:
        api.answers["list"].insert(0, compacted)
        return await api.handle(request)

    # `first` is popped by handle, which then finds `compacted`: the token's page is refused
    api.answers["list"] = [first]
    mirror = make()
    await true(lambda: mirror.listed)
    assert len(mirror.items) == 5


async def test_it_goes_on_from_the_last_bookmark(api: FakeApi, make: Make) -> None:
    mirror = make()
    await true(lambda: api.watching == 1)
    api.bookmark()
    version = str(api.version)
    api.hang_up()
    await true(lambda: len(watches(api)) == 2)
    assert watches(api)[1]["resourceVersion"] == version
    assert len(lists(api)) == 1
    assert mirror.failure is None


@pytest.mark.parametrize("as_event", [True, False])
async def test_it_lists_anew_when_its_version_is_gone(
    api: FakeApi, make: Make, as_event: bool
) -> None:
    api.gone_as_event = as_event
    api.put("pods", pod("stays", node="a"))
    api.put("pods", pod("goes", node="a"))
    told = Told()
    mirror = make(told)
    await true(lambda: api.watching == 1)
    api.delete("pods", "goes", "prod")
    await true(lambda: "prod/goes" not in mirror.items)
    api.hang_up()
    api.version += 1
    api.compact()
    await true(lambda: len(lists(api)) == 2)
    api.put("pods", pod("comes", node="b"))
    await true(lambda: mirror.items == {"prod/stays": "a", "prod/comes": "b"})
    assert told.distinct == []


async def test_a_connection_cut_in_the_middle_of_a_line_loses_and_doubles_nothing(
    api: FakeApi, make: Make
) -> None:
    told = Told()
    mirror = make(told)
    await true(lambda: api.watching == 1)
    api.say(b'{"type":"ADDED","object":{"metadata":{"name":"ha')
    api.put("pods", pod("whole", node="a"))
    await true(lambda: len(api.requests) == 2)
    api.cut()
    await true(lambda: mirror.items == {"prod/whole": "a"})
    assert len(mirror.items) == 1


async def test_a_watch_that_is_silent_begins_anew(api: FakeApi, make: Make) -> None:
    mirror = make(pace=Pace(silence=0.05, first_delay=0.01, longest_delay=0.02, steady=0.04))
    await true(lambda: len(watches(api)) >= 3)
    assert mirror.failure is None
    assert len(lists(api)) == 1


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_goes_wrong_the_copy_is_right_in_the_end(
    api: FakeApi, make: Make, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same each time, no secret

    async def refused(request: web.Request) -> web.StreamResponse:
        del request
        return failure(chance.choice((401, 403, 410, 429, 500, 503)), "Whatever")

    async def halved(request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(body=b'{"metadata":{"resourceVersion":"5"},"items":[{"meta')

    async def resets(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    faults: list[Callable[[], object]] = [
        api.cut,
        api.hang_up,
        api.compact,
        api.bookmark,
        lambda: api.say(b'{"type":"MODIFIED","object":{"metadata":{"name":"x"'),
        lambda: api.say(b"garbage\n"),
        lambda: api.say(b'{"type":"ERROR","object":{"code":500,"message":"?"}}\n'),
        lambda: api.answers["list"].append(chance.choice((refused, halved, resets))),
        lambda: api.answers["watch"].append(chance.choice((refused, halved, resets))),
    ]
    mirror = make()
    await mirror.tried()
    for _ in range(600):
        name = f"p{chance.randrange(30)}"
        if chance.random() < 0.4 and f"prod/{name}" in api.objects["pods"]:
            api.delete("pods", name, "prod")
        else:
            # Some are not bound, so that nothing of them is kept.
            on = chance.choice(("a", "b", None))
            api.put("pods", pod(name, node=on))
        if chance.random() < 0.05:
            api.gone_as_event = chance.random() < 0.5
            chance.choice(faults)()
            asked = len(api.requests)
            chance.choice((api.cut, api.hang_up))()
            await true(lambda asked=asked: len(api.requests) > asked)  # type: ignore[misc]

    async def is_right() -> bool:
        bound = {key: node_of(one) for key, one in api.objects["pods"].items()}
        return mirror.items == {key: on for key, on in bound.items() if on is not None}

    await until(is_right)
    await true(lambda: mirror.failure is None)
    assert await is_right()


async def test_selectors_are_the_servers_business(api: FakeApi, make: Make) -> None:
    api.put("pods", pod("a", node="n", labels={"app": "vllm"}))
    api.put("pods", pod("b", node="n", labels={"app": "other"}))
    api.put("pods", pod("c", node="n", labels={"app": "vllm"}, namespace="dev"))
    mirror = make(namespace="prod", label_selector="app=vllm")
    await mirror.tried()
    assert mirror.items == {"prod/a": "n"}
    api.put("pods", pod("b", node="n", labels={"app": "vllm"}))
    api.put("pods", pod("a", node="n", labels={"app": "no more"}))
    await true(lambda: mirror.items == {"prod/b": "n"})


async def test_ten_thousand_pods_that_come_and_go_leave_nothing(api: FakeApi, make: Make) -> None:
    mirror = make()
    await true(lambda: api.watching == 1)

    async def come_and_go(count: int) -> None:
        for number in range(0, count, 100):
            names = [f"job-{number + n}" for n in range(100)]
            for name in names:
                api.put("pods", pod(name, node="a"))
            for name in names:
                api.delete("pods", name, "prod")
            api.compact()
            await true(lambda: mirror._version == str(api.version))

    await come_and_go(1000)
    gc.collect()
    before = sys.getallocatedblocks()
    await come_and_go(10_000)
    gc.collect()
    assert mirror.items == {}
    assert sys.getallocatedblocks() - before < 2000


async def test_a_big_list_does_not_hold_up_the_loop(api: FakeApi, make: Make) -> None:
    for number in range(5000):
        api.put("pods", pod(f"p{number}", node="a"))
    late = 0.0

    async def watch_the_clock() -> None:
        nonlocal late
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            late = max(late, loop.time() - before - 0.005)

    mirror = make(pace=Pace())
    async with contextlib.AsyncExitStack() as stack:
        task = asyncio.create_task(watch_the_clock())
        stack.callback(task.cancel)
        await mirror.tried()
    assert len(mirror.items) == 5000
    # The fake server writes its pages in the same loop; the import of the client is in a thread.
    assert late < 1.0

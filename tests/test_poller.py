"""The poller against real servers: nobody is delayed, and plans are swapped whole."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web

from exporter.current import CurrentFleet
from exporter.discovery.targets import make_target
from exporter.exposition.fleet import Exposition
from exporter.fetching.http import HttpClient
from exporter.fleet import Reason, Target, TargetStatus
from exporter.poller import SUSPECT_AFTER, Poller, make_plan
from exporter.settings import Poll, Settings, TargetGroup
from tests.support import servers
from tests.support.programs import until
from tests.support.servers import Handler, http_server, raw_server, text_handler, vllm_routes


def static(settings: Settings) -> tuple[Target, ...]:
    return tuple(make_target(group, url) for group in settings.targets for url in group.static)


class Running:
    """A poller at work, and all that it told."""

    def __init__(self, http: HttpClient) -> None:
        self.http = http
        self.fleet = CurrentFleet(Exposition(10), 30.0, "this-host")
        self.told: list[TargetStatus] = []
        self.poller = Poller(self.fleet, self.told.append)

    async def apply(self, settings: Settings) -> None:
        plan = make_plan(self.http, settings.poll, settings.targets)
        await self.poller.apply(replace(plan, targets=static(settings)))

    def of(self, url: str) -> list[TargetStatus]:
        return [status for status in self.told if status.target.url == url]

    async def polled(self, url: str, times: int) -> list[TargetStatus]:
        async def enough() -> bool:
            return len(self.of(url)) >= times

        await until(enough)
        return self.of(url)


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with HttpClient(1_000_000) as http:
        it = Running(http)
        yield it
        await it.poller.stop()


def settings(poll: Poll, *urls: str, **group: str) -> Settings:
    return Settings(poll=poll, targets=(TargetGroup(name="g", static=urls, **group),))


async def test_each_target_is_polled_whatever_the_others_do(running: Running) -> None:
    poll = Poll(interval="300ms", timeout="300ms", stale_after="1s")
    async with contextlib.AsyncExitStack() as stack:
        good = [await stack.enter_async_context(http_server(vllm_routes())) for _ in range(3)]
        bad = [
            await stack.enter_async_context(raw_server(serve))
            for serve in (
                servers.never_answers,
                servers.headers_then_nothing,
                servers.dies_in_mid_body,
                servers.no_http,
            )
        ]
        await running.apply(settings(poll, *good, *bad))
        for url in good:
            assert (await running.polled(url, 4))[-1].up
        reasons = [(await running.polled(url, 1))[-1].reason for url in bad]
    assert reasons[:3] == [Reason.TIMEOUT, Reason.TIMEOUT, Reason.CONNECT]
    assert reasons[3] in (Reason.FORMAT, Reason.UNSUPPORTED)


async def test_the_dead_leave_room_for_the_living(running: Running) -> None:
    """Forty targets that time out, eight places: together they need more than all of them."""
    poll = Poll(interval="500ms", timeout="400ms", stale_after="2s", concurrency=8)
    async with contextlib.AsyncExitStack() as stack:
        dead = [
            await stack.enter_async_context(raw_server(servers.never_answers)) for _ in range(40)
        ]
        good = await stack.enter_async_context(http_server(vllm_routes()))
        await running.apply(settings(poll, *dead))
        for url in dead:
            await running.polled(url, SUSPECT_AFTER)
        await running.apply(settings(poll, *dead, good))
        before = len(running.told)
        ours = len(await running.polled(good, 6))
        others = len(running.told) - before - ours
    # In one queue with the dead, one poll in forty would be of the good one.
    assert others < 10 * ours


async def test_no_more_polls_at_once_than_allowed(running: Running) -> None:
    under_way = most = 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal under_way, most
        del request
        under_way += 1
        most = max(most, under_way)
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.02)
        under_way -= 1
        return web.Response(text="x")

    poll = Poll(interval="200ms", timeout="150ms", stale_after="1s", concurrency=4)
    routes: dict[str, Handler] = {"/api/v1/twinkle/capacity_info": slow}
    async with contextlib.AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(http_server(routes)) for _ in range(12)]
        await running.apply(settings(poll, *urls, engine="twinkle"))
        for url in urls:
            await running.polled(url, 2)
    assert 1 < most <= 4


async def test_plans_are_swapped_and_what_stays_keeps_its_counts(running: Running) -> None:
    poll = Poll(interval="50ms", timeout="50ms", stale_after="1s")
    async with http_server(vllm_routes()) as stays, http_server(vllm_routes()) as goes:
        await running.apply(settings(poll, stays, goes))
        await running.polled(stays, 3)
        await running.polled(goes, 1)
        before = len(running.of(stays))
        async with http_server(vllm_routes()) as comes:
            await running.apply(settings(poll, stays, comes))
            await running.polled(comes, 1)
            await running.polled(stays, before + 1)
            urls = [status.target.url for status in running.fleet.snapshot(time.time()).targets]
            assert urls == sorted([stays, comes])
    polls = running.of(stays)[-1].polls
    assert polls is not None
    assert polls > before
    assert goes.encode() not in b"".join(running.fleet.text(False, time.time()))


async def test_a_target_that_changed_group_settings_starts_anew(running: Running) -> None:
    poll = Poll(interval="50ms", timeout="50ms", stale_after="1s")
    async with http_server(vllm_routes()) as url:
        await running.apply(settings(poll, url))
        await running.polled(url, 2)
        await running.apply(settings(poll, url, model="renamed"))
        count = len(running.told)

        async def more() -> bool:
            return len(running.told) > count

        await until(more)
    status = running.told[-1]
    assert [replica.table.model for replica in status.replicas] == ["renamed"]


async def test_a_mistake_with_one_target_does_not_end_its_polls(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = Poll(interval="50ms", timeout="50ms", stale_after="1s")
    async with http_server({"/metrics": text_handler("x")}) as url:
        plan_settings = settings(poll, url)
        plan = make_plan(running.http, poll, plan_settings.targets)
        asker = plan.askers["g"]
        ask, calls = asker.ask, 0

        async def broken_once(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise RuntimeError("a mistake")
            return await ask(*args, **kwargs)  # type: ignore[arg-type]  # passed through

        monkeypatch.setattr(asker, "ask", broken_once)
        await running.poller.apply(replace(plan, targets=static(plan_settings)))
        first, second = (await running.polled(url, 2))[:2]
        assert (first.up, first.reason, first.polls) == (False, Reason.FORMAT, 1)
        assert first.detail == "a mistake of the exporter's own: RuntimeError"
        assert second.reason is Reason.UNSUPPORTED

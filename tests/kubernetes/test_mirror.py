"""The copy of a cluster's objects, by the real client against a fake API server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from exporter.kubernetes.client import Query
from exporter.kubernetes.mirror import Mirror, Pace
from exporter.settings.access import KubernetesAccess
from tests.kubernetes.fake import TOKEN, FakeApi, failure, kubeconfig, kubernetes, stream
from tests.kubernetes.objects import pod
from tests.support.programs import until

QUICK = Pace(page=3, answer=2.0, silence=1.0, first_delay=0.01, longest_delay=0.05, steady=0.2)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with kubernetes() as running:
        yield running


@dataclass
class Told:
    """What a copy told."""

    failures: list[str | None] = field(default_factory=list)

    @property
    def distinct(self) -> list[str]:
        return list(dict.fromkeys(text for text in self.failures if text is not None))


Make = Callable[..., Mirror[str]]


@pytest.fixture
async def make(api: FakeApi, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes copies of the nodes' names of pods, which end with the test."""
    made: list[Mirror[str]] = []

    def one(told: Told | None = None, pace: Pace = QUICK, **query: str) -> Mirror[str]:
        access = KubernetesAccess(kubeconfig_file=kubeconfig(tmp_path, api))

        def on_change() -> None:
            if told is not None:
                told.failures.append(mirror.failure)

        mirror = Mirror(access, Query("pods", **query), node_of, on_change, pace)
        made.append(mirror)
        return mirror

    yield one
    for mirror in made:
        await mirror.close()


def node_of(one: dict[str, Any]) -> str | None:
    node: str | None = one["spec"].get("nodeName")
    return node


async def true(condition: Callable[[], bool]) -> None:
    async def is_so() -> bool:
        return condition()

    await until(is_so)


def lists(api: FakeApi) -> list[dict[str, str]]:
    return [query for verb, _, query in api.requests if verb == "list"]


def watches(api: FakeApi) -> list[dict[str, str]]:
    return [query for verb, _, query in api.requests if verb == "watch"]


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


async def test_a_server_that_accepts_and_never_answers_is_noticed(api: FakeApi, make: Make) -> None:
    never = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        del request
        await never.wait()
        return web.Response()

    api.put("pods", pod("p", node="a"))
    told = Told()
    mirror = make(told, Pace(answer=0.3, silence=0.1, first_delay=0.01, steady=0.05))
    await true(lambda: mirror.listed)
    api.always = {"list": silent, "watch": silent}
    await true(lambda: mirror.failure is not None)
    assert mirror.items == {"prod/p": "a"}
    assert told.distinct == ["pods: no answer in time"]
    never.set()
    api.always = {}
    await true(lambda: mirror.failure is None)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (401, "pods: status 401; wanted other credentials"),
        (403, "pods: status 403; wanted the right to list and watch pods"),
        (500, "pods: status 500"),
        (503, "pods: status 503"),
    ],
)
async def test_a_refusal_is_told_and_what_was_there_stays(
    api: FakeApi, make: Make, code: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")

    async def refused(request: web.Request) -> web.StreamResponse:
        del request
        return failure(code, "Whatever")

    api.put("pods", pod("p", node="a"))
    told = Told()
    mirror = make(told)
    await true(lambda: api.watching == 1)
    api.always = {"list": refused, "watch": refused}
    api.cut()
    await true(lambda: mirror.failure is not None)
    assert told.distinct == [text]
    assert mirror.items == {"prod/p": "a"}
    tried = len(api.requests)
    await true(lambda: len(api.requests) > tried + 3)
    api.always = {}
    api.put("pods", pod("q", node="b"))
    await true(lambda: mirror.items == {"prod/p": "a", "prod/q": "b"})
    assert mirror.failure is None
    assert TOKEN not in caplog.text


async def test_new_credentials_are_read(api: FakeApi, make: Make, tmp_path: Path) -> None:
    api.token = "another"
    mirror = make()
    await mirror.tried()
    assert mirror.failure == "pods: status 401; wanted other credentials"
    kubeconfig(tmp_path, api, "another")
    await true(lambda: mirror.listed)
    assert mirror.failure is None


async def test_credentials_that_expire_are_no_failure_where_new_ones_are_there(
    api: FakeApi, make: Make, tmp_path: Path
) -> None:
    told = Told()
    mirror = make(told)
    await true(lambda: api.watching == 1)
    kubeconfig(tmp_path, api, "another")
    api.token = "another"
    api.cut()
    api.put("pods", pod("p", node="a"))
    await true(lambda: mirror.items == {"prod/p": "a"})
    assert told.distinct == []


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b"[]",
        b"{}",
        b'{"metadata":{"resourceVersion":""},"items":[]}',
        b'{"metadata":{"resourceVersion":"1"},"items":{}}',
        b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{}}]}',
        b'{"metadata":{"resourceVersion":"1"},"items":[null]}',
        b'{"metadata":{"resourceVersion":"1","continue":5},"items":[]}',
    ],
)
async def test_a_list_that_is_none(api: FakeApi, make: Make, body: bytes) -> None:
    async def garbage(request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(body=body)

    api.answers["list"] = [garbage]
    told = Told()
    mirror = make(told)
    await true(lambda: mirror.listed)
    assert told.distinct in (["pods: the answer is no list"], ["pods: an object that is none"])


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON\n",
        b"[]\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":7}}}\n',
        b'{"type":"ERROR","object":{"code":500}}\n',
        b'{"type":"ERROR","object":[]}\n',
    ],
)
async def test_an_event_that_is_none(api: FakeApi, make: Make, line: bytes) -> None:
    told = Told()
    mirror = make(told)
    await true(lambda: api.watching == 1)
    api.say(line)
    await true(lambda: len(lists(api)) == 2)
    api.put("pods", pod("p", node="a"))
    await true(lambda: mirror.items == {"prod/p": "a"})
    assert len(told.distinct) == 1
    assert mirror.failure is None


async def test_a_list_without_end_is_given_up(
    api: FakeApi, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporter.kubernetes.mirror._MOST_PAGES", 5)

    async def endless(request: web.Request) -> web.StreamResponse:
        del request
        meta = {"resourceVersion": "1", "continue": "more"}
        return web.json_response({"metadata": meta, "items": []})

    api.always["list"] = endless
    mirror = make()
    await mirror.tried()
    assert mirror.failure == "pods: a list without end"


async def test_a_server_that_ends_each_watch_at_once_is_not_hammered(
    api: FakeApi, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(request: web.Request) -> web.StreamResponse:
        return await stream(request)

    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    api.always["watch"] = ends
    monkeypatch.setattr("exporter.kubernetes.mirror.asyncio.sleep", noted)
    make(pace=Pace(first_delay=0.5, longest_delay=4.0))
    async with asyncio.timeout(20):
        while len(watches(api)) < 8:
            await sleep(0.01)
    pauses = [seconds for seconds in slept if seconds]
    assert 0.25 <= pauses[0] <= 0.5
    assert 1.0 <= pauses[2] <= 2.0
    assert all(2.0 <= pause <= 4.0 for pause in pauses[3:])


async def test_the_server_says_how_long_to_wait(
    api: FakeApi, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(request: web.Request) -> web.StreamResponse:
        del request
        return failure(429, "TooManyRequests", Retry_After="7")

    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    api.answers["list"] = [busy]
    monkeypatch.setattr("exporter.kubernetes.mirror.asyncio.sleep", noted)
    mirror = make()
    await true(lambda: mirror.listed)
    assert max(slept) == 7.0


async def test_a_line_without_end_makes_it_list_anew(
    api: FakeApi, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporter.kubernetes.mirror._LONGEST_LINE", 1000)
    told = Told()
    make(told)
    await true(lambda: api.watching == 1)
    api.say(b"x" * 2000)
    await true(lambda: len(lists(api)) == 2)
    assert told.distinct == ["the watch sends a line over 16 MiB"]


async def test_a_list_that_trickles_is_given_up(api: FakeApi, make: Make) -> None:
    never = asyncio.Event()

    async def trickles(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await response.write(b'{"kind":"List","metadata":')
        await never.wait()
        return response

    api.answers["list"] = [trickles]
    told = Told()
    mirror = make(told, Pace(answer=0.2, first_delay=0.01, steady=0.2))
    await true(lambda: mirror.listed)
    assert told.distinct == ["pods: half an answer in time"]
    never.set()


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


async def test_outside_of_a_cluster_a_kubeconfig_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    mirror = Mirror(KubernetesAccess(), Query("pods"), node_of, pace=QUICK)
    await mirror.tried()
    await mirror.close()
    assert mirror.failure == (
        "no access by the cluster that the exporter runs in (ConfigException); outside a cluster, "
        "wanted kubeconfig_file"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("no: kubeconfig", "ConfigException"),
        ("[", "ParserError"),
        ("token: secret-in-the-file", "ConfigException"),
    ],
)
async def test_a_kubeconfig_that_is_none(
    tmp_path: Path, text: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    access = KubernetesAccess(kubeconfig_file=file)
    mirror = Mirror(access, Query("pods"), node_of, pace=QUICK)
    await mirror.tried()
    await mirror.close()
    assert mirror.failure == f"no access by {file} ({kind})"
    assert "secret-in-the-file" not in caplog.text


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

"""The copy of a cluster's objects when its server fails, refuses, or sends what is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from exporter.kubernetes.client import Query
from exporter.kubernetes.mirror import Mirror, Pace
from exporter.settings.access import KubernetesAccess
from tests.kubernetes.copies import QUICK, Make, Told, lists, node_of, true, watches
from tests.kubernetes.fake import TOKEN, FakeApi, failure, kubeconfig, stream
from tests.kubernetes.objects import pod


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

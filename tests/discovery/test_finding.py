"""All ways together: failures keep what was found, changes are told, settings come and go."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from exporter.discovery.finding import Finding, find_once, prepare
from exporter.fetching.http import HttpClient
from exporter.settings import Settings, TargetGroup
from tests.support.programs import until
from tests.support.servers import http_server, text_handler


class Running:
    """Finding at work, and all that it told."""

    def __init__(self, http: HttpClient) -> None:
        self.http = http
        self.changes = 0
        self.tries: list[tuple[str, bool]] = []
        self.finding = Finding(self._changed, self._tried, lambda: 1000.0)

    def _changed(self) -> None:
        self.changes += 1

    def _tried(self, group: str, at: float | None) -> None:
        self.tries.append((group, at is not None))

    async def apply(self, *groups: TargetGroup) -> None:
        await self.finding.apply(groups, prepare(groups, self.http))

    @property
    def urls(self) -> list[str]:
        targets = self.finding.targets()
        assert [self.finding.target(target.url) for target in targets] == list(targets)
        return [target.url for target in targets]

    async def finds(self, *urls: str) -> None:
        async def is_so() -> bool:
            return self.urls == list(urls)

        await until(is_so)


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with HttpClient(1_000_000) as http:
        it = Running(http)
        yield it
        await it.finding.stop()


def listed(file: Path, *addresses: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps([{"targets": addresses}]))
    new.replace(file)


def group(name: str = "g", **settings: Any) -> TargetGroup:
    return TargetGroup(name=name, **settings)


async def test_what_fails_keeps_its_last_targets(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    listed(file, "a:1", "b:1")
    found = group(static=("http://s:1",), file={"paths": (str(file),)}, model="m")
    await running.apply(found)
    before = running.finding
    assert (set(before.undiscovered), before.all_tried) == ({"g"}, False)
    await running.finds("http://s:1", "http://a:1", "http://b:1")
    assert running.finding.undiscovered == frozenset()
    assert running.finding.all_tried
    assert {target.model for target in running.finding.targets()} == {"m"}
    file.write_text("[")

    async def has_failed() -> bool:
        return ("g", False) in running.tries

    await until(has_failed)
    assert running.urls == ["http://s:1", "http://a:1", "http://b:1"]
    listed(file, "b:1")
    await running.finds("http://s:1", "http://b:1")
    assert running.changes == 2


async def test_a_way_that_never_worked_is_tried_and_not_taken_for_empty(
    running: Running, tmp_path: Path
) -> None:
    await running.apply(group(file={"paths": (str(tmp_path / "none.json"),)}))

    async def is_tried() -> bool:
        return running.finding.all_tried

    await until(is_tried)
    assert running.finding.undiscovered == {"g"}
    assert running.tries[0] == ("g", False)


async def test_an_address_of_two_groups_stays_with_the_first(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    await running.apply(
        group("one", static=("http://a:1",)), group("two", static=("http://a:1", "http://b:1"))
    )
    for _ in range(3):
        targets = [(target.url, target.group) for target in running.finding.targets()]
        assert targets == [("http://a:1", "one"), ("http://b:1", "two")]
    assert [record.message for record in caplog.records] == [
        "target is found for several groups"
    ], "told once"


async def test_a_reload_keeps_what_a_group_found_unless_its_ways_change(
    running: Running, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    listed(file, "a:1")
    ways: dict[str, Any] = {"file": {"paths": (str(file),)}}
    await running.apply(group(**ways))
    await running.finds("http://a:1")
    tries = len(running.tries)
    await running.apply(group(**ways, model="m"))
    assert running.urls == ["http://a:1"]
    assert running.finding.targets()[0].model == "m"
    assert len(running.tries) == tries
    await running.apply(group(static=("http://s:1",)))
    assert running.urls == ["http://s:1"]
    await running.apply()
    assert running.urls == []


async def test_one_of_many_targets_is_found_without_making_all_anew(running: Running) -> None:
    """Each probe looks for one: with thousands of targets, all would cost more than the probe."""
    group = TargetGroup(name="g", static=("http://a", "http://b"))
    await running.apply(group)
    first = running.finding.target("http://b")
    assert first is not None
    assert running.finding.target("http://b") is first
    assert running.finding.target("http://c") is None
    await running.apply(group.model_copy(update={"model": "chat"}))
    again = running.finding.target("http://b")
    assert again is not None
    assert again.model == "chat"
    await running.apply()
    assert running.finding.target("http://b") is None


async def test_found_once_for_the_command_line(tmp_path: Path) -> None:
    async with http_server({"/t": text_handler("[]", 500)}) as url, HttpClient(1000) as http:
        file = tmp_path / "a.json"
        listed(file, "a:1")
        groups = Settings(
            targets=[
                {"name": "one", "static": ["http://s:1"], "file": {"paths": [str(file)]}},
                {"name": "two", "http": {"url": f"{url}/t"}},
            ]
        ).targets
        targets, wrong = await find_once(groups, http)
    assert [target.url for target in targets] == ["http://s:1", "http://a:1"]
    assert wrong == ("group two: GET /t: HTTP 500",)


async def test_ends_leave_no_tasks(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with HttpClient(1000) as http:
        it = Running(http)
        for n in range(5):
            await it.apply(group(file={"paths": (str(tmp_path / f"{n}.json"),)}))
        await it.finding.stop()
    gc.collect()
    assert asyncio.all_tasks() == before

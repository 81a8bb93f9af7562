"""Live plans over a fleet whose polls and clock the test makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from exporter.cluster import Unplanned
from exporter.current import CurrentFleet
from exporter.exposition.fleet import Exposition
from exporter.fleet import Reason
from exporter.live import LivePlans, sees_whole_fleet
from exporter.planning.plans import Plan
from exporter.settings import Settings
from tests.support.tables import asked, replica, target

WINDOW = 60.0


@dataclass
class Bench:
    """A fleet, its plans and its clock."""

    configured: dict[str, Any]
    now: float = 1000.0
    told: list[tuple[float | None, float | None]] = field(default_factory=list)
    fleet: CurrentFleet = field(init=False)
    live: LivePlans = field(init=False)

    def __post_init__(self) -> None:
        self.fleet = CurrentFleet(Exposition(0), 30.0, "here")
        self.restart()

    def restart(self) -> None:
        """An exporter that knows nothing."""
        urls = [status.target.url for status in self.fleet.snapshot(self.now).targets]
        self.fleet = CurrentFleet(Exposition(0), 30.0, "here")
        for url in urls:
            self.fleet.add(target(url))
        self.live = LivePlans(
            self.fleet,
            lambda: Settings(**self.configured),
            lambda seconds, read, _: self.told.append((seconds, read)),
            lambda: self.now,
            lambda: self.now,
        )

    def poll(self, name: str, used: int = 1, waiting: int = 0, tokens: float | None = None) -> None:
        url = f"http://{name}:1"
        if url not in {status.target.url for status in self.fleet.snapshot(self.now).targets}:
            self.fleet.add(target(url))
        table = replace(replica(used=used, tokens=tokens), waiting=waiting)
        self.fleet.record(url, asked(table), self.now)

    def fail(self, name: str) -> None:
        self.fleet.record(f"http://{name}:1", asked(reason=Reason.CONNECT), self.now)

    async def plan(self, model: str = "base") -> Plan:
        return (await self.live.step()).models[model]

    def sample(self, series: str) -> str | None:
        for line in self.live.text(False).decode().splitlines():
            if line.startswith(series + " "):
                return line.rpartition(" ")[2]
        return None


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def bench(**configured: Any) -> Bench:
        defaults = {"planning": {"interval": "1s", "demand_window": f"{WINDOW:g}s"}}
        made.append(Bench({**defaults, **configured}))
        return made[-1]

    yield bench
    for one in made:
        await one.live.close()


Make = Callable[..., Bench]


async def test_series_of_a_model_come_and_vanish_with_it(make: Make) -> None:
    bench = make()
    bench.poll("10.0.0.1")
    await bench.plan()
    assert bench.sample('lora_model_current_replicas{model="base"}') == "1"
    bench.fleet.remove("http://10.0.0.1:1")
    assert (await bench.live.step()).models == {}
    assert bench.live.text(False) == b""


async def test_a_restart_at_peak_never_lowers_what_an_autoscaler_reads(
    make: Make, tmp_path: Path
) -> None:
    measured = tmp_path / "m.yml"
    measured.write_text("base: [{tokens_per_second: 100}]\n")
    bench = make(measurements={"file": str(measured)}, models={"base": {}})
    tokens = 0.0
    told: list[int | None] = []
    for second in range(0, 500, 5):
        bench.now += 5
        # Five minutes of ever more load; nobody could serve all of it at the end.
        rate = min(100.0 + second, 350.0)
        tokens += rate * 5
        full = second >= 100
        for name in ("10.0.0.1", "10.0.0.2"):
            bench.poll(name, used=4 if full else 2, waiting=int(full), tokens=tokens / 2)
        if second == 300:
            bench.restart()
            for name in ("10.0.0.1", "10.0.0.2"):
                bench.poll(name, used=4, waiting=1, tokens=tokens / 2)
        told.append((await bench.plan()).needed)
    known = [needed for needed in told if needed is not None]
    assert known == sorted(known)
    assert told[0] is None
    assert told[59] == 4, "before the restart"
    assert told[60:84] == [None] * 24, "the window must fill again, and two minutes pass"
    assert set(told[84:]) == {4}


async def test_a_restart_while_full_does_not_forget_saturation(make: Make) -> None:
    bench = make(models={"base": {}})
    told: list[int | None] = []
    for second in range(0, 400, 10):
        bench.now += 10
        if second == 200:
            bench.restart()
        bench.poll("10.0.0.1", used=4, waiting=0 if second < 20 else 1)
        one = await bench.plan()
        told.append(one.needed)
    # Five slots' worth of work on four slots need two; full for two minutes, one more than is.
    assert told[:2] == [1, 1]
    assert set(told[2:20]) == {2}
    assert told[20:32] == [None] * 12
    assert set(told[32:]) == {2}


async def test_one_missed_poll_changes_nothing_and_a_lost_replica_does(make: Make) -> None:
    bench = make(models={"base": {}})
    bench.poll("10.0.0.1", used=4)
    bench.poll("10.0.0.2", used=4)
    assert (await bench.plan()).needed == 2
    bench.now += 10
    bench.fail("10.0.0.2")
    bench.poll("10.0.0.1", used=4)
    assert (await bench.plan()).needed == 2
    bench.now += 25
    bench.poll("10.0.0.1", used=4)
    lost = await bench.plan()
    assert (lost.needed, lost.current, lost.states) == (None, 2, {"ready": 1, "unknown": 1})
    assert lost.unplanned == (Unplanned.INCOMPLETE, Unplanned.NO_INVENTORY)


async def test_the_inventory_counts_and_tells_when_it_was_read(make: Make) -> None:
    bench = make(
        models={"base": {"gpus": 1}},
        inventory={"nodes": {"a": {"gpus": 4, "replicas": {"base": 2}}}},
    )
    bench.poll("10.0.0.1")
    one = await bench.plan()
    assert (one.current, one.headroom and one.headroom.free) == (2, 2)
    assert bench.told[-1][1] == bench.now
    bare = make()
    bare.poll("10.0.0.1")
    await bare.plan()
    assert bare.told[-1][1] is None


async def test_changed_settings_are_planned_with_at_the_next_step(make: Make) -> None:
    bench = make(models={"base": {"gpus": 1}}, inventory={"nodes": {"a": {"gpus": 4}}})
    bench.poll("10.0.0.1")
    first = await bench.plan()
    bench.configured["inventory"] = {"nodes": {"a": {"gpus": 8}}}
    second = await bench.plan()
    assert first.headroom is not None
    assert second.headroom is not None
    assert (first.headroom.free, second.headroom.free) == (4, 8)


async def test_a_new_inventory_that_cannot_be_read_leaves_the_old_one_in_force(
    make: Make, tmp_path: Path
) -> None:
    bench = make(models={"base": {"gpus": 1}}, inventory={"nodes": {"a": {"gpus": 4}}})
    bench.poll("10.0.0.1")
    first = await bench.plan()
    read, bench.now = bench.now, bench.now + 1
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text("{}")
    bench.configured["inventory"] = {"kubernetes": {"kubeconfig_file": nowhere}}
    second = await bench.plan()
    assert first.headroom is not None
    assert second.headroom == first.headroom
    assert bench.told[-1][1] == read
    bench.configured["inventory"] = {}
    assert (await bench.plan()).headroom is None
    assert bench.told[-1][1] is None


async def test_the_first_plan_comes_when_all_targets_were_polled(make: Make) -> None:
    bench = make(planning={"interval": "1h", "demand_window": "1h"})
    bench.fleet.add(target("http://10.0.0.1:1"))
    running = asyncio.create_task(bench.live.run())
    try:
        await asyncio.sleep(0)
        bench.live.polled()
        await asyncio.sleep(0)
        assert bench.told == []
        bench.poll("10.0.0.1")
        bench.live.polled()
        async with asyncio.timeout(10):
            while not bench.told:  # noqa: ASYNC110 - the thread of the plans has no event for it
                await asyncio.sleep(0)
        bench.live.again()
        async with asyncio.timeout(10):
            while len(bench.told) < 2:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_mistake_in_one_planning_does_not_end_the_next(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(planning={"interval": "1ms", "demand_window": "1h"})
    failures = [KeyError("x")]
    clock = bench.live._clock

    def stumbling() -> float:
        if failures and bench.told:
            raise failures.pop()
        return clock()

    bench.live._clock = stumbling
    running = asyncio.create_task(bench.live.run())
    try:
        async with asyncio.timeout(10):
            while failures or len(bench.told) < 3:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert "planning failed" in caplog.text


async def test_a_card_with_a_target_waits_for_its_replicas_too(make: Make, tmp_path: Path) -> None:
    measured = tmp_path / "m.yml"
    measured.write_text("base: [{tokens_per_second: 100}]\n")
    bench = make(
        measurements={"file": str(measured)}, models={"base": {"target_tokens_per_second": 100}}
    )
    assert (await bench.plan()).needed == 1, "no target serves it"
    bench.fleet.add(target("http://10.0.0.1:1"))
    assert (await bench.plan()).unplanned[0] is Unplanned.WARMING_UP
    bench.fail("10.0.0.1")
    assert (await bench.plan()).unplanned[0] is Unplanned.INCOMPLETE
    bench.poll("10.0.0.1", used=3, waiting=8)
    assert (await bench.plan()).needed == 3


async def test_after_a_failure_nothing_is_told_as_if_it_were_new(make: Make) -> None:
    bench = make(planning={"interval": "1ms", "demand_window": "1h"})
    bench.poll("10.0.0.1")
    await bench.live.step()
    assert bench.live.text(False) != b""
    clock = bench.live._clock

    def broken() -> float:
        raise KeyError

    bench.live._clock = broken
    running = asyncio.create_task(bench.live.run())
    try:
        async with asyncio.timeout(10):
            while bench.told[-1] != (None, None):  # noqa: ASYNC110 - the thread has no event
                await asyncio.sleep(0)
        assert bench.live.text(False) == b""
        bench.live._clock = clock
        async with asyncio.timeout(10):
            while bench.live.text(False) == b"":  # noqa: ASYNC110 - the same
                await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_many_first_questions_are_one_plan(make: Make) -> None:
    bench = make()
    bench.poll("10.0.0.1")
    found = await asyncio.gather(*(bench.live.latest() for _ in range(20)))
    assert len(bench.told) == 1
    assert all(one is found[0] for one in found)


@pytest.mark.parametrize(
    ("urls", "configured", "whole"),
    [
        (["http://127.0.0.1:8000"], {}, False),
        (["http://localhost:8000", "http://[::1]:8001"], {}, False),
        (["http://127.0.0.1:8000", "http://10.0.0.5:8000"], {}, True),
        (["http://127.0.0.1:8000"], {"models": {"base": {}}}, True),
        ([], {}, True),
    ],
)
def test_a_sidecar_does_not_speak_for_whole_models(
    urls: list[str], configured: dict[str, Any], whole: bool
) -> None:
    fleet = CurrentFleet(Exposition(0), 30.0, "here")
    for url in urls:
        fleet.add(target(url))
    assert sees_whole_fleet(Settings(**configured), fleet.snapshot(0.0)) is whole

"""Ordinary days of a fleet, under all rules at once: nothing fires."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.alerts.rules_files import promtool
from tests.alerts.timelines import Timeline, Value, between, minutes, rising

FIRED = 'group by (alertname) (last_over_time(ALERTS{{alertstate="firing"}}[{}m]))'


def since(first: int) -> Value:
    """1 from a step on, and 0 before."""
    return lambda step: int(step >= first)


def before(last: int) -> Value:
    """1 until a step, and 0 from it on."""
    return lambda step: int(step < last)


def except_between(first: int, last: int) -> Value:
    """0 from one step to another, else 1."""
    return lambda step: int(not first <= step < last)


def first_known(one: Value, other: Value) -> Value:
    """The one, and where it is not there the other."""

    def at(step: int) -> float | None:
        found = one(step)
        return other(step) if found is None else found

    return at


def now_and_then(every: int, shift: int, then: float | None, else_: float | None) -> Value:
    """One value at each so-manieth step, and another at the others."""
    return lambda step: then if (step + shift) % every == 0 else else_


def three_to_eight(shift: int) -> Value:
    """Slots in use, up and down from step to step."""
    return lambda step: 3 + (step * 7 + shift) % 6


def in_turn(number: int, here: bool) -> Value:
    """1 while an adapter is among the eight of twenty that are in a slot, or is not."""
    return lambda step: 1 if ((step // 2 + number) % 20 < 8) is here else None


def plan(timeline: Timeline, model: str, current: Value, needed: Value, least: float = 0) -> None:
    """What an exporter that sees all replicas tells of a model with a card."""
    timeline.add("lora_model_info", 1, model=model, **{"class": "gold", "owner": "search"})
    timeline.add("lora_model_current_replicas", current, model=model)
    timeline.add("lora_model_needed_replicas", needed, model=model)
    timeline.add("lora_model_min_replicas", least, model=model)
    timeline.add("lora_model_fits", 1, model=model)
    timeline.add("lora_model_unplaced_replicas", 0, model=model)


def target(timeline: Timeline, url: str, up: Value, reason: str = "connect", **labels: str) -> None:
    """A target, and why it is down while it is."""
    timeline.add("lora_target_up", up, target=url, group="serving", **labels)
    timeline.add(
        "lora_target_failure",
        lambda step: 1 if up(step) == 0 else None,
        target=url,
        reason=reason,
        **labels,
    )
    timeline.add(
        "lora_target_last_success_timestamp_seconds",
        lambda step: None if up(step) is None else 30 * step if up(step) else 0,
        target=url,
        **labels,
    )


def busy(start: float, registered: int = 4) -> dict[str, float | Value]:
    """What a vLLM replica tells besides its slots while it serves."""
    return {
        "lora_replica_generation_tokens_total": rising(60_000, start),
        "lora_replica_requests_waiting": 0,
        "lora_replica_requests_deferred": 0,
        "lora_registered": registered,
    }


def cold_start() -> Timeline:
    """Everything is started at once: Prometheus, the exporter, and a fleet that needs minutes."""
    line = Timeline(90)
    line.add("up", since(minutes(1)))
    line.add("lora_exporter_config_last_reload_successful", between(1, 91))
    line.add("lora_model_unplanned", between(1, 61), model="chat", reason="warming_up")
    plan(line, "chat", between(1, 91, lambda step: 3), between(61, 91, 3), least=3)
    for n in range(3):
        ready = 6 + 2 * n
        loaded = minutes(ready)
        target(line, f"http://10.0.0.{n}:8000", between(1, 91, since(loaded)))
        line.replica("chat", f"r{n}", (ready + 1, 91), 8, 3, more=busy(ready))
    # Exclusive slots: replicas register with their first request.
    line.replica("tuner", "t0", (20, 91), 4, 1, kind="exclusive")
    line.add(
        "lora_replica_info",
        between(2, 91),
        model="tuner",
        replica_id="t1",
        engine="twinkle",
        version="0.5.1",
        slot_kind="exclusive",
        source="state+ray",
    )
    return line


def rollout(kind: str) -> Timeline:
    """75 replicas are replaced in four waves with 25 % surge, and have 16 slots instead of 8."""
    line = Timeline(80, evaluation=60)
    line.exporter()
    waves = 4
    for n in range(75):
        began = 20 + 8 * (n * waves // 75)
        ended, loaded = began + 7, began + 5
        more, later = (busy(0), busy(loaded)) if kind == "evictable" else (None, None)
        share = 0.6 if kind == "evictable" else 0
        line.replica("chat", f"old-{n}", (0, ended), 8, 7, kind=kind, full=share, more=more)
        line.replica("chat", f"new-{n}", (loaded, 101), 16, 7, kind=kind, more=later)
        stops = minutes(ended - 0.5)
        target(line, f"http://old-{n}:8000", between(0, ended, before(stops)))
        starts = minutes(loaded)
        target(line, f"http://new-{n}:8000", between(began, 101, since(starts)))
        for name in ("a", "b"):
            state = {"model": "chat", "adapter": name, "state": "active"}
            line.add("lora_adapter_state", between(0, ended), replica_id=f"old-{n}", **state)
            # New replicas load their adapters some minutes later.
            line.add("lora_adapter_state", between(loaded + 3, 101), replica_id=f"new-{n}", **state)
    plan(line, "chat", lambda s: 94 if minutes(20) <= s < minutes(52) else 75, lambda s: 75, 75)
    return line


def restart_in_place() -> Timeline:
    """Static targets are restarted one after another, and each loads for seven minutes."""
    line = Timeline(110, evaluation=60)
    line.exporter()
    for n in range(8):
        down = 20 + 9 * n
        first, last = minutes(down), minutes(down + 7)
        target(line, f"http://10.0.0.{n}:8000", except_between(first, last))
        line.replica("chat", f"r{n}", (0, down + 0.5), 8, 4, more=busy(0))
        again = Timeline(120)
        again.replica("chat", f"r{n}", (down + 7, 121), 16, 4, more=busy(down + 7))
        for text, value in again.series.items():
            line.series[text] = first_known(line.series[text], value)
    plan(line, "chat", lambda s: 8, lambda s: 8, 8)
    return line


def scaled_to_zero() -> Timeline:
    """One exporter watches a model that goes to zero, and comes back an hour later."""
    line = Timeline(150)
    line.exporter()
    gone, back = minutes(20), minutes(100)
    line.replica("chat", "r0", (0, 20), 8, 2, more=busy(0))
    line.replica("chat", "r1", (102, 151), 8, 2, more=busy(102))
    target(line, "http://r0:8000", between(0, 20.5, before(gone)))
    target(line, "http://r1:8000", between(101, 151))
    target(line, "http://other:8000", lambda s: 1)
    line.replica("tuner", "t0", (0, 20), 4, 2, kind="exclusive")
    # For the window of demand one replica is still needed.
    plan(line, "chat", lambda s: int(s < gone or s >= back), between(0, 151, lambda s: 1))
    return line


def sidecars_to_zero() -> Timeline:
    """Each replica has an exporter of its own, and all of them go."""
    line = Timeline(150)
    for n in range(3):
        line.exporter(f"s{n}", (0, 20))
        own = {"instance": f"s{n}"}
        target(line, "http://127.0.0.1:8000", between(0, 20, lambda s: 1), **own)
        line.replica("chat", f"pod-{n}", (0, 20), 8, 3, more=busy(0), others=own)
        line.add(
            "lora_model_info", between(0, 20), model="chat", **{"class": "", "owner": ""}, **own
        )
    return line


def missed_scrapes() -> Timeline:
    """One scrape in eleven fails, of a fleet with nothing to spare."""
    line = Timeline(120, missed=frozenset(range(20, 240, 11)))
    line.exporter()
    line.exporter("b")
    for n in range(3):
        target(line, f"http://10.0.0.{n}:8000", lambda s: 1)
        # The exporter beside it sees r2 only, so that the pool shrinks whenever one scrape fails.
        own = {"instance": "b"} if n == 2 else {}
        line.replica(
            "tuner", f"t{n}", (0, 121), 4, 4 if n == 2 else 1, kind="exclusive", others=own
        )
        full = 1 if n == 2 else 0
        line.replica("chat", f"r{n}", (0, 121), 8, 2, full=full * 0.5, more=busy(0), others=own)
    plan(line, "chat", lambda s: 3, lambda s: 3, 3)
    plan(line, "tuner", lambda s: 3, lambda s: 3, 3)
    return line


def no_traffic() -> Timeline:
    """A model that nobody asks: slots are told with the first request only."""
    line = Timeline(180, evaluation=60)
    line.exporter()
    for n in range(3):
        target(line, f"http://10.0.0.{n}:8000", lambda s: 1)
        own = {"model": "chat", "replica_id": f"r{n}"}
        line.add(
            "lora_replica_info",
            1,
            engine="vllm",
            version="0.32.0",
            slot_kind="evictable",
            source="activity",
            **own,
        )
        line.add("lora_replica_generation_tokens_total", 0, **own)
        line.add("lora_replica_requests_waiting", 0, **own)
        line.add("lora_registered", 20, **own)
    line.add("lora_model_unplanned", 1, model="chat", reason="slots_unknown")
    plan(line, "chat", lambda s: 3, lambda s: None)
    return line


def many_adapters_on_few_slots() -> Timeline:
    """20 adapters are served well by 8 slots: full now and then, a moment's wait here and there."""
    line = Timeline(180, evaluation=60)
    line.exporter()
    for n in range(2):
        target(line, f"http://10.0.0.{n}:8000", lambda s: 1)
        more = {
            **busy(0, registered=20),
            "lora_waiting": now_and_then(9, n, 2, 0),
            "lora_resident": 8.0,
        }
        line.replica("chat", f"r{n}", (0, 181), 8, three_to_eight(n), full=0.17, more=more)
        for a in range(20):
            own = {"model": "chat", "replica_id": f"r{n}", "adapter": f"a{a}"}
            line.add("lora_adapter_state", in_turn(a, here=True), state="idle", **own)
            line.add("lora_adapter_state", in_turn(a, here=False), state="registered", **own)
    line.add("lora_model_distinct_adapters", 6, model="chat")
    plan(line, "chat", lambda s: 2, lambda s: 2)
    return line


def two_exporters_disagree() -> Timeline:
    """Now and then one of two exporters says something else for a poll, of each thing."""
    line = Timeline(120)
    odd, even = now_and_then(10, 0, 1, None), now_and_then(10, 0, None, 1)
    for one in ("a", "b"):
        line.exporter(one)
        line.replica("chat", "r0", (0, 121), 8, 3, more=busy(0), others={"instance": one})
        line.add("lora_model_needed_replicas", 1, model="chat", instance=one)
        line.add("lora_model_current_replicas", 1, model="chat", instance=one)
        line.add("lora_model_fits", 1, model="chat", instance=one)
        target(line, "http://10.0.0.1:8000", lambda s: 1, instance=one)
    card = {"model": "chat", "instance": "a", "class": "gold"}
    line.add("lora_model_info", even, owner="search", **card)
    line.add("lora_model_info", odd, owner="ads", **card)
    line.add(
        "lora_model_info", 1, model="chat", instance="b", **{"class": "gold", "owner": "search"}
    )
    other = {"model": "chat", "replica_id": "r0", "instance": "b"}
    strange = {"engine": "vllm", "version": "0.1", "slot_kind": "exclusive", "source": "gateway"}
    line.add("lora_replica_info", odd, **other, **strange)
    line.add("lora_max", now_and_then(10, 0, 2, None), slot_kind="exclusive", **other)
    line.add("lora_used", now_and_then(10, 0, 2, None), slot_kind="exclusive", **other)
    line.add("lora_model_unplanned", odd, model="chat", reason="incomplete", instance="b")
    line.add("lora_model_fits", now_and_then(10, 0, 0, 1), model="chat", instance="b")
    line.add("lora_model_needed_replicas", now_and_then(10, 0, 3, 1), model="chat", instance="b")
    line.add(
        "lora_target_up",
        now_and_then(10, 0, 0, 1),
        target="http://10.0.0.1:8000",
        group="serving",
        instance="b",
    )
    return line


ORDINARY: dict[str, Callable[[], Timeline]] = {
    "cold start": cold_start,
    "rollout of a cache": lambda: rollout("evictable"),
    "rollout of held slots": lambda: rollout("exclusive"),
    "restart in place": restart_in_place,
    "scaled to zero": scaled_to_zero,
    "sidecars scaled to zero": sidecars_to_zero,
    "missed scrapes": missed_scrapes,
    "no traffic": no_traffic,
    "many adapters on few slots": many_adapters_on_few_slots,
    "two exporters disagree": two_exporters_disagree,
}


@pytest.mark.parametrize("story", ORDINARY.values(), ids=ORDINARY)
def test_nothing_fires(story: Callable[[], Timeline], tmp_path: Path) -> None:
    line = story()
    fired = FIRED.format(f"{line.length:g}")
    content, said = promtool("test", "rules", line.write(tmp_path / "t.yml", {fired: []}))
    assert content, said


def test_an_alert_would_have_been_seen(tmp_path: Path) -> None:
    line = many_adapters_on_few_slots()
    line.replica("tuner", "t0", (10, 30), 4, 4, kind="exclusive")
    fired = {"labels": '{alertname="LoraSlotsExhausted"}', "value": 1}
    test = line.write(tmp_path / "t.yml", {FIRED.format("180"): [fired]})
    content, said = promtool("test", "rules", test)
    assert content, said


def test_exporter_down_comes_first_and_nothing_resolves_before(tmp_path: Path) -> None:
    line = Timeline(40)
    line.add("up", before(minutes(30)))
    line.add("lora_target_up", between(0, 30), target="http://10.0.0.1:8000", group="training")
    line.replica("tuner", "t0", (0, 30), 4, 4, kind="exclusive")
    line.length = 33.5
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    both = [
        {"labels": f'{{alertname="{name}"}}', "value": 1}
        for name in ("LoraExporterDown", "LoraSlotsExhausted")
    ]
    for end in (33.5, 36.5):
        line.length = end
        content, said = promtool("test", "rules", line.write(tmp_path / "t.yml", {firing: both}))
        assert content, said

"""The text of a fleet while its targets come, change and go."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from exporter.catalogue.fleet import FLEET_FAMILIES
from exporter.exposition.fleet import Exposition
from exporter.exposition.text import EOF, escape, number
from exporter.fleet import (
    AdapterState,
    Reason,
    ReplicaStatus,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
    TargetStatus,
    order_adapters,
)
from tests.exposition.expectation import expected, parsed, text_of

TABLE = ReplicaTable(
    model="m",
    engine="vllm",
    slot_kind=SlotKind.EVICTABLE,
    source=Source.ACTIVITY,
    version="0.32.0",
    max=4,
    used=1,
    registered=2,
    adapters=order_adapters({"a": AdapterState.ACTIVE, "b": AdapterState.REGISTERED}),
    prompt_tokens=10.0,
    generation_tokens=20.5,
    requests_running=1.0,
)


def status_of(host: str, table: ReplicaTable | None = TABLE, **changes: Any) -> TargetStatus:
    """A target that is up, and its replica."""
    target = Target(f"http://{host}:8000", "g")
    replicas = () if table is None else (ReplicaStatus(table, f"{host}:8000", 5, 1),)
    status = TargetStatus(
        target,
        engine="vllm",
        up=True,
        polls=5,
        failures=0,
        last_success=1796000000.25,
        duration=0.01,
        replicas=replicas,
    )
    return replace(status, **changes)


def adapters_of(exposition: Exposition) -> list[tuple[str, str]]:
    """Named adapters and their states, in the order of the text."""
    text = exposition.join(openmetrics=False).decode()
    return re.findall(r'^lora_adapter_state\{.*adapter="(.*?)",state="(.*?)"\} 1$', text, re.M)


def values_of(exposition: Exposition, name: str) -> list[float]:
    """The values of one family."""
    series = parsed(exposition.join(openmetrics=False), openmetrics=False)
    return sorted(value for (its_name, _), value in series.items() if its_name == name)


@pytest.mark.parametrize("openmetrics", [False, True])
def test_families_are_contiguous_and_headed_once(openmetrics: bool) -> None:
    statuses = [
        status_of("one"),
        status_of("two", replace(TABLE, waiting=3, orphans=1)),
        status_of("three", None, up=False, reason=Reason.TIMEOUT, ghosts=2),
    ]
    text = text_of(statuses, openmetrics).decode()
    lines = text.removesuffix("\n").split("\n")
    heads = [line for line in lines if line.startswith("#")]
    assert len(heads) == len(set(heads))
    order: list[str] = []
    for help_line, type_line in zip(heads[::2], heads[1::2], strict=True):
        _, _, helped, *_ = help_line.split(" ")
        _, kind, typed, _ = type_line.split(" ")
        assert (helped, kind) == (typed, "TYPE")
        order.append(helped)
    current = ""
    for line in lines:
        if line.startswith("# HELP "):
            current = line.split(" ")[2]
        elif not line.startswith("#"):
            name = line.partition("{")[0]
            assert name in (current, f"{current}_total")
    named = [
        family.name.removesuffix("_total") if openmetrics else family.name
        for family in FLEET_FAMILIES
    ]
    assert order == [name for name in named if name in order]


def test_openmetrics_names_a_counters_family_without_total() -> None:
    plain = text_of([status_of("one")], openmetrics=False)
    openmetrics = text_of([status_of("one")], openmetrics=True)
    assert b"# TYPE lora_target_polls_total counter\n" in plain
    assert b"# TYPE lora_target_polls counter\n" in openmetrics
    assert [line for line in plain.splitlines() if not line.startswith(b"#")] == [
        line for line in openmetrics.splitlines() if not line.startswith(b"#")
    ]


@pytest.mark.parametrize("openmetrics", [False, True])
def test_the_text_ends_with_a_line_end_and_leaves_the_end_mark_to_others(openmetrics: bool) -> None:
    text = text_of([status_of("one")], openmetrics)
    assert text.endswith(b"\n")
    assert EOF not in text
    assert b"\n\n" not in text


def test_nothing_is_told_of_an_empty_fleet() -> None:
    assert Exposition(9).join(openmetrics=False) == b""


def test_families_without_samples_have_no_header() -> None:
    text = text_of([status_of("one")], openmetrics=False)
    assert b"lora_waiting" not in text
    assert b"lora_target_ghosts" not in text


def test_unknown_has_no_sample_and_is_not_0() -> None:
    bare = ReplicaTable("m", "vllm", SlotKind.EVICTABLE, Source.ACTIVITY)
    never_polled = TargetStatus(Target("http://one:8000", "g"), polls=0, failures=0)
    status = replace(never_polled, replicas=(ReplicaStatus(bare, "one:8000"),))
    series = parsed(text_of([status], openmetrics=False), openmetrics=False)
    assert {name: value for (name, _), value in series.items()} == {
        "lora_replica_info": 1,
        "lora_replica_adapters_dropped": 0,
        "lora_target_polls_total": 0,
        "lora_target_poll_failures_total": 0,
    }


def test_known_0_has_a_sample() -> None:
    idle = replace(TABLE, used=0, registered=0, waiting=0, requests_running=0.0)
    exposition = Exposition(9)
    exposition.update(status_of("one", idle))
    for name in ("lora_used", "lora_registered", "lora_waiting", "lora_replica_requests_running"):
        assert values_of(exposition, name) == [0]


def test_used_above_max_is_shown_and_free_is_0() -> None:
    exposition = Exposition(9)
    exposition.update(status_of("one", replace(TABLE, max=2, used=5)))
    assert values_of(exposition, "lora_used") == [5]
    assert values_of(exposition, "lora_free") == [0]


def test_a_cap_names_the_first_adapters_in_the_order_of_states() -> None:
    adapters = order_adapters(
        {
            "z-active": AdapterState.ACTIVE,
            "y-waiting": AdapterState.WAITING,
            "x-idle": AdapterState.IDLE,
            "w-offloaded": AdapterState.OFFLOADED,
            "b-registered": AdapterState.REGISTERED,
            "a-registered": AdapterState.REGISTERED,
        }
    )
    everything = [
        ("z-active", "active"),
        ("y-waiting", "waiting"),
        ("x-idle", "idle"),
        ("w-offloaded", "offloaded"),
        ("a-registered", "registered"),
        ("b-registered", "registered"),
    ]
    for cap in range(8):
        exposition = Exposition(cap)
        exposition.update(status_of("one", replace(TABLE, adapters=adapters)))
        assert adapters_of(exposition) == everything[:cap]
        assert values_of(exposition, "lora_replica_adapters_dropped") == [max(6 - cap, 0)]


def test_a_changed_cap_follows_at_the_next_update() -> None:
    status = status_of("one")
    exposition = Exposition(9)
    exposition.update(status)
    for cap in (1, 0, 9):
        exposition.set_max_adapters(cap)
        exposition.update(status)
        assert exposition.join(openmetrics=False) == text_of([status], False, cap)


def test_adapters_that_come_and_go_leave_nothing_behind() -> None:
    exposition = Exposition(3)
    for turn in range(100):
        states = {f"a{turn + n}": list(AdapterState)[(turn + n) % 5] for n in range(6)}
        status = status_of("one", replace(TABLE, adapters=order_adapters(states)))
        exposition.update(status)
        assert exposition.join(openmetrics=False) == text_of([status], False, 3)


def test_a_removed_target_vanishes_whole() -> None:
    exposition = Exposition(9)
    one, two = status_of("one"), status_of("two", up=False, reason=Reason.AUTH, ghosts=3)
    exposition.update(one)
    exposition.update(two)
    assert b"two" in exposition.join(openmetrics=False)
    exposition.remove(two.target.url)
    assert exposition.join(openmetrics=False) == text_of([one], openmetrics=False)
    exposition.remove(one.target.url)
    assert exposition.join(openmetrics=False) == b""


def test_removing_what_is_not_there_changes_nothing() -> None:
    exposition = Exposition(9)
    exposition.update(status_of("one"))
    before = exposition.join(openmetrics=False)
    exposition.remove("http://two:8000")
    assert exposition.join(openmetrics=False) == before


def test_a_new_target_takes_the_place_of_a_removed_one() -> None:
    exposition = Exposition(9)
    for host in ("one", "two", "three"):
        exposition.update(status_of(host))
    exposition.remove("http://two:8000")
    exposition.update(status_of("four"))
    series = parsed(exposition.join(openmetrics=False), openmetrics=False)
    assert series == expected([status_of(host) for host in ("one", "three", "four")])


def test_a_lost_table_takes_its_replicas_series_along() -> None:
    exposition = Exposition(9)
    exposition.update(status_of("one"))
    lost = status_of("one", None, up=False, reason=Reason.TIMEOUT)
    exposition.update(lost)
    text = exposition.join(openmetrics=False)
    assert text == text_of([lost], openmetrics=False)
    assert b"lora_max" not in text
    exposition.update(status_of("one"))
    assert exposition.join(openmetrics=False) == text_of([status_of("one")], openmetrics=False)


@pytest.mark.parametrize(
    "changed",
    [
        replace(TABLE, slot_kind=SlotKind.EXCLUSIVE),
        replace(TABLE, model="renamed"),
        replace(TABLE, version="0.33.0"),
        replace(TABLE, source=Source.RESIDENCY),
        replace(TABLE, node="node-7"),
        replace(TABLE, engine="twinkle"),
        replace(TABLE, max=None),
        replace(TABLE, adapters=()),
    ],
)
def test_a_changed_table_leaves_nothing_of_the_old_one(changed: ReplicaTable) -> None:
    exposition = Exposition(9)
    for table in (TABLE, changed, TABLE, changed):
        status = status_of("one", table)
        exposition.update(status)
        assert exposition.join(openmetrics=False) == text_of([status], openmetrics=False)


def test_a_target_that_moves_to_another_group_is_told_once() -> None:
    exposition = Exposition(9)
    exposition.update(status_of("one"))
    moved = status_of("one", target=Target("http://one:8000", "elsewhere"))
    exposition.update(moved)
    assert exposition.join(openmetrics=False) == text_of([moved], openmetrics=False)


def test_one_reason_is_told_at_a_time() -> None:
    exposition = Exposition(9)
    for reason in (Reason.TIMEOUT, Reason.AUTH):
        exposition.update(status_of("one", None, up=False, reason=reason))
    assert exposition.join(openmetrics=False).count(b"\nlora_target_failure{") == 1
    assert b'reason="auth"' in exposition.join(openmetrics=False)
    exposition.update(status_of("one"))
    assert b"lora_target_failure" not in exposition.join(openmetrics=False)


def test_a_gateway_tells_of_many_replicas() -> None:
    replicas = tuple(
        ReplicaStatus(replace(TABLE, model=model, replica=name), name, 1, 0)
        for model, name in (("m", "r1"), ("m", "r2"), ("n", "r3"))
    )
    exposition = Exposition(9)
    for present in (replicas, replicas[1:], replicas[::-1], ()):
        status = status_of("one", None, replicas=present, ghosts=1)
        exposition.update(status)
        assert exposition.join(openmetrics=False) == text_of([status], openmetrics=False)
        assert parsed(exposition.join(openmetrics=True), openmetrics=True) == expected([status])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, b"0"),
        (1, b"1"),
        (4095, b"4095"),
        (4096, b"4096"),
        (-3, b"-3"),
        (2**70, b"1180591620717411303424"),
        (0.0, b"0"),
        (2.0, b"2"),
        (0.025, b"0.025"),
        (1796080000.5, b"1796080000.5"),
        (2.0**53 - 1, b"9007199254740991"),
        (2.0**53, b"9007199254740992.0"),
        (1e300, b"1e+300"),
        (float("inf"), b"inf"),
        (float("nan"), b"nan"),
    ],
)
def test_numbers_are_written_exactly(value: float, text: bytes) -> None:
    assert number(value) == text + b"\n"


def test_a_label_that_is_too_long_is_cut_and_stays_apart() -> None:
    one, two = escape("m" * 5000), escape("m" * 5001)
    assert one != two
    assert len(one) < 1100
    assert escape("m" * 1024) == "m" * 1024

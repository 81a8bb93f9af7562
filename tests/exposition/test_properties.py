"""What holds for the text whatever the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.exposition.fleet import Exposition
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

deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=150)

HOSTS = ("one", "two", "three", "four")

any_text = st.text(max_size=20)
awkward = st.text('\\"\n\r\x85\u2028\x00 {}=,#aé\U0001f600\ud800\udfff', max_size=12)
labels = any_text | awkward
# Two names that differ in a lone surrogate only would be one name in UTF-8.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
counts = st.none() | st.integers(0, 2**40)
numbers = st.none() | st.floats(0, 1e15, allow_nan=False) | st.integers(0, 9).map(float)


@st.composite
def tables(draw: st.DrawFn) -> ReplicaTable:
    """A table of which anything may be unknown."""
    states = st.dictionaries(names, st.sampled_from(AdapterState), max_size=5)
    return ReplicaTable(
        model=draw(st.sampled_from(["m", "n"]) | labels),
        engine=draw(st.sampled_from(["vllm", "twinkle"])),
        slot_kind=draw(st.sampled_from(SlotKind)),
        source=draw(st.sampled_from(Source)),
        version=draw(st.none() | labels),
        node=draw(st.none() | labels),
        max=draw(counts),
        used=draw(counts),
        resident=draw(counts),
        waiting=draw(counts),
        registered=draw(counts),
        adapters=order_adapters(draw(states)),
        prompt_tokens=draw(numbers),
        generation_tokens=draw(numbers),
        requests_running=draw(numbers),
        requests_waiting=draw(numbers),
        requests_deferred=draw(numbers),
        orphans=draw(counts),
        oldest_heartbeat=draw(numbers),
        largest_holder=draw(counts),
    )


@st.composite
def statuses(draw: st.DrawFn) -> TargetStatus:
    """A target with any number of replicas, of which no other target tells."""
    host = draw(st.sampled_from(HOSTS))
    replicas = tuple(
        ReplicaStatus(draw(tables()), f"{host}/{n}", draw(counts), draw(counts))
        for n in draw(st.lists(st.integers(0, 3), unique=True, max_size=3))
    )
    return TargetStatus(
        Target(f"http://{host}:8000", draw(st.sampled_from(["g", "h"]) | labels)),
        up=draw(st.none() | st.booleans()),
        reason=draw(st.none() | st.sampled_from(Reason)),
        polls=draw(counts),
        failures=draw(counts),
        last_success=draw(numbers),
        duration=draw(numbers),
        replicas=replicas,
        ghosts=draw(counts),
    )


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
@deterministic
@given(told=st.lists(statuses(), unique_by=lambda status: status.target.url, max_size=3))
def test_other_parsers_read_what_is_known_and_nothing_else(
    openmetrics: bool, told: list[TargetStatus]
) -> None:
    assert parsed(text_of(told, openmetrics, 3), openmetrics) == expected(told, 3)


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
@settings(deterministic, max_examples=400)
@given(text=labels)
def test_any_text_comes_back_as_it_was(openmetrics: bool, text: str) -> None:
    table = ReplicaTable(
        text,
        "vllm",
        SlotKind.EVICTABLE,
        Source.ACTIVITY,
        version=text,
        node=text,
        adapters=order_adapters({text: AdapterState.ACTIVE}),
    )
    target = Target("http://one:8000", text)
    status = TargetStatus(target, up=True, replicas=(ReplicaStatus(table, text),))
    series = parsed(text_of([status], openmetrics), openmetrics)
    sent = text.encode(errors="replace").decode()
    for name, told in series:
        values = dict(told)
        if name == "lora_target_up":
            assert values == {"target": "http://one:8000", "group": sent}
        else:
            assert (values["model"], values["replica_id"]) == (sent, sent)
        if name == "lora_adapter_state":
            assert values["adapter"] == sent
        if name == "lora_replica_info":
            assert (values["version"], values["node"]) == (sent, sent)
    assert {"lora_target_up", "lora_adapter_state", "lora_replica_info"} <= {
        name for name, _ in series
    }


@deterministic
@given(
    st.lists(statuses() | st.sampled_from(HOSTS) | st.integers(0, 4), max_size=12),
    st.booleans(),
)
def test_a_fleet_that_changed_has_the_text_of_one_built_anew(
    steps: list[TargetStatus | str | int], openmetrics: bool
) -> None:
    """A status is an update, a host is removed, a number becomes the cap on adapters."""
    exposition = Exposition(2)
    cap = 2
    present: dict[str, TargetStatus] = {}
    for step in steps:
        if isinstance(step, TargetStatus):
            exposition.update(step)
            present[step.target.url] = step
        elif isinstance(step, str):
            url = f"http://{step}:8000"
            exposition.remove(url)
            present.pop(url, None)
        else:
            cap = step
            exposition.set_max_adapters(cap)
            for status in present.values():
                exposition.update(status)
        joined = exposition.join(openmetrics)
        chunks = exposition.chunks(openmetrics)
        anew = text_of(present.values(), openmetrics, cap)
        assert sorted(joined.split(b"\n")) == sorted(anew.split(b"\n"))
        assert exposition.chunks(openmetrics) is chunks


@deterministic
@given(tables(), tables())
def test_an_update_of_one_target_leaves_the_others_alone(
    first: ReplicaTable, second: ReplicaTable
) -> None:
    exposition = Exposition(9)
    still = TargetStatus(
        Target("http://still:1", "g"), up=True, replicas=(ReplicaStatus(first, "still"),)
    )
    moving = TargetStatus(
        Target("http://moving:1", "g"), up=True, replicas=(ReplicaStatus(first, "moving"),)
    )
    exposition.update(still)
    exposition.update(moving)
    exposition.update(replace(moving, replicas=(ReplicaStatus(second, "moving"),)))
    lines = set(exposition.join(openmetrics=False).split(b"\n"))
    assert set(text_of([still], openmetrics=False, max_adapters=9).split(b"\n")) <= lines


@deterministic
@given(tables())
def test_free_is_never_negative_and_unknown_where_either_part_is(table: ReplicaTable) -> None:
    if table.max is None or table.used is None:
        assert table.free is None
    else:
        assert table.free is not None
        assert 0 <= table.free <= table.max

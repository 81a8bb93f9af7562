"""What a fleet shows of its models' load at one moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.fleet import (
    AdapterState,
    Fleet,
    Reason,
    ReplicaStatus,
    ReplicaTable,
    SlotKind,
    Source,
    TargetStatus,
    order_adapters,
)
from exporter.planning.load import Load, Pool, loads
from tests.support.tables import replica, target


def status(
    *tables: ReplicaTable,
    url: str = "http://10.0.0.5:8000",
    group: str = "g",
    up: bool | None = True,
    reason: Reason | None = None,
    known: tuple[str, ...] | None = None,
) -> TargetStatus:
    """A target that told of these replicas; `known`: models, where it is other than these."""
    models = tuple(table.model for table in tables) if known is None else known
    return TargetStatus(
        target(url, group),
        up=up,
        reason=reason,
        table_at=100.0 if tables else None,
        replicas=tuple(ReplicaStatus(table, f"{url}/{n}") for n, table in enumerate(tables)),
        models=models,
    )


def load(*statuses: TargetStatus, model: str = "base") -> Load:
    return loads(Fleet(statuses))[model]


def exclusive(used: int, limit: int = 5) -> ReplicaTable:
    return ReplicaTable("base", "twinkle", SlotKind.EXCLUSIVE, Source.STATE, max=limit, used=used)


def test_slots_add_up_with_those_that_wait_and_the_smallest_replica_counts() -> None:
    waits = replace(replica(used=4), waiting=3)
    found = load(status(waits, replica(used=1, limit=8)))
    assert found.pools == (Pool(SlotKind.EVICTABLE, used=5, waiting=3, per_replica=4),)
    assert (found.ready, found.unread, found.incomplete, found.slots_unknown) == (
        2,
        0,
        False,
        False,
    )


def test_kinds_of_slots_are_never_added_up() -> None:
    found = load(status(replica(used=4), exclusive(used=2)))
    assert found.pools == (
        Pool(SlotKind.EVICTABLE, used=4, waiting=0, per_replica=4),
        Pool(SlotKind.EXCLUSIVE, used=2, waiting=0, per_replica=5),
    )


def test_an_unknown_number_of_used_slots_is_not_none() -> None:
    found = load(status(replica(used=2), replica(used=None)))
    assert found.slots_unknown
    assert load(status(replica(limit=None))).slots_unknown


@pytest.mark.parametrize("reason", [Reason.NO_LORA, Reason.UNSUPPORTED])
def test_an_engine_without_slots_has_none_to_be_unknown(reason: Reason) -> None:
    found = load(status(replica(used=None, limit=None), up=False, reason=reason))
    assert (found.pools, found.slots_unknown, found.ready) == ((), False, 1)
    without = replace(replica(used=None, limit=None), has_slots=False)
    assert not load(status(without)).slots_unknown


def test_a_replica_that_is_gone_stale_is_unread() -> None:
    dead = status(url="http://10.0.0.6:8000", up=False, known=("base", "base", "other"))
    found = loads(Fleet((status(replica()), dead)))
    assert (found["base"].ready, found["base"].unread, found["base"].incomplete) == (1, 2, True)
    assert (found["other"].ready, found["other"].unread) == (0, 1)


def test_a_target_that_was_never_read_may_be_of_its_groups_models_or_of_any() -> None:
    never = status(url="http://10.0.0.6:8000", up=False)
    found = load(status(replica()), never)
    assert (found.unread, found.incomplete) == (0, True)
    lone = replace(never, target=target("http://10.0.0.6:8000", "lone"))
    assert load(status(replica()), lone).incomplete, "nobody knows what that group serves"
    other = status(replica("other"), url="http://10.0.0.7:8000", group="lone")
    assert not load(status(replica()), other, lone).incomplete
    named = replace(never, target=target("http://10.0.0.6:8000", "lone", model="else"))
    assert not load(status(replica()), named).incomplete


def test_models_that_are_declared_are_in_doubt_with_the_others() -> None:
    new = status(url="http://10.0.0.6:8000", up=None)
    found = loads(Fleet((new,)), ("declared",))
    assert found["declared"].unpolled
    dead = status(url="http://10.0.0.6:8000", up=False)
    assert loads(Fleet((dead,)), ("declared",))["declared"].incomplete
    assert loads(Fleet(()), ("declared",)) == {"declared": Load()}


def test_a_group_whose_targets_were_not_found_yet_leaves_its_models_in_doubt() -> None:
    fleet = Fleet((status(replica()),), undiscovered=frozenset({"g"}))
    assert loads(fleet)["base"].incomplete
    assert loads(replace(fleet, undiscovered=frozenset({"x"})))["base"].incomplete
    both = (status(replica()), status(replica("m"), url="http://10.0.0.7:8000", group="x"))
    assert not loads(Fleet(both, undiscovered=frozenset({"x"})))["base"].incomplete


def test_a_target_that_was_not_polled_yet_may_be_of_any_model() -> None:
    new = status(url="http://10.0.0.6:8000", group="other", up=None)
    assert load(status(replica()), new).unpolled
    named = replace(new, target=target("http://10.0.0.6:8000", "other", model="else"))
    found = loads(Fleet((status(replica()), named)))
    assert not found["base"].unpolled
    assert (found["else"].unpolled, found["else"].unread) == (True, 1)


def test_a_gateway_without_replicas_is_read() -> None:
    assert loads(Fleet((status(up=True),))) == {}


@pytest.mark.parametrize(
    ("waiting", "deferred", "requests", "full"),
    [
        (2, None, None, True),
        (0, 5, 5, False),
        (None, 3, 9, True),
        (None, 0, 9, False),
        (None, None, 4, True),
        (None, None, None, None),
    ],
)
def test_full_takes_the_best_that_is_told_of_waiting_work(
    waiting: int | None, deferred: float | None, requests: float | None, full: bool | None
) -> None:
    table = replace(
        replica(used=4),
        waiting=waiting,
        requests_deferred=deferred,
        requests_waiting=requests,
    )
    assert load(status(table)).full is full


def test_one_free_slot_anywhere_is_not_full() -> None:
    full = replace(replica(used=4), waiting=2)
    assert load(status(full, replica(used=3))).full is False
    assert load(status(full, replica(used=None))).full is True
    assert load(status(replica(used=None))).full is None


def test_adapters_are_distinct_over_replicas() -> None:
    one = replace(
        replica(used=2),
        adapters=order_adapters(
            {"a": AdapterState.ACTIVE, "b": AdapterState.WAITING, "c": AdapterState.IDLE}
        ),
    )
    two = replace(replica(used=1), adapters=order_adapters({"a": AdapterState.ACTIVE}))
    assert load(status(one, two)).distinct == 2
    assert load(status(one, replica(used=0))).distinct == 2
    assert load(status(one, replica(used=1))).distinct is None, "it does not name what it has"
    assert load(status(one, replica(used=None))).distinct is None

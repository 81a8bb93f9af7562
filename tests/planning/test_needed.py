"""Needed replicas: each constraint, what is unknown, saturation."""

from __future__ import annotations

import pytest

from exporter.cluster import Card, Unplanned
from exporter.fleet import SlotKind
from exporter.planning.demand import Seen, Tokens
from exporter.planning.load import Load, Pool
from exporter.planning.needed import Measurement, Needed, demand_of, needed_for

MEASURED = Measurement("m", 2400.0)


def pool(
    used: int,
    waiting: int = 0,
    per_replica: int = 4,
    kind: SlotKind = SlotKind.EVICTABLE,
    upper_bound: bool = False,
) -> Pool:
    return Pool(kind, used, waiting, per_replica, upper_bound)


def seen(
    *pools: Pool,
    rate: float | None = None,
    warm: bool = True,
    saturated: bool | None = False,
    maybe_saturated: bool = False,
    distinct: int | None = None,
    incomplete: bool = False,
    slots_unknown: bool = False,
    unpolled: bool = False,
    joining: bool = False,
    ready: int = 2,
) -> Seen:
    load = Load(
        ready=ready,
        incomplete=incomplete,
        pools=pools,
        slots_unknown=slots_unknown,
        unpolled=unpolled,
        distinct=distinct,
    )
    tokens = Tokens(rate, None if rate is None else rate * 3)
    kinds = frozenset({"generation", "total"} if warm else ())
    return Seen(load, tokens, tokens, kinds, joining, saturated, maybe_saturated)


def target(tokens: float | None, **rest: int) -> Card:
    return Card("m", target=tokens, min_replicas=rest.get("minimum", 0))


@pytest.mark.parametrize(
    ("demand", "needed"),
    [(1.0, 1), (2400.0, 1), (2400.1, 2), (0.1 + 0.2, 1), (7200.000001, 3), (None, None)],
)
def test_a_target_needs_replicas_for_its_tokens(demand: float | None, needed: int | None) -> None:
    assert needed_for(target(demand), MEASURED).replicas == needed


def test_the_constraints_are_told_and_spare_replicas_come_on_top() -> None:
    card = Card("m", min_replicas=3, spare_replicas=2, utilization=0.5, target=4800.0)
    assert needed_for(card, MEASURED) == Needed(6, {"minimum": 3, "throughput": 4})
    with_slots = needed_for(card, MEASURED, seen(pool(21)))
    assert with_slots == Needed(8, {"minimum": 3, "throughput": 4, "slots": 6})


def test_the_hair_of_floating_point_is_no_replica() -> None:
    assert 0.1 * 3 / 0.1 > 3
    assert needed_for(target(0.1 * 3), Measurement("m", 0.1)).replicas == 3


def test_demand_is_the_target_or_else_the_highest_of_the_measured_kind() -> None:
    at_work = seen(pool(1), rate=5000.0)
    assert demand_of(target(100.0), MEASURED, at_work) == 100.0
    assert demand_of(Card("m"), MEASURED, at_work) == 5000.0
    assert demand_of(Card("m"), Measurement("m", 2400.0, "total"), at_work) == 15000.0
    assert needed_for(Card("m"), MEASURED, at_work).by["throughput"] == 3
    assert demand_of(Card("m"), None, at_work) is None


def test_no_demand_needs_nothing_but_the_minimum() -> None:
    idle = seen(pool(0), rate=0.0)
    assert needed_for(Card("m"), MEASURED, idle).replicas == 0
    assert needed_for(target(None, minimum=2), MEASURED, idle).replicas == 2


@pytest.mark.parametrize(
    ("pools", "reserve", "needed"),
    [
        ((pool(8),), None, 2),
        ((pool(9),), None, 3),
        ((pool(8, waiting=1),), None, 3),
        ((pool(7),), 1, 2),
        ((pool(8),), 1, 3),
        ((pool(8, kind=SlotKind.EXCLUSIVE),), None, 3),
        ((pool(8, kind=SlotKind.EXCLUSIVE),), 0, 2),
        ((pool(0, kind=SlotKind.EXCLUSIVE),), None, 1),
        ((pool(5), pool(5, kind=SlotKind.EXCLUSIVE)), None, 4),
        ((pool(0),), None, 0),
    ],
)
def test_slots(pools: tuple[Pool, ...], reserve: int | None, needed: int) -> None:
    found = needed_for(Card("m", reserve=reserve), None, seen(*pools))
    assert found == Needed(needed, {"minimum": 0, "slots": needed})


@pytest.mark.parametrize(
    ("card", "measured", "was_seen", "reason"),
    [
        (Card("m"), None, None, Unplanned.UNMEASURED),
        (Card("m", min_replicas=5), None, seen(), Unplanned.UNMEASURED),
        (target(100.0), None, seen(pool(1)), Unplanned.UNMEASURED),
        (Card("m"), MEASURED, None, Unplanned.NO_DEMAND),
        (Card("m"), MEASURED, seen(pool(1), rate=None), Unplanned.NO_DEMAND),
        (Card("m"), MEASURED, seen(pool(1), rate=None, warm=False), Unplanned.NO_DEMAND),
        (Card("m"), MEASURED, seen(pool(1), rate=9.0, warm=False), Unplanned.WARMING_UP),
        (Card("m"), None, seen(pool(1), slots_unknown=True), Unplanned.SLOTS_UNKNOWN),
        (Card("m"), None, seen(pool(1), incomplete=True), Unplanned.INCOMPLETE),
        (Card("m"), None, seen(pool(1), unpolled=True), Unplanned.WARMING_UP),
        (Card("m"), None, seen(pool(4), maybe_saturated=True), Unplanned.WARMING_UP),
    ],
)
def test_missing_is_never_few(
    card: Card, measured: Measurement | None, was_seen: Seen | None, reason: Unplanned
) -> None:
    found = needed_for(card, measured, was_seen, current=3)
    assert (found.replicas, found.unplanned) == (None, (reason,))


def test_a_target_needs_no_window() -> None:
    assert needed_for(target(100.0), MEASURED, seen(pool(1), rate=9.0, warm=False)).replicas == 1


@pytest.mark.parametrize(
    ("current", "starting", "distinct", "needed"),
    [
        (2, 0, None, 3),
        (2, 1, None, 2),
        (9, 0, None, 10),
        (9, 0, 6, 10),
        (9, 0, 5, 2),
    ],
)
def test_a_saturated_model_never_looks_as_if_it_needed_less(
    current: int, starting: int, distinct: int | None, needed: int
) -> None:
    was_seen = seen(pool(8), saturated=True, distinct=distinct)
    assert needed_for(Card("m"), None, was_seen, current, starting).replicas == needed


def test_spare_replicas_do_not_come_on_top_of_what_saturation_asks_for() -> None:
    card = Card("m", spare_replicas=1)
    assert needed_for(card, None, seen(pool(8), saturated=True), 2).replicas == 3
    assert needed_for(card, None, seen(pool(8), saturated=True), 5).replicas == 6


def test_copies_are_proved_by_several_replicas_and_exact_numbers_alone() -> None:
    for load in (
        seen(pool(8), saturated=True, distinct=3, ready=1),
        seen(pool(8, upper_bound=True), saturated=True, distinct=3),
    ):
        assert needed_for(Card("m"), None, load, current=2).replicas == 3


def test_while_one_joins_no_fewer_are_needed_than_there_are() -> None:
    joins = seen(pool(1), rate=100.0, joining=True)
    assert needed_for(Card("m"), MEASURED, joins, current=5).replicas == 5
    assert needed_for(Card("m", target=100.0), MEASURED, joins, current=5).replicas == 1
    assert needed_for(Card("m"), None, joins, current=5).replicas == 1
    assert needed_for(Card("m"), MEASURED, seen(pool(1), rate=100.0), current=5).replicas == 1


def test_a_profile_that_nobody_measured_is_unmeasured() -> None:
    card = Card("m", profile="h200")
    assert needed_for(card, None, seen(pool(1))).unplanned == (Unplanned.UNMEASURED,)


@pytest.mark.parametrize(("ready", "unplanned"), [(2, ()), (3, (Unplanned.INCOMPLETE,))])
def test_a_ready_replica_that_is_no_target_makes_what_is_seen_a_part(
    ready: int, unplanned: tuple[Unplanned, ...]
) -> None:
    found = needed_for(target(4800.0), MEASURED, seen(pool(1)), current=3, ready=ready)
    assert found.unplanned == unplanned

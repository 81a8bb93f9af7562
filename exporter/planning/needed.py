"""How many replicas a model needs for its load. Pure.

The largest of the constraints that apply, plus the card's spare replicas:

- throughput = max(ceil(demand / (measured * utilization)), 1), 0 where demand is known to be 0;
- slots = ceil((used + waiting + reserve) / slots per replica), for each kind of slots;
- minimum = min_replicas, never enough alone.

Served load is not demand: of a model that is saturated at least the current replicas are needed,
and one more unless one is starting already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Le

from exporter.cluster import Card, Unplanned
from exporter.fleet import SlotKind
from exporter.planning.demand import Seen
from exporter.planning.load import Load

HAIR = 1e-9
"""Share by which a quotient may lie above an integer through floating point alone."""
LEAST_RATE, MOST_RATE = 1e-3, 1e12
"""Tokens per second that somebody may measure or ask for; quotients of them are exact enough."""
COPIES = 1.5
"""Used slots for each distinct adapter, from which on the same adapters sit on many replicas."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one replica served while it kept its service level."""

    model: str
    tokens_per_second: Annotated[float, Ge(LEAST_RATE), Le(MOST_RATE)]
    tokens: str = "generation"
    """Which tokens: `generation`, or `total` (prompt and generation)."""
    profile: str = ""
    measured_at: str = ""


@dataclass(frozen=True, slots=True)
class Needed:
    """Replicas that the load needs, or why nobody can tell."""

    replicas: int | None
    by: Mapping[str, int] = field(default_factory=dict)
    """What each constraint alone would need: throughput, slots, minimum."""
    unplanned: tuple[Unplanned, ...] = ()


def ceiling(quotient: float) -> int:
    """The next integer; a hair above an integer is that integer."""
    return math.ceil(quotient - HAIR * max(quotient, 1.0))


def needed_for(
    card: Card,
    measurement: Measurement | None,
    seen: Seen | None = None,
    current: int = 0,
    starting: int = 0,
    ready: int = 0,
) -> Needed:
    """Replicas for the card's target or what was seen of the load.

    `seen` None: replicas are not asked, so slots do not apply. `current` replicas hold capacity,
    `starting` ones of them do not serve yet, and `ready` ones do, as far as the cluster tells.
    """
    by = {"minimum": card.min_replicas}
    unplanned: list[Unplanned] = []
    throughput = _throughput(card, measurement, seen)
    slots = _slots(card, seen.load) if seen is not None else None
    if throughput is None and slots is None:
        # The minimum alone is never enough, and what would tell more is a measurement.
        unplanned.append(Unplanned.UNMEASURED)
    for constraint, found in (("throughput", throughput), ("slots", slots)):
        if isinstance(found, Unplanned):
            unplanned.append(found)
        elif found is not None:
            by[constraint] = found
    if seen is not None:
        # A replica that serves, and is no target: what is seen is a part.
        if seen.load.incomplete or ready > seen.load.ready:
            unplanned.append(Unplanned.INCOMPLETE)
        if seen.maybe_saturated or seen.load.unpolled:
            unplanned.append(Unplanned.WARMING_UP)
    if unplanned:
        in_order = tuple(reason for reason in Unplanned if reason in unplanned)
        return Needed(None, by, in_order)
    replicas = max(by.values()) + card.spare_replicas
    if seen is not None and seen.saturated and not _spread(seen.load):
        replicas = max(replicas, current if starting else current + 1)
    if seen is not None and seen.joining and card.target is None and throughput is not None:
        # What the new ones serve is not in the rate yet.
        replicas = max(replicas, current)
    return Needed(replicas, by)


def demand_of(card: Card, measurement: Measurement | None, seen: Seen | None) -> float | None:
    """Tokens per second that throughput is computed from; None where they are not known."""
    if card.target is not None:
        return card.target
    if seen is None or measurement is None:
        return None
    return seen.highest.of(measurement.tokens)


def _throughput(
    card: Card, measurement: Measurement | None, seen: Seen | None
) -> int | Unplanned | None:
    """None where it does not apply."""
    if measurement is None:
        applies = card.target is not None or card.profile is not None
        return Unplanned.UNMEASURED if applies else None
    demand = demand_of(card, measurement, seen)
    if demand is None:
        return Unplanned.NO_DEMAND
    if card.target is None and seen is not None and measurement.tokens not in seen.warm:
        # What was served before the start may have been more.
        return Unplanned.WARMING_UP
    served = measurement.tokens_per_second * card.utilization
    return max(ceiling(demand / served), 1) if demand else 0


def _slots(card: Card, load: Load) -> int | Unplanned | None:
    """None where the engine has no slots."""
    if load.slots_unknown:
        return Unplanned.SLOTS_UNKNOWN
    if not load.pools:
        return None
    return sum(
        -(-(pool.used + pool.waiting + _reserve(card, pool.slot_kind)) // pool.per_replica)
        for pool in load.pools
    )


def _reserve(card: Card, kind: SlotKind) -> int:
    if card.reserve is not None:
        return card.reserve
    return 1 if kind is SlotKind.EXCLUSIVE else 0


def _spread(load: Load) -> bool:
    """Whether so many replicas hold the same adapters that routing helps before replicas do."""
    if load.ready < 2 or any(pool.upper_bound for pool in load.pools):
        return False
    used = sum(pool.used for pool in load.pools)
    return load.distinct is not None and used > COPIES * load.distinct

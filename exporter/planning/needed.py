"""How many replicas a model needs for its load. Pure.

The largest of the constraints that apply, plus the card's spare replicas:

- throughput = max(ceil(demand / (measured * utilization)), 1), 0 where demand is known to be 0;
- slots = ceil((used + waiting + reserve) / slots per replica);
- minimum = min_replicas, never enough alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.cluster import Card, Unplanned

HAIR = 1e-9
"""Share by which a quotient may lie above an integer through floating point alone."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one replica served while it kept its service level."""

    model: str
    tokens_per_second: float
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


def needed_for(card: Card, demand: float | None, measurement: Measurement | None) -> Needed:
    """Replicas for a demand in tokens per second of the kind that was measured.

    `demand` None: not known. The card's own target is the caller's business.
    """
    by = {"minimum": card.min_replicas}
    if measurement is None:
        return Needed(None, by, (Unplanned.UNMEASURED,))
    if demand is None:
        return Needed(None, by, (Unplanned.NO_DEMAND,))
    served = measurement.tokens_per_second * card.utilization
    by["throughput"] = max(ceiling(demand / served), 1) if demand else 0
    return Needed(max(by.values()) + card.spare_replicas, by)

"""Slots of replicas, models and the fleet.

A replica is reduced over exporters first, so that two that watch it count once; free is derived
after that. Kinds of slots are never added up together.
"""

from __future__ import annotations

from collections.abc import Iterator

from alerts.generator.inputs import Inputs
from alerts.generator.promql import Scope
from alerts.generator.rules import Clause, Recording, record

TREND_WINDOW = "30m"
"""Of the forecast: windows as long as the horizon keep one lost slot from looking like seven."""


def rules(inputs: Inputs) -> Iterator[Recording]:
    """The rules in the order in which they depend on each other."""
    s = Scope.of(inputs)
    slots = ("model", "replica_id", "slot_kind")
    pool = s.by("model", "slot_kind")
    for what in ("max", "used"):
        yield record(f"replica:lora_{what}:max", s.max_by(s.series(f"lora_{what}"), *slots))
    yield record(
        "replica:lora_free:max", "clamp_min(replica:lora_max:max - replica:lora_used:max, 0)"
    )
    for what in ("max", "used", "free"):
        yield record(f"model:lora_{what}:sum", f"sum {pool} (replica:lora_{what}:max)")
    # Only replicas that tell both: a known max without a known used is no free slot.
    yield record(
        "model:lora_used:ratio",
        f"model:lora_used:sum / (sum {pool} (replica:lora_max:max and replica:lora_used:max) > 0)",
    )
    yield record(
        "model:lora_free_after_loss:sum",
        f"model:lora_free:sum - max {pool} (replica:lora_max:max and replica:lora_free:max)",
    )
    trend = f'deriv(model:lora_free:sum{{slot_kind="exclusive"}}[{TREND_WINDOW}])'
    yield record(
        "model:lora_free:seconds_to_zero",
        f'model:lora_free:sum{{slot_kind="exclusive"}} / -({trend} < 0)',
    )
    fleet = s.by("slot_kind")
    for what in ("max", "used", "free"):
        yield record(f"fleet:lora_{what}:sum", f"sum {fleet} (model:lora_{what}:sum)")
    yield record(
        "fleet:lora_used:ratio",
        f"fleet:lora_used:sum / (sum {fleet} (replica:lora_max:max and replica:lora_used:max) > 0)",
    )


_HELD = 'model:lora_free:sum{slot_kind="exclusive"}'


def full(window: str) -> Clause:
    """No held slot was free for the window; one reading of 0 is not enough."""
    return Clause("and", f"max_over_time({_HELD}[{window}]) == 0")


def known_before(window: str) -> Clause:
    """Not the only reading of the window: an exporter may read something else once."""
    return Clause("and", f"last_over_time({_HELD}[{window}] offset {window})")

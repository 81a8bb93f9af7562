"""When an alert fires, from when its expression has a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Firing:
    """From one step until before another."""

    first: int
    end: int


def firing(active: Iterable[int], for_: int, keep: int, steps: int) -> list[Firing]:
    """What Prometheus makes of one labelled result: `for` and `keep_firing_for`, in steps.

    `active` has the steps at which there was a result, in order. An alert fires at the first of
    consecutive ones that is `for` after the first. It ends at the first step without a result that
    is `keep_firing_for` after the first step without one.
    """
    found: list[Firing] = []
    began, last, fires = -1, -1, -1

    def close() -> None:
        if fires >= 0:
            found.append(Firing(fires, min(last + 1 + keep, steps)))

    for step in active:
        gap = step - last - 1
        if began < 0 or (gap and (fires < 0 or gap > keep)):
            close()
            began, fires = step, -1
        last = step
        if fires < 0 and step - began >= for_:
            fires = step
    close()
    return found

"""When free slots really reached zero, and how fast: from the fleet, not from its series."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.replay.world import HOUR, History, inside, minutes

LASTS = minutes(3)
"""Shorter touches of zero are no exhaustion: whoever asks again a moment later finds a slot."""
APART = minutes(30)
"""Exhaustions that are nearer are one."""
BEFORE = 2 * HOUR
NEVER = -1
SIZES = ((8, "4 to 8"), (32, "9 to 32"), (128, "33 to 128"), (10_000, "over 128"))
BUILDS = (
    (30, "at most 30 min"),
    (60, "30 min to 1 h"),
    (120, "1 to 2 h"),
    (100_000, "over 2 h"),
)


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """All slots of a pool were held."""

    model: str
    first: int
    end: int
    build: float
    """Minutes in which it built."""
    cause: str
    size: str
    noise: str

    @property
    def slow(self) -> bool:
        """Whether it built over more than half an hour."""
        return self.build > 30

    @property
    def speed(self) -> str:
        """The class of its build."""
        return next(name for limit, name in BUILDS if self.build <= limit)


def build_minutes(free: list[int], total: list[int], at: int) -> float:
    """How long the fill took that ended at a step.

    Twice the time since the pool last had more than half of the most free slots that it had within
    the two hours before: noise around a level does not count, and an even fill gives its length,
    two hours being the lower bound of all that took longer. A pool that stood at its last slot for
    these two hours filled up before them. What was before the pool's size changed does not count.
    """
    first = at
    while first > max(at - BEFORE, 0) and total[first - 1] == total[at]:
        first -= 1
    before = free[first:at]
    most = max(before, default=0)
    if most <= 1:
        return 2 * len(before) / minutes(1)
    lately = next(n for n, value in enumerate(reversed(before), 1) if value * 2 > most)
    return 2 * (lately - 1) / minutes(1)


def exhaustions(history: History) -> list[Exhaustion]:
    """Each time the pool was full for minutes."""
    spans: list[list[int]] = []
    step, free = 0, history.free
    while step < len(free):
        end = step
        while end < len(free) and free[end] == 0:
            end += 1
        if end - step >= LASTS:
            if spans and step - spans[-1][1] < APART:
                spans[-1][1] = end
            else:
                spans.append([step, end])
        step = max(end, step + 1)
    return [_told(history, first, end) for first, end in spans if first >= BEFORE]


def _told(history: History, first: int, end: int) -> Exhaustion:
    pool = history.pool
    peak = max(history.total[max(first - BEFORE, 0) : first + 1])
    return Exhaustion(
        model=pool.name,
        first=first,
        end=end,
        build=build_minutes(history.free, history.total, first),
        cause=_cause(history, first),
        size=next(name for limit, name in SIZES if peak <= limit),
        noise=pool.noise,
    )


def _cause(history: History, at: int) -> str:
    near = [(first, end + minutes(15)) for first, end in history.upheavals]
    if inside(at, near):
        return "rollout or lost replica"
    for ramp in history.ramps:
        if ramp.first <= at < ramp.first + ramp.length + ramp.hold:
            return f"incident, {ramp.shape}"
    if history.pool.growth:
        return "growth"
    return "daily peak" if history.pool.daily else "chance"


def reached_zero(history: History, first: int, end: int) -> bool:
    """Whether the last slot was taken, if only for a moment."""
    return 0 in history.free[first:end]

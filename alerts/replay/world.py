"""What a made-up fleet is: pools and their faults, and what really happened in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

STEP = 30
"""Seconds between scrapes, and between evaluations."""
START = 1_701_043_200
"""A Monday, midnight UTC."""
HOUR = 3600 // STEP
DAY = 24 * HOUR
WEEK = 7 * DAY

Noise = Literal["calm", "lively", "churning"]


def minutes(count: float) -> int:
    """Steps of so many minutes."""
    return int(count * 60 / STEP)


@dataclass(frozen=True, slots=True)
class Pool:
    """A model, and how its slots are asked for."""

    name: str
    kind: Literal["exclusive", "evictable"]
    replicas: int
    slots: int
    """Per replica, at the start."""
    load: float
    """Held or in flight on average, as a share of the slots."""
    noise: Noise = "calm"
    daily: float = 0
    """How far the day swings around the average, as a share of it; weekends stay at the bottom."""
    growth: float = 0
    """Added to the load each day, as a share of it, until replicas are added."""
    ramps: bool = False
    """Whether incidents that fill the pool are put in."""
    sticky: bool = False
    """Whether sessions prefer some replicas over others."""
    nights_at_zero: bool = False
    doubles: bool = False
    """Whether rollouts change the slots of a replica between `slots` and twice as many."""
    tells_waiting: bool = True

    @property
    def size(self) -> int:
        """Slots at the start."""
        return self.replicas * self.slots


@dataclass(frozen=True, slots=True)
class Run:
    """A value from one step until before another."""

    first: int
    end: int
    value: int


@dataclass(slots=True)
class Replica:
    """One replica's life as its target and its series tell it."""

    name: str
    slots: int
    version: str
    placed: int
    first: int
    """When it is ready, which is later than placed."""
    end: int
    down: list[tuple[int, int]] = field(default_factory=list)
    used: list[Run] = field(default_factory=list)
    full: list[Run] = field(default_factory=list)
    """Full polls of three, by step."""
    waiting: list[Run] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ramp:
    """An incident: more and more slots are taken, and given back later."""

    first: int
    length: int
    hold: int
    reach: float
    """Share of what was free when it began."""
    shape: Literal["even", "speeding up", "in lumps"]


@dataclass(slots=True)
class History:
    """What really happened in a pool, which the rules never see."""

    pool: Pool
    steps: int
    replicas: list[Replica] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    """By step; -1 where no replica was up."""
    total: list[int] = field(default_factory=list)
    largest: list[int] = field(default_factory=list)
    """Slots of the largest replica."""
    current: list[int] = field(default_factory=list)
    """Replicas that are placed."""
    offered: list[float] = field(default_factory=list)
    """Evictable: load as a share of the slots, without noise and without the limit."""
    ramps: list[Ramp] = field(default_factory=list)
    upheavals: list[tuple[int, int]] = field(default_factory=list)
    """Rollouts and replicas that died."""
    nodes_lost: list[tuple[int, int]] = field(default_factory=list)
    """While a replica was down and not placed anew."""


@dataclass(slots=True)
class Fleet:
    """All pools, and the one exporter that watches them."""

    steps: int
    histories: dict[str, History] = field(default_factory=dict)
    exporter_down: list[tuple[int, int]] = field(default_factory=list)
    """Missed scrapes and restarts."""


def inside(step: int, spans: list[tuple[int, int]]) -> bool:
    """Whether a step lies in one of the spans."""
    return any(first <= step < end for first, end in spans)


def pools() -> tuple[Pool, ...]:
    """The models that are replayed."""
    return (
        Pool("calm-4", "exclusive", 1, 4, 0.30, ramps=True),
        Pool("lively-4", "exclusive", 1, 4, 0.30, "lively", ramps=True),
        Pool("calm-8", "exclusive", 1, 8, 0.40, ramps=True, nights_at_zero=True),
        Pool("lively-8", "exclusive", 2, 4, 0.40, "lively", ramps=True),
        Pool("daily-12", "exclusive", 3, 4, 0.45, daily=0.6, ramps=True),
        Pool("churning-16", "exclusive", 2, 8, 0.40, "churning", ramps=True),
        Pool("calm-16", "exclusive", 2, 8, 0.50, ramps=True, doubles=True),
        Pool("lively-24", "exclusive", 3, 8, 0.45, "lively", ramps=True, sticky=True),
        Pool("growing-32", "exclusive", 4, 8, 0.50, "lively", growth=0.05),
        Pool("daily-32", "exclusive", 4, 8, 0.55, daily=0.7),
        Pool("calm-40", "exclusive", 5, 8, 0.50, ramps=True),
        Pool("churning-48", "exclusive", 6, 8, 0.50, "churning", daily=0.5, ramps=True),
        Pool("growing-64", "exclusive", 4, 16, 0.60, daily=0.5, growth=0.03),
        Pool("lively-96", "exclusive", 12, 8, 0.50, "lively", ramps=True, doubles=True),
        Pool("daily-128", "exclusive", 8, 16, 0.60, "lively", daily=0.6, ramps=True),
        Pool("churning-256", "exclusive", 16, 16, 0.60, "churning", ramps=True),
        Pool("large-600", "exclusive", 75, 8, 0.55, "lively", daily=0.4, ramps=True),
        Pool("cache-4", "evictable", 1, 4, 0.40, daily=0.5, nights_at_zero=True),
        Pool("cache-16", "evictable", 2, 8, 0.50, "lively", daily=0.6),
        Pool("cache-32", "evictable", 4, 8, 0.55, daily=0.8, tells_waiting=False),
        Pool("cache-64", "evictable", 8, 8, 0.55, "churning", daily=0.7, doubles=True),
        Pool("cache-96", "evictable", 12, 8, 0.70, "lively", daily=0.5, tells_waiting=False),
    )

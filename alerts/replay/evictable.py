"""Pools that are caches: adapters are in flight for seconds, and wait while all slots work."""

from __future__ import annotations

import math
from random import Random

from alerts.replay import load
from alerts.replay.lifecycle import Lifecycle, count_current
from alerts.replay.world import DAY, HOUR, History, Pool, Replica, Run, inside, minutes

RESTLESS = {"calm": 0.7, "lively": 1.0, "churning": 1.4}
"""Spread of the load around its mean, in units of the mean's square root."""
REGISTERED = 20


def simulate(pool: Pool, random: Random, steps: int) -> History:
    """A pool's history."""
    history = History(pool, steps)
    Lifecycle(history, random).run()
    history.current = count_current(history)
    up = _up(history)
    _offer(history, random, up)
    for one in history.replicas:
        _serve(one, history, random, up)
    return history


def _up(history: History) -> list[int]:
    """Slots that are up, by step."""
    changes = [0] * (history.steps + 1)
    for one in history.replicas:
        for first, end in _lives(one):
            changes[first] += one.slots
            changes[end] -= one.slots
    found, here = [], 0
    for change in changes[: history.steps]:
        here += change
        found.append(here)
    return found


def _lives(one: Replica) -> list[tuple[int, int]]:
    edges = [one.first]
    for first, end in sorted(one.down):
        edges += [first, end]
    edges.append(one.end)
    return list(zip(edges[::2], edges[1::2], strict=True))


def _offer(history: History, random: Random, up: list[int]) -> None:
    """The load as a share of the slots: days, short bursts, and hours of overload."""
    pool = history.pool
    days = load.peaks(pool, random, history.steps)
    extra = [0.0] * history.steps
    at = 5 * HOUR
    while at < history.steps:
        overload = random.random() < 0.3
        length = minutes(random.uniform(30, 150) if overload else random.uniform(1, 6))
        height = random.uniform(0.3, 0.8) if overload else random.uniform(0.3, 1.0)
        for step in range(at, min(at + length, history.steps)):
            extra[step] = height
        at += length + int(random.expovariate(1) * DAY * 0.7)
    for step in range(history.steps):
        asked = pool.size * (pool.load * load.of_day(pool, step) * days[step // DAY] + extra[step])
        history.offered.append(asked / up[step] if up[step] else 0)
        history.total.append(up[step])


def _serve(one: Replica, history: History, random: Random, up: list[int]) -> None:
    spread = RESTLESS[history.pool.noise]
    wander = 0.0
    offered = history.offered
    for step in range(one.first, one.end):
        if not up[step] or (one.down and inside(step, one.down)):
            continue
        mean = offered[step] * one.slots
        wander = 0.6 * wander + 0.8 * random.gauss(0, 1)
        asked = max(0, round(mean + wander * spread * math.sqrt(mean)))
        used = min(asked, one.slots)
        edge = random.randint(0, 3) if asked == one.slots else 0
        one.used.append(Run(step, step + 1, used))
        one.full.append(Run(step, step + 1, 3 if asked > one.slots else edge))
        one.waiting.append(Run(step, step + 1, asked - used))

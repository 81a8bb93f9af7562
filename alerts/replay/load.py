"""How much is asked for at a time, and which incidents and faults a pool meets."""

from __future__ import annotations

import math
from random import Random
from typing import Literal, get_args

from alerts.replay.world import DAY, HOUR, WEEK, Pool, Ramp, minutes

Shape = Literal["even", "speeding up", "in lumps"]
LENGTHS = (8, 20, 35, 45, 60, 75, 90, 120, 180, 300, 480)
"""Minutes in which a ramp fills what was free."""
SHORT_OF_FULL = (0.5, 0.7, 0.85, 0.95)
PAUSE = 30 * HOUR
"""Between two ramps, on average. Half of them fill the pool, half stop short of it."""


def poisson(random: Random, mean: float) -> int:
    """A count of events that come independently."""
    if mean <= 0:
        return 0
    if mean > 30:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, random.random()
    while product > limit:
        count += 1
        product *= random.random()
    return count


def of_day(pool: Pool, step: int) -> float:
    """The load at a time as a share of the average."""
    day = step // DAY
    hour = step % DAY / HOUR
    weekend = day % 7 >= 5
    swing = -0.8 if weekend else math.sin((hour - 8) / 24 * 2 * math.pi)
    grown: float = (1 + pool.growth) ** (step / DAY)
    return (1 + pool.daily * swing) * grown


def peaks(pool: Pool, random: Random, steps: int) -> list[float]:
    """How much busier or calmer each day is than the one before."""
    return [random.lognormvariate(0, 0.08 if pool.daily else 0.03) for _ in range(steps // DAY + 1)]


def ramps(pool: Pool, random: Random, steps: int) -> list[Ramp]:
    """Incidents, far enough apart that the pool empties between them."""
    if not pool.ramps:
        return []
    found: list[Ramp] = []
    at = 4 * HOUR
    while True:
        at += int(random.expovariate(1) * PAUSE)
        length = minutes(random.choice(LENGTHS) * random.uniform(0.85, 1.15))
        hold = minutes(random.uniform(30, 180))
        filling = random.random() < 0.5
        reach = random.uniform(1.02, 1.3) if filling else random.choice(SHORT_OF_FULL)
        if at + length + hold >= steps:
            return found
        found.append(Ramp(at, length, hold, reach, random.choice(get_args(Shape))))
        at += length + hold + 5 * HOUR


def share_taken(ramp: Ramp, step: int) -> float:
    """How much of what a ramp takes it wants at a time, from 0 to 1."""
    if not ramp.first <= step < ramp.first + ramp.length + ramp.hold:
        return 0
    part = min((step - ramp.first + 1) / ramp.length, 1)
    if ramp.shape == "speeding up":
        return part * math.sqrt(part)
    if ramp.shape == "in lumps":
        return math.floor(part * 6) / 6
    return part


def rollouts(pool: Pool, random: Random, steps: int) -> list[int]:
    """When each week's rollout begins: on a working day. Pools that grow get replicas instead."""
    if pool.growth:
        return []
    return [
        week * WEEK + random.randrange(5) * DAY + random.randrange(8, 18) * HOUR
        for week in range(steps // WEEK + 1)
        if (week + 1) * WEEK <= steps
    ]


def deaths(random: Random, steps: int) -> list[tuple[int, int]]:
    """When a replica dies, and for how many steps: most come back in minutes, a few do not."""
    found: list[tuple[int, int]] = []
    at = 6 * HOUR
    while True:
        at += int(random.expovariate(1) * WEEK * 0.8)
        long = random.random() < 0.2
        down = minutes(random.uniform(20, 70) if long else random.uniform(2, 12))
        if at + down >= steps:
            return found
        found.append((at, down))
        at += down + 2 * HOUR


def exporter_outages(random: Random, steps: int) -> list[tuple[int, int]]:
    """Missed scrapes, restarts, and once in a while a longer outage."""
    found = [(at, at + 1) for at in range(2 * HOUR, steps) if random.random() < 1 / 900]
    for week in range(math.ceil(steps / WEEK)):
        for longest in (4, 4, 30):
            at = week * WEEK + random.randrange(3 * HOUR, WEEK)
            found.append((at, at + random.randint(2, longest)))
    return sorted(span for span in found if span[1] < steps)

"""Pools whose slots are held until they are released: sessions come, hold, retry and go."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from random import Random

from alerts.replay import load
from alerts.replay.lifecycle import Lifecycle, count_current
from alerts.replay.world import DAY, HOUR, History, Pool, Replica, Run, minutes

RETRIES = 15
HOLDS = {"calm": 8 * HOUR, "lively": 2 * HOUR, "churning": 3 * HOUR}
SHORT_HOLD = minutes(12)


class _Seat:
    """A replica that is up, and who holds its slots until when."""

    __slots__ = ("held", "replica", "since", "told")

    def __init__(self, replica: Replica, step: int) -> None:
        self.replica = replica
        self.held: dict[int, int] = {}
        self.told = 0
        self.since = step

    @property
    def free(self) -> int:
        return self.replica.slots - len(self.held)

    def tell(self, step: int, last: bool = False) -> None:
        """Ends a run where the number changed."""
        if last or len(self.held) != self.told:
            if step > self.since:
                self.replica.used.append(Run(self.since, step, self.told))
                full = 3 if self.told == self.replica.slots else 0
                self.replica.full.append(Run(self.since, step, full))
            self.told, self.since = len(self.held), step


class _Simulation:
    def __init__(self, history: History, random: Random) -> None:
        self.history, self.random = history, random
        self.pool: Pool = history.pool
        self.life = Lifecycle(history, random)
        self.life.run()
        history.ramps = load.ramps(self.pool, random, history.steps)
        self.days = load.peaks(self.pool, random, history.steps)
        self.seats: dict[str, _Seat] = {}
        self.where: dict[int, _Seat] = {}
        self.ends: list[tuple[int, int]] = []
        self.waiting: list[tuple[int, int, int, int]] = []
        self.number = 0
        self.starts: dict[int, list[Replica]] = defaultdict(list)
        self.stops: dict[int, list[Replica]] = defaultdict(list)
        for one in history.replicas:
            self._schedule(one)

    def _schedule(self, one: Replica) -> None:
        self.starts[one.first].append(one)
        self.stops[one.end].append(one)
        for first, end in one.down:
            self.stops[first].append(one)
            self.starts[end].append(one)

    def run(self) -> None:
        history = self.history
        ramps = iter(history.ramps)
        ramp, size, taken = next(ramps, None), 0, 0.0
        stuck = 0
        for step in range(history.steps):
            self._come_and_go(step)
            self._release(step)
            self._retry(step)
            self._arrive(step)
            if ramp is not None and step >= ramp.first:
                free = sum(seat.free for seat in self.seats.values())
                if step == ramp.first:
                    size, taken = free, 0.0
                now = load.share_taken(ramp, step) * size * ramp.reach
                end = ramp.first + ramp.length + ramp.hold
                self._take(step, self._count(now, taken), end)
                taken = max(taken, now)
                if step >= end:
                    ramp = next(ramps, None)
            self._note(step)
            stuck = stuck + 1 if history.free[-1] == 0 else 0
            if self.pool.growth and stuck == minutes(60):
                for one in self.life.add(step, math.ceil(len(self.seats) / 4)):
                    self._schedule(one)
        for seat in self.seats.values():
            seat.tell(history.steps, last=True)
        history.current = count_current(history)

    def _come_and_go(self, step: int) -> None:
        for one in self.stops.pop(step, ()):
            seat = self.seats.pop(one.name, None)
            if seat is None:
                continue
            seat.tell(step, last=True)
            for who, until in seat.held.items():
                del self.where[who]
                # Most of those who lose their slot ask for another.
                if self.seats and self.random.random() < 0.8:
                    wait = minutes(self.random.uniform(0.5, 4))
                    heapq.heappush(self.waiting, (step + wait, who, RETRIES, until - step))
        for one in self.starts.pop(step, ()):
            self.seats[one.name] = _Seat(one, step)

    def _release(self, step: int) -> None:
        while self.ends and self.ends[0][0] <= step:
            until, who = heapq.heappop(self.ends)
            seat = self.where.get(who)
            if seat is not None and seat.held.get(who) == until:
                del seat.held[who], self.where[who]

    def _retry(self, step: int) -> None:
        while self.waiting and self.waiting[0][0] <= step:
            _, who, tries, hold = heapq.heappop(self.waiting)
            if hold > 0:
                self._ask(step, who, tries, hold)

    def _arrive(self, step: int) -> None:
        if not self.seats:
            return
        pool = self.pool
        day = self.days[step // DAY]
        held = pool.size * pool.load * load.of_day(pool, step) * day
        mean = HOLDS[pool.noise]
        if step == 0:
            for _ in range(round(held)):
                self._new(step, mean)
        elif pool.noise == "churning":
            for _ in range(load.poisson(self.random, held / 2 / mean)):
                self._new(step, mean)
            for _ in range(load.poisson(self.random, held / 2 / SHORT_HOLD / 2)):
                for _ in range(self.random.choice((1, 1, 2, 4))):
                    self._new(step, SHORT_HOLD)
        else:
            for _ in range(load.poisson(self.random, held / mean)):
                self._new(step, mean)

    def _count(self, now: float, taken: float) -> int:
        if now <= taken:
            return 0
        if self.pool.noise == "calm":
            return round(now) - round(taken)
        return load.poisson(self.random, now - taken)

    def _take(self, step: int, count: int, end: int) -> None:
        for _ in range(count):
            self.number += 1
            hold = end - step + int(self.random.expovariate(1 / minutes(20)))
            self._ask(step, self.number, RETRIES, hold)

    def _new(self, step: int, mean: float) -> None:
        self.number += 1
        hold = max(1, int(self.random.expovariate(1 / mean)))
        self._ask(step, self.number, RETRIES, hold)

    def _ask(self, step: int, who: int, tries: int, hold: int) -> None:
        seat = self._room()
        if seat is None:
            if tries:
                wait = minutes(self.random.uniform(1, 3))
                heapq.heappush(self.waiting, (step + wait, who, tries - 1, hold))
            return
        seat.held[who] = step + hold
        self.where[who] = seat
        heapq.heappush(self.ends, (step + hold, who))

    def _room(self) -> _Seat | None:
        seats = [seat for seat in self.seats.values() if seat.free > 0]
        if not seats:
            return None
        if self.pool.sticky and self.random.random() < 0.7:
            return seats[0]
        return max(seats, key=lambda seat: seat.free)

    def _note(self, step: int) -> None:
        seats = self.seats.values()
        for seat in seats:
            seat.tell(step)
        history = self.history
        history.free.append(sum(seat.free for seat in seats) if seats else -1)
        history.total.append(sum(seat.replica.slots for seat in seats))
        history.largest.append(max((seat.replica.slots for seat in seats), default=0))


def simulate(pool: Pool, random: Random, steps: int) -> History:
    """A pool's history."""
    history = History(pool, steps)
    _Simulation(history, random).run()
    return history

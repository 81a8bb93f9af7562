"""When replicas come and go: rollouts with 25 % surge, nights at zero, and replicas that die."""

from __future__ import annotations

from random import Random

from alerts.replay import load
from alerts.replay.world import DAY, HOUR, History, Replica, inside, minutes

WAVES = 4
SLEEPS, WAKES = 22 * HOUR, 30 * HOUR


class Lifecycle:
    """Fills a history with its replicas."""

    def __init__(self, history: History, random: Random) -> None:
        self._history = history
        self._random = random
        self._slots = history.pool.slots
        self._generation = 0
        self._here: list[Replica] = []

    def run(self) -> None:
        """All that happens to the replicas, load aside."""
        pool, steps = self._history.pool, self._history.steps
        self._here = [self._new(0, 0, n) for n in range(pool.replicas)]
        events = [(at, "rollout") for at in load.rollouts(pool, self._random, steps)]
        if pool.nights_at_zero:
            for day in range(0, steps, DAY):
                events += [(day + SLEEPS, "sleep"), (day + WAKES, "wake")]
        for at, what in sorted(events):
            if at < steps:
                getattr(self, f"_{what}")(at)
        self._die()

    def add(self, at: int, count: int) -> list[Replica]:
        """More replicas, that are ready some minutes later."""
        self._generation += 1
        ready = at + minutes(self._random.uniform(3, 7))
        return [self._new(at, ready, n) for n in range(count)]

    def _new(self, placed: int, ready: int, number: int) -> Replica:
        name = f"{self._history.pool.name}-{self._generation}-{number}"
        version = f"1.{self._generation}"
        one = Replica(name, self._slots, version, placed, ready, self._history.steps)
        self._history.replicas.append(one)
        return one

    def _rollout(self, at: int) -> None:
        pool = self._history.pool
        if pool.doubles:
            self._slots = 3 * pool.slots - self._slots
        self._generation += 1
        began, old = at, list(self._here)
        new: list[Replica] = []
        for wave in range(WAVES):
            group = old[wave * len(old) // WAVES : (wave + 1) * len(old) // WAVES]
            if not group:
                continue
            ready = at + minutes(self._random.uniform(4, 8))
            new += [self._new(at, ready, len(new) + n) for n in range(len(group))]
            at = ready + minutes(self._random.uniform(1, 2))
            for one in group:
                one.end = at
        self._here = new
        self._history.upheavals.append((began, at))

    def _sleep(self, at: int) -> None:
        for one in self._here:
            one.end = at
        self._here = []

    def _wake(self, at: int) -> None:
        self._here = self.add(at, self._history.pool.replicas)

    def _die(self) -> None:
        for at, length in load.deaths(self._random, self._history.steps):
            alive = [r for r in self._history.replicas if r.first <= at and at + length < r.end]
            if not alive or inside(at, self._history.upheavals):
                continue
            self._random.choice(alive).down.append((at, at + length))
            self._history.upheavals.append((at, at + length))
            if self._random.random() < 0.3:
                self._history.nodes_lost.append((at, at + length))


def count_current(history: History) -> list[int]:
    """Replicas that are placed, by step."""
    changes = [0] * (history.steps + 1)
    for one in history.replicas:
        changes[one.placed] += 1
        changes[one.end] -= 1
    for first, end in history.nodes_lost:
        changes[first] -= 1
        changes[end] += 1
    found, here = [], 0
    for change in changes[: history.steps]:
        here += change
        found.append(here)
    return found

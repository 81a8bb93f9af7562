"""What was seen of each model's load over time: tokens per second, and saturation.

Rates come from the replicas' counters. A counter that fell was reset, so what it shows was served
since; a replica counts from its second reading on; one that was not read for a while adds the
average over that time once it is read again. Nothing else is inferred.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from exporter.fleet import Fleet, ReplicaTable
from exporter.planning.load import Load, loads

SATURATED_SECONDS = 120.0
"""For how long replicas must be full, and work wait, before the load that is seen is taken for a
lower bound."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens per second by what is counted. None: not known."""

    generation: float | None = None
    total: float | None = None
    """Prompt and generation."""

    def of(self, kind: str) -> float | None:
        """The rate of the kind that a measurement counts, `generation` or `total`."""
        return self.total if kind == "total" else self.generation


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a model's load until now."""

    load: Load = field(default_factory=Load)
    observed: Tokens = Tokens()
    """Served between the last two readings of each replica, added up."""
    highest: Tokens = Tokens()
    """The highest that was observed within the window."""
    warm: bool = False
    """Whether the model was observed for as long as the window."""
    saturated: bool | None = None
    """Whether it was full, with work waiting, for SATURATED_SECONDS. None: nobody could tell."""
    maybe_saturated: bool = False
    """Whether it is full, was so since it is watched, and that is not long enough to tell."""


class _Highest:
    """The highest value of a window that moves on."""

    def __init__(self) -> None:
        self._falling: deque[tuple[float, float]] = deque()

    def add(self, at: float, value: float) -> None:
        while self._falling and self._falling[-1][1] <= value:
            self._falling.pop()
        self._falling.append((at, value))

    def since(self, oldest: float) -> float | None:
        while self._falling and self._falling[0][0] < oldest:
            self._falling.popleft()
        return self._falling[0][1] if self._falling else None


@dataclass(slots=True)
class _Counter:
    """A replica's counters at its last reading, and how they rose since the one before."""

    at: float
    prompt: float | None
    generation: float | None
    rates: Tokens | None = None
    """None: it was read once."""


class _Watched:
    """One model."""

    def __init__(self) -> None:
        self.counters: dict[str, _Counter] = {}
        self.highest = {"generation": _Highest(), "total": _Highest()}
        self.complete = False
        """Whether all replicas once had a rate at the same time; from then on others may join."""
        self.observed_since: float | None = None
        self.watched_since: float | None = None
        """Since when it can be told without a gap whether it is full."""
        self.full_since: float | None = None


class Watch:
    """Follows all models. `step` is called with the fleet again and again."""

    def __init__(self) -> None:
        self._models: dict[str, _Watched] = {}

    def step(self, fleet: Fleet, window: float) -> dict[str, Seen]:
        """What was seen up to `fleet`, by model. `window`: seconds in which the highest counts."""
        found = loads(fleet)
        readings: dict[str, list[tuple[str, float, ReplicaTable]]] = {model: [] for model in found}
        for status, replica in fleet.replicas():
            if status.table_at is not None:
                reading = (replica.replica_id, status.table_at, replica.table)
                readings[replica.table.model].append(reading)
        for model in self._models.keys() - found.keys():
            del self._models[model]
        return {
            model: _step(
                self._models.setdefault(model, _Watched()),
                load,
                readings[model],
                fleet.at,
                window,
            )
            for model, load in found.items()
        }


def _step(
    model: _Watched,
    load: Load,
    readings: list[tuple[str, float, ReplicaTable]],
    now: float,
    window: float,
) -> Seen:
    for replica, at, table in readings:
        model.counters[replica] = _read(model.counters.get(replica), at, table)
    for replica in [name for name, its in model.counters.items() if its.at < now - window]:
        del model.counters[replica]
    observed = _observed(model, [replica for replica, _, _ in readings])
    for kind, highest in model.highest.items():
        value = observed.of(kind)
        if value is not None:
            highest.add(now, value)
    highest_of = {kind: its.since(now - window) for kind, its in model.highest.items()}
    if all(value is None for value in highest_of.values()):
        model.observed_since = None
    elif model.observed_since is None:
        model.observed_since = now
    if load.full is None:
        model.watched_since = None
    elif model.watched_since is None:
        model.watched_since = now
    if not load.full:
        model.full_since = None
    elif model.full_since is None:
        model.full_since = now
    return Seen(
        load=load,
        observed=observed,
        highest=Tokens(**highest_of),
        warm=model.observed_since is not None and now - model.observed_since >= window,
        saturated=_saturated(model, load, now),
        maybe_saturated=model.full_since is not None
        and model.full_since == model.watched_since
        and now - model.full_since < SATURATED_SECONDS,
    )


def _read(before: _Counter | None, at: float, table: ReplicaTable) -> _Counter:
    counter = _Counter(at, table.prompt_tokens, table.generation_tokens)
    if before is None:
        return counter
    seconds = at - before.at
    if seconds <= 0:
        return before
    prompt = _rise(before.prompt, counter.prompt)
    generation = _rise(before.generation, counter.generation)
    total = None if prompt is None or generation is None else prompt + generation
    counter.rates = Tokens(
        None if generation is None else generation / seconds,
        None if total is None else total / seconds,
    )
    return counter


def _rise(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    return after - before if after >= before else after


def _observed(model: _Watched, replicas: Iterable[str]) -> Tokens:
    rates = [model.counters[replica].rates for replica in replicas]
    known = [its for its in rates if its is not None]
    if rates and len(known) == len(rates):
        model.complete = True
    if not known or not model.complete:
        # What some of them served, at a start, is not what all of them did.
        model.complete = model.complete and bool(rates)
        return Tokens()
    return Tokens(_sum(its.generation for its in known), _sum(its.total for its in known))


def _sum(rates: Iterable[float | None]) -> float | None:
    """The sum; None where one is not known."""
    added = 0.0
    for rate in rates:
        if rate is None:
            return None
        added += rate
    return added


def _saturated(model: _Watched, load: Load, now: float) -> bool | None:
    if load.full is None:
        return None
    return model.full_since is not None and now - model.full_since >= SATURATED_SECONDS

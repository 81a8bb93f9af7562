"""Rendering a fleet, beside the client library's `generate_latest` on the same samples."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from exporter.exposition.fleet import Exposition
from exporter.fleet import (
    AdapterState,
    ReplicaStatus,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
    TargetStatus,
    order_adapters,
)
from tests.benchmarks.measure import cpu_seconds, ratio, shown

ADAPTERS = 80
HEADER = (
    "Samples",
    "Replicas",
    "Case",
    "At the polls",
    "At the scrape",
    "`generate_latest`",
    "Ratio at the scrape",
    "Ratio in all",
)


def status(number: int, turn: int) -> TargetStatus:
    """One replica with about a hundred samples. `turn`: what changes from poll to poll."""
    states = {
        f"customer-{number % 7}-adapter-{n}": (
            AdapterState.ACTIVE if (n + turn) % ADAPTERS < 6 else AdapterState.REGISTERED
        )
        for n in range(ADAPTERS)
    }
    table = ReplicaTable(
        model=f"model-{number % 60}",
        engine="vllm",
        slot_kind=SlotKind.EVICTABLE,
        source=Source.ACTIVITY,
        version="0.32.0",
        max=8,
        used=turn % 9,
        registered=ADAPTERS,
        adapters=order_adapters(states),
        prompt_tokens=1_000_000.0 + 997 * turn,
        generation_tokens=2_000_000.0 + 991 * turn,
        requests_running=float(turn % 16),
        requests_waiting=float(turn % 5),
        requests_deferred=float(turn % 3),
    )
    replica = ReplicaStatus(table, f"10.0.{number // 250}.{number % 250}:8000", 100 + turn, turn)
    return TargetStatus(
        Target(f"http://{replica.replica_id}", "g"),
        engine="vllm",
        up=True,
        polls=100 + turn,
        failures=0,
        last_success=1796074641.25 + 10 * turn,
        duration=0.0123 + turn / 1e6,
        replicas=(replica,),
    )


class _Same(Collector):
    """Families that were made before, so that only their rendering is measured."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def filled(replicas: int) -> Exposition:
    """An exposition of so many replicas."""
    exposition = Exposition(200)
    for number in range(replicas):
        exposition.update(status(number, 0))
    return exposition


def rows(sizes: tuple[int, ...] = (10, 1000, 5000)) -> list[tuple[str, ...]]:
    """Lines for each size: nothing changed, every table changed, all rendered anew."""
    found: list[tuple[str, ...]] = []
    for replicas in sizes:
        exposition = filled(replicas)
        text = exposition.join(False).decode()
        samples = sum(not line.startswith("#") for line in text.splitlines())
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Same(list(text_string_to_metric_families(text))))
        assert generate_latest(registry).count(b"\n") >= samples
        peer = cpu_seconds(lambda registry=registry: generate_latest(registry), 3)  # type: ignore[misc]
        turns = [[status(number, turn) for number in range(replicas)] for turn in range(1, 6)]
        # Adapters have been in each state before, as in a fleet that has run for a while.
        for turn in turns:
            _update(exposition, turn)
        polls = cpu_seconds(_Turns(exposition, turns), 5)
        scrape = cpu_seconds(Joins(exposition))
        anew = cpu_seconds(lambda turn=turns[0]: _update(Exposition(200), turn), 3)  # type: ignore[misc]
        again = cpu_seconds(lambda e=exposition: e.chunks(False))  # type: ignore[misc]
        for case, at_polls, at_scrape in (
            ("nothing changed", 0.0, again),
            ("every table changed", polls, scrape),
            ("all new", anew, scrape),
        ):
            whole = at_polls + at_scrape
            found.append(
                (
                    f"{samples:,}",
                    f"{replicas:,}",
                    case,
                    shown(at_polls) if at_polls else "nothing",
                    shown(at_scrape),
                    shown(peer),
                    ratio(peer, at_scrape),
                    ratio(peer, whole),
                )
            )
    return found


class _Turns:
    """Each call is a poll of every replica in which every table changed."""

    def __init__(self, exposition: Exposition, turns: list[list[TargetStatus]]) -> None:
        self._exposition = exposition
        self._turns = turns
        self._next = 0

    def __call__(self) -> None:
        _update(self._exposition, self._turns[self._next % len(self._turns)])
        self._next += 1


def _update(exposition: Exposition, statuses: list[TargetStatus]) -> None:
    for one in statuses:
        exposition.update(one)


class Joins:
    """Each call is the join of a scrape after something changed."""

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition
        self._statuses = (status(0, 1), status(0, 2))
        self._next = 0

    def __call__(self) -> tuple[bytes, ...]:
        self._next += 1
        self._exposition.update(self._statuses[self._next % 2])
        return self._exposition.chunks(False)

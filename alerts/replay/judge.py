"""Which firings were false, what was missed, and how long before exhaustion it was announced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from alerts.replay.firing import Firing
from alerts.replay.prometheus import Labels
from alerts.replay.truth import Exhaustion, reached_zero
from alerts.replay.world import HOUR, Fleet, History, Replica, Run, minutes

Firings: TypeAlias = Mapping[str, Mapping[Labels, list[Firing]]]
"""By alert and by the labels of its result."""
Told: TypeAlias = Mapping[str, str]
ANNOUNCE = ("LoraSlotsFillingUp", "LoraSlotsAlmostExhausted")
IN_TIME = 10
"""Minutes ahead."""
_BRIDGED = minutes(30)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a true firing of an alert is."""

    true: str
    """In words, for the page."""
    check: Callable[[Fleet, Told, Firing], bool]
    chances: Callable[[Fleet], list[tuple[str, int, int]]] | None = None
    """When it should have fired, with the label that says where; None: not counted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one alert did."""

    alert: str
    fired: int
    false: int
    chances: int | None
    missed: int


def _history(fleet: Fleet, told: Told) -> History:
    return fleet.histories[told["model"]]


def _exhausted(fleet: Fleet, told: Told, one: Firing) -> bool:
    free = _history(fleet, told).free
    return not any(free[one.first - minutes(2) : one.first + 1])


def _almost(fleet: Fleet, told: Told, one: Firing) -> bool:
    history = _history(fleet, told)
    return history.free[one.first] <= max(history.total[one.first] * 0.2, 2)


def _filling(fleet: Fleet, told: Told, one: Firing) -> bool:
    until = max(one.first + HOUR, one.end + minutes(30))
    return reached_zero(_history(fleet, told), one.first, until)


def _not_survived(fleet: Fleet, told: Told, one: Firing) -> bool:
    history = _history(fleet, told)
    steps = range(max(one.first - minutes(30), 0), one.first)
    short = sum(history.free[step] < history.largest[step] for step in steps)
    return short * 2 > len(steps)


def _busy(window: int, share: float) -> Callable[[Fleet, Told, Firing], bool]:
    def check(fleet: Fleet, told: Told, one: Firing) -> bool:
        offered = _history(fleet, told).offered[max(one.first - minutes(window), 0) : one.first]
        return sum(offered) >= share * len(offered)

    return check


def _overloads(tells: bool, least: int) -> Callable[[Fleet], list[tuple[str, int, int]]]:
    def chances(fleet: Fleet) -> list[tuple[str, int, int]]:
        found = []
        for name, history in fleet.histories.items():
            if history.offered and history.pool.tells_waiting is tells:
                over = [step for step, load in enumerate(history.offered) if load > 1.2]
                found += [(name, *span) for span in _spans(over) if span[1] - span[0] >= least]
        return found

    return chances


def _spans(steps: list[int]) -> list[tuple[int, int]]:
    if not steps:
        return []
    cuts = [n + 1 for n, (a, b) in enumerate(pairwise(steps)) if b - a > 1]
    edges = [0, *cuts, len(steps)]
    return [(steps[a], steps[b - 1] + 1) for a, b in pairwise(edges)]


def _replicas(fleet: Fleet) -> dict[str, tuple[History, Replica]]:
    return {one.name: (h, one) for h in fleet.histories.values() for one in h.replicas}


def _outages(fleet: Fleet) -> list[tuple[str, int, int]]:
    return [
        (f"http://{name}:8000", first, end)
        for name, (_, one) in _replicas(fleet).items()
        for first, end in one.down
    ]


def _long_outages(fleet: Fleet) -> list[tuple[str, int, int]]:
    return [one for one in _outages(fleet) if one[2] - one[1] >= minutes(20)]


def _target_down(fleet: Fleet, told: Told, one: Firing) -> bool:
    return any(
        url == told["target"] and first + minutes(14) <= one.first <= end + minutes(3)
        for url, first, end in _outages(fleet)
    )


def _replicas_lost(fleet: Fleet, told: Told, one: Firing) -> bool:
    history = _history(fleet, told)
    current = history.current[one.first - minutes(8) : one.first]
    return max(current) < history.pool.replicas


def _mean(runs: list[Run], first: int, end: int) -> float:
    return sum(run.value * max(0, min(run.end, end) - max(run.first, first)) for run in runs) / max(
        end - first, 1
    )


def _replica_full(fleet: Fleet, told: Told, one: Firing) -> bool:
    _, replica = _replicas(fleet)[told["replica_id"]]
    return _mean(replica.full, one.first - minutes(20), one.first) >= 3 * 0.7


def _exporter_down(fleet: Fleet, told: Told, one: Firing) -> bool:
    del told
    return any(
        end - first >= minutes(2) and first <= one.first <= end + minutes(2)
        for first, end in fleet.exporter_down
    )


def _exporter_outages(fleet: Fleet) -> list[tuple[str, int, int]]:
    return [("lora", *span) for span in fleet.exporter_down if span[1] - span[0] >= minutes(5)]


def never(fleet: Fleet, told: Told, one: Firing) -> bool:
    """For alerts on faults that the fleet never has."""
    del fleet, told, one
    return False


NEVER = Rule("never: the fleet does not have this fault", never)
RULES: dict[str, Rule] = {
    "LoraExporterDown": Rule(
        "the exporter did not answer for two minutes", _exporter_down, _exporter_outages
    ),
    "LoraSlotsExhausted": Rule("no slot was free for the two minutes before", _exhausted),
    "LoraSlotsAlmostExhausted": Rule("at most a fifth of the slots, or two, were free", _almost),
    "LoraSlotsFillingUp": Rule(
        "free reached zero within the next hour, or half an hour after it ended", _filling
    ),
    "LoraReplicaLossNotSurvived": Rule(
        "free was below the largest replica for most of half an hour", _not_survived
    ),
    "LoraAdaptersWaiting": Rule(
        "the load was above 90 % of the slots on average over 15 minutes",
        _busy(15, 0.9),
        _overloads(True, minutes(20)),
    ),
    "LoraRequestsWaiting": Rule(
        "the load was above 90 % of the slots on average over 15 minutes",
        _busy(15, 0.9),
        _overloads(False, minutes(30)),
    ),
    "LoraSlotsFull": Rule("the load was above 80 % for half an hour", _busy(30, 0.8)),
    "LoraMoreAdaptersThanSlots": Rule("the load was above 60 % for an hour", _busy(60, 0.6)),
    "LoraTargetDown": Rule(
        "the replica was down for a quarter of an hour", _target_down, _long_outages
    ),
    "LoraReplicasLost": Rule("fewer replicas than the card's minimum", _replicas_lost),
    "LoraReplicaFullOthersFree": Rule(
        "the replica was full for most of twenty minutes", _replica_full
    ),
    "LoraExporterAbsent": NEVER,
    "LoraExporterInstanceDown": NEVER,
    "LoraSlotsReportedExhausted": NEVER,
    "LoraEngineMisconfigured": NEVER,
    "LoraAdaptersNotEverywhere": NEVER,
    "LoraMaxDisagrees": NEVER,
    "LoraSlotsOverAllocated": NEVER,
    "LoraSlotsReadWithoutStore": NEVER,
}
"""The alerts that are replayed. The others need series that the fleet does not have."""


def _of(firings: Firings, alert: str, where: str) -> list[Firing]:
    found = [
        one
        for labels, several in firings[alert].items()
        if where in dict(labels).values()
        for one in several
    ]
    return sorted(found, key=lambda one: one.first)


def verdicts(fleet: Fleet, firings: Firings, exhausted: list[Exhaustion]) -> list[Verdict]:
    """How each alert did."""
    found = []
    for alert, rule in RULES.items():
        all_ = [(dict(labels), one) for labels, some in firings[alert].items() for one in some]
        false = sum(not rule.check(fleet, labels, one) for labels, one in all_)
        chances = rule.chances(fleet) if rule.chances else None
        if alert == "LoraSlotsExhausted":
            chances = [(e.model, e.first, e.end) for e in exhausted if _lasts(fleet, e)]
        missed = sum(
            not any(
                one.first < end + minutes(4) and one.end > first
                for one in _of(firings, alert, where)
            )
            for where, first, end in chances or ()
        )
        found.append(Verdict(alert, len(all_), false, len(chances or ()) or None, missed))
    return found


def _lasts(fleet: Fleet, one: Exhaustion) -> bool:
    """Whether it began with five minutes without any free slot."""
    return not any(fleet.histories[one.model].free[one.first : one.first + minutes(5)])


def lead_minutes(firings: Firings, one: Exhaustion, alerts: tuple[str, ...] = ANNOUNCE) -> float:
    """How long before an exhaustion it was announced without a longer pause; 0: it was not."""
    earlier = [f for alert in alerts for f in _of(firings, alert, one.model) if f.first < one.first]
    begin = one.first
    for firing in sorted(earlier, key=lambda f: f.end, reverse=True):
        if firing.end < begin - _BRIDGED:
            break
        begin = min(begin, firing.first)
    return (one.first - begin) / minutes(1)


def false_forecasts(fleet: Fleet, firings: Firings, model: str) -> list[Firing]:
    """Forecasts of an exhaustion that did not come."""
    return [
        one
        for one in _of(firings, "LoraSlotsFillingUp", model)
        if not _filling(fleet, {"model": model}, one)
    ]

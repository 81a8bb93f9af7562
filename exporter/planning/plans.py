"""A model's plan, and the view of one target: needed, room, who would be stopped, what blocks."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from exporter.cluster import Blocked, Card, Cluster, States, Unplanned
from exporter.planning.demand import Seen
from exporter.planning.headroom import Headroom, Planner
from exporter.planning.needed import MOST_RATE, Measurement, ceiling, demand_of, needed_for
from exporter.planning.placing import Nearest, Placement, Stop
from exporter.planning.situation import Situation


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is planned for one model. None: not known, and `unplanned` says why."""

    model: str
    card: Card
    """One that declares nothing, where the model has none."""
    has_card: bool
    measurement: Measurement | None
    seen: Seen | None
    """None: no target serves the model."""
    current: int
    states: Mapping[str, int]
    """Current replicas that are `ready`, `starting` and `unknown`, and `draining` ones."""
    needed: int | None
    needed_by: Mapping[str, int]
    headroom: Headroom | None
    more: int | None
    fits: bool | None
    blocked: tuple[Blocked, ...]
    """What stops the replicas that are needed, or else what stops one more."""
    nearest: Nearest | None
    stops: tuple[Stop, ...]
    preempted: Mapping[str, int]
    unplanned: tuple[Unplanned, ...]

    @property
    def observed(self) -> float | None:
        """Tokens per second that the replicas serve, of the kind that was measured."""
        if self.seen is None:
            return None
        kind = self.measurement.tokens if self.measurement is not None else "generation"
        return self.seen.observed.of(kind)

    @property
    def demand(self) -> float | None:
        """Tokens per second that `throughput` is computed from."""
        return demand_of(self.card, self.measurement, self.seen)


@dataclass(frozen=True, slots=True)
class TargetView:
    """What it takes to serve so many tokens per second. Field names are those of the API."""

    model: str
    tok_per_sec: float
    per_replica_tok_per_sec: float
    profile: str
    needed: int
    current: int
    more: int
    room: int | None
    fits: bool | None
    blocked: tuple[Blocked, ...]
    preempts: tuple[str, ...]
    preempted: Mapping[str, int]
    stops: tuple[Stop, ...]
    limited: bool
    unplanned: tuple[Unplanned, ...]


class TargetError(Exception):
    """A target that cannot be viewed. `status`: the HTTP status that says the same."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def plan(planner: Planner, situation: Situation, model: str) -> Plan:
    """The plan of one model. `planner`: of the situation's cluster."""
    cluster = situation.cluster
    card = situation.card(model)
    measurement = situation.measurements.get(model)
    seen = situation.seen.get(model)
    current = cluster.current_of(model)
    states = _states(cluster, model, current, seen)
    # Where nobody tells, none is taken for starting: it may never come.
    starting = states.get("starting", 0)
    told = cluster.inventory.states if cluster.inventory is not None else None
    ready = (told or {}).get(model, States()).ready
    needed = needed_for(card, measurement, seen, current, starting, ready)
    more = None if needed.replicas is None else max(needed.replicas - current, 0)
    room = planner.headroom(model)
    if isinstance(room, Unplanned):
        headroom, unplanned, fits = None, (*needed.unplanned, room), None
        placement = blocker = Placement(0, (), ())
    else:
        headroom, unplanned = room, needed.unplanned
        fits = None if more is None else more <= room.room
        placement = blocker = planner.place(model, min(more or 0, room.room + 1))
        if not placement.blocked and room.room == 0:
            blocker = planner.place(model, 1)
    return Plan(
        model=model,
        card=card,
        has_card=model in cluster.cards,
        measurement=measurement,
        seen=seen,
        current=current,
        states=states,
        needed=needed.replicas,
        needed_by=needed.by,
        headroom=headroom,
        more=more,
        fits=fits,
        blocked=blocker.blocked,
        nearest=blocker.nearest,
        stops=placement.stops,
        preempted=placement.preempted,
        unplanned=unplanned,
    )


def _states(cluster: Cluster, model: str, current: int, seen: Seen | None) -> dict[str, int]:
    """Replicas by state, where it is told."""
    told = cluster.inventory.states if cluster.inventory is not None else None
    ready = seen.load.ready if seen is not None else 0
    if told is None:
        return {"ready": ready, "unknown": max(current - ready, 0)}
    its = told.get(model, States())
    # Ready in the cluster, and its table not known: neither ready for us nor starting.
    unknown = max(current - ready - its.starting, 0)
    return {
        "ready": ready,
        "starting": its.starting,
        "draining": its.draining,
        "unknown": unknown,
    }


def target_view(
    planner: Planner, situation: Situation, model: str, tokens_per_second: float
) -> TargetView:
    """What it takes to serve the target, whatever the load is.

    Raises TargetError: 404 for no such model, 400 for a target that is not a positive finite
    number, 409 for a model that was not measured.
    """
    if model not in situation.models:
        raise TargetError(404, unknown_model(situation, model))
    if not (math.isfinite(tokens_per_second) and tokens_per_second > 0):
        raise TargetError(400, "tokens_per_sec: wanted a positive finite number")
    if tokens_per_second > MOST_RATE:
        raise TargetError(400, f"tokens_per_sec: wanted at most {MOST_RATE:g}")
    measurement = situation.measurements.get(model)
    if measurement is None:
        raise TargetError(
            409,
            f"model {model!r} was not measured; find out what one replica serves, and tell it by "
            f"lora-exporter measured {shlex.quote(model)} --tokens-per-sec N --config.file FILE",
        )
    per_replica = measurement.tokens_per_second
    needed = max(ceiling(tokens_per_second / per_replica), 1)
    current = situation.cluster.current_of(model)
    more = max(needed - current, 0)
    room = planner.headroom(model, max(more, 1))
    placement = Placement(0, (), ())
    if isinstance(room, Headroom):
        # One beyond the room tells what blocks it.
        placement = planner.place(model, min(more, room.room + 1))
    fits = more <= room.room if isinstance(room, Headroom) else None
    return TargetView(
        model=model,
        tok_per_sec=tokens_per_second,
        per_replica_tok_per_sec=per_replica,
        profile=measurement.profile,
        needed=needed,
        current=current,
        more=more,
        room=room.room if isinstance(room, Headroom) else None,
        fits=fits,
        blocked=() if fits else placement.blocked,
        preempts=tuple(placement.preempted),
        preempted=placement.preempted,
        stops=placement.stops,
        limited=room.limited if isinstance(room, Headroom) else False,
        unplanned=() if isinstance(room, Headroom) else (room,),
    )


def unknown_model(situation: Situation, model: str) -> str:
    """That there is no such model, and which there are."""
    return f"no model {model!r}; known: {', '.join(situation.models) or 'none'}"

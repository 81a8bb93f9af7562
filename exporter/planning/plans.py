"""A model's plan, and the view of one target: needed, room, who would be stopped, what blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from exporter.cluster import Blocked, Card, Unplanned
from exporter.planning.headroom import Headroom, Planner
from exporter.planning.needed import Measurement, Needed, ceiling, needed_for
from exporter.planning.placing import Nearest, Placement, Stop


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is planned for one model. None: not known, and `unplanned` says why."""

    model: str
    current: int
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


def plan(planner: Planner, card: Card, measurement: Measurement | None) -> Plan:
    """The plan of one model, its demand being the card's target."""
    needed = needed_for(card, card.target, measurement)
    current = planner.cluster.current_of(card.model)
    more = None if needed.replicas is None else max(needed.replicas - current, 0)
    room = planner.headroom(card.model)
    unplanned = list(needed.unplanned)
    if isinstance(room, Unplanned):
        unplanned.append(room)
        return _without_room(card, current, needed, more, tuple(unplanned))
    placement = planner.place(card.model, more or 0)
    fits = None if more is None else more <= room.room
    if not placement.blocked and room.room == 0:
        blocker = planner.place(card.model, 1)
    else:
        blocker = placement
    return Plan(
        model=card.model,
        current=current,
        needed=needed.replicas,
        needed_by=needed.by,
        headroom=room,
        more=more,
        fits=fits,
        blocked=blocker.blocked,
        nearest=blocker.nearest,
        stops=placement.stops,
        preempted=placement.preempted,
        unplanned=tuple(unplanned),
    )


def _without_room(
    card: Card, current: int, needed: Needed, more: int | None, unplanned: tuple[Unplanned, ...]
) -> Plan:
    return Plan(
        model=card.model,
        current=current,
        needed=needed.replicas,
        needed_by=needed.by,
        headroom=None,
        more=more,
        fits=None,
        blocked=(),
        nearest=None,
        stops=(),
        preempted={},
        unplanned=unplanned,
    )


def target_view(
    planner: Planner, model: str, tokens_per_second: float, measurement: Measurement | None
) -> TargetView:
    """What it takes to serve the target, whatever the load is.

    Raises TargetError: 404 for no such model, 400 for a target that is not a positive finite
    number, 409 for a model that was not measured.
    """
    cluster = planner.cluster
    card = cluster.cards.get(model)
    if card is None:
        raise TargetError(404, f"no model {model!r}; known: {', '.join(sorted(cluster.cards))}")
    if not (math.isfinite(tokens_per_second) and tokens_per_second > 0):
        raise TargetError(400, "tokens_per_sec: wanted a positive finite number")
    if measurement is None:
        raise TargetError(
            409,
            f"model {model!r} was not measured; "
            "put what one replica serves into the file that measurements.file names",
        )
    per_replica = measurement.tokens_per_second
    needed = max(ceiling(tokens_per_second / per_replica), 1)
    current = cluster.current_of(model)
    more = max(needed - current, 0)
    room = planner.headroom(model, max(more, 1))
    placement = Placement(0, (), ())
    if isinstance(room, Headroom):
        placement = planner.place(model, more)
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

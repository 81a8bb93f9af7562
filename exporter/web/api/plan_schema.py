"""What the API and `--json` answer about models and owners, as types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from pydantic import Field

from exporter.cluster import RESOURCES, Blocked, Unplanned
from exporter.fleet import SlotKind
from exporter.planning import headroom, overall, placing, plans
from exporter.planning.load import Pool
from exporter.planning.needed import Measurement
from exporter.web.api.schema import Answer


class Headroom(Answer):
    """How many more replicas of a model fit."""

    model: str
    free: int | None
    """In what is free now."""
    preempting: int | None
    """More, by stopping replicas of lower-ranked classes; null where it is not computed."""
    room: int | None
    """Both together."""
    limited: bool
    """Whether counting stopped at the limit: the numbers are lower bounds."""
    reason: Unplanned | None
    """Why the numbers are not known."""


class Stop(Answer):
    """Replicas of one model that would be stopped on one node."""

    model: str
    node: str
    count: int
    keeps: int
    """Replicas that the model has left when all stops are made."""
    below_min: bool
    """Whether that is fewer than its card's min_replicas."""


class Target(Answer):
    """What it takes to serve so many tokens per second."""

    model: str
    tok_per_sec: float
    per_replica_tok_per_sec: float
    """What one replica was measured to serve."""
    profile: str
    """Of the measurement."""
    needed: int
    """Replicas."""
    current: int
    more: int
    """needed - current, at least 0."""
    room: int | None
    """How many more fit, counted up to `more` at least."""
    fits: bool | None
    blocked: list[Blocked]
    """What stops it, where it does not fit."""
    preempts: list[str]
    """Models whose replicas would be stopped."""
    preempted: dict[str, int]
    """How many of each."""
    stops: list[Stop]
    limited: bool
    """Whether counting stopped: the room is a lower bound."""
    unplanned: list[Unplanned]
    """Why the room is not known."""


class Room(Answer):
    """How many more replicas fit."""

    free: int | None
    """In what is free now."""
    preempting: int | None
    """More, by stopping replicas of lower-ranked classes; null where it is not computed."""


class Nearest(Answer):
    """The node that misses least for one more replica."""

    node: str
    misses: dict[str, float]
    """What it misses: bytes of memory, cores, GPUs."""


class Measured(Answer):
    """What one replica was measured to serve."""

    tokens_per_second: float
    tokens: str
    """Which tokens: generation, or total (prompt and generation)."""
    profile: str
    measured_at: str | None


class Slots(Answer):
    """Slots of a model's replicas of one kind."""

    slot_kind: SlotKind
    used: int
    waiting: int
    """Adapters that wait for a slot, where that is told."""
    per_replica: int
    """Slots of a further replica."""


class Model(Answer):
    """All that is planned for one model. Null: not known, and `unplanned` says why."""

    class_name: str | None = Field(alias="class")
    owner: str | None
    current: int
    """Replicas that hold capacity."""
    replicas: dict[str, int]
    """Replicas by state."""
    needed: int | None
    """Replicas that the load needs."""
    needed_by: dict[str, int]
    """What throughput, slots and minimum alone would need."""
    saturated: bool | None
    """Whether needed is a lower bound, as work waits and no slot is free."""
    demand_tok_per_sec: float | None
    """What throughput is computed from: the card's target, else the highest that was observed."""
    observed_tok_per_sec: float | None
    """What the replicas serve now."""
    measured: Measured | None
    slots: list[Slots]
    distinct_adapters: int | None
    """Distinct adapters with work."""
    headroom: Room
    room: int | None
    """Headroom free and preempting."""
    more: int | None
    """needed - current, at least 0."""
    fits: bool | None
    """Whether more is at most room."""
    unplaced: int | None
    """Of more, what finds no room when all models' are placed together."""
    blocked: list[Blocked]
    """What stops the replicas that are needed, or else what stops one more."""
    nearest: Nearest | None
    preempts: list[str]
    """Models whose replicas would be stopped for `more`."""
    preempted: dict[str, int]
    """How many of each."""
    stops: list[Stop]
    unplanned: list[Unplanned]


class Models(Answer):
    """All models that have a card or a target."""

    at: float
    """When it was planned, unix seconds."""
    models: dict[str, Model]


class Together(Answer):
    """All models placed together, highest rank first."""

    unplaced: dict[str, int]
    """What of each model stays out, where some does."""
    nodes: dict[str, int | None]
    """How many more nodes like each of these make all fit; null: no number does."""


class Plans(Answer):
    """What `plan --json` prints."""

    models: dict[str, Model]
    together: Together


class Quota(Answer):
    """One resource of an owner's quota: bytes, cores, GPUs or replicas."""

    quota: float
    used: float
    """What the owner's current replicas hold."""


class Owner(Answer):
    """An owner's models, and what of the quota they use."""

    models: list[str]
    quotas: dict[str, Quota]
    """By resource: memory, cores, gpus, replicas."""


class Owners(Answer):
    """All owners that have a quota or a model."""

    at: float
    """When it was planned, unix seconds."""
    owners: dict[str, Owner]


def model_of(planning: overall.Planning, model: str) -> Model:
    """The answer about one model of the planning."""
    one = planning.models[model]
    room, seen = one.headroom, one.seen
    return Model(
        **{"class": one.card.class_name or None},
        owner=one.card.owner or None,
        current=one.current,
        replicas=dict(one.states),
        needed=one.needed,
        needed_by=dict(one.needed_by),
        saturated=seen.saturated if seen is not None else None,
        demand_tok_per_sec=one.demand,
        observed_tok_per_sec=one.observed,
        measured=_measured(one.measurement),
        slots=[_slots(pool) for pool in seen.load.pools] if seen is not None else [],
        distinct_adapters=seen.load.distinct if seen is not None else None,
        headroom=Room(
            free=room.free if room is not None else None,
            preempting=room.preempting if room is not None else None,
        ),
        room=room.room if room is not None else None,
        more=one.more,
        fits=one.fits,
        unplaced=planning.unplaced.get(model),
        blocked=list(one.blocked),
        nearest=_nearest(one.nearest),
        preempts=sorted(one.preempted),
        preempted=dict(one.preempted),
        stops=[Stop(**asdict(stop)) for stop in one.stops],
        unplanned=list(one.unplanned),
    )


def plans_of(planning: overall.Planning, nodes: Mapping[str, int | None]) -> Plans:
    """All models, and the nodes that would make all of them fit."""
    return Plans(
        models={model: model_of(planning, model) for model in planning.models},
        together=Together(
            unplaced={model: count for model, count in planning.unplaced.items() if count},
            nodes=dict(nodes),
        ),
    )


def target_of(view: plans.TargetView) -> Target:
    """The answer about one target."""
    return Target.model_validate(asdict(view))


def headroom_of(model: str, room: headroom.Headroom | Unplanned) -> Headroom:
    """The answer about one headroom."""
    if isinstance(room, Unplanned):
        return Headroom(
            model=model, free=None, preempting=None, room=None, limited=False, reason=room
        )
    return Headroom(
        model=model,
        free=room.free,
        preempting=room.preempting,
        room=room.room,
        limited=room.limited,
        reason=None,
    )


def owners_of(planning: overall.Planning) -> Owners:
    """The answer about all owners."""
    owners: dict[str, Owner] = {}
    for model, one in planning.models.items():
        if one.card.owner:
            owners.setdefault(one.card.owner, Owner(models=[], quotas={})).models.append(model)
    for share in planning.shares:
        its = owners.setdefault(share.owner, Owner(models=[], quotas={}))
        its.quotas[share.resource] = Quota(
            quota=overall.base(share.resource, share.quota),
            used=overall.base(share.resource, share.used),
        )
    return Owners(at=planning.situation.at, owners=dict(sorted(owners.items())))


def _measured(one: Measurement | None) -> Measured | None:
    if one is None:
        return None
    return Measured(
        tokens_per_second=one.tokens_per_second,
        tokens=one.tokens,
        profile=one.profile,
        measured_at=one.measured_at or None,
    )


def _slots(pool: Pool) -> Slots:
    return Slots(
        slot_kind=pool.slot_kind,
        used=pool.used,
        waiting=pool.waiting,
        per_replica=pool.per_replica,
    )


def _nearest(nearest: placing.Nearest | None) -> Nearest | None:
    if nearest is None:
        return None
    missing = {name: nearest.misses.of(name) for name in RESOURCES}
    return Nearest(
        node=nearest.node,
        misses={name: overall.base(name, amount) for name, amount in missing.items() if amount},
    )

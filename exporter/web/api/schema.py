"""What the API answers, as types; the OpenAPI document is made of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from exporter.cluster import Blocked, Unplanned
from exporter.fleet import Reason, SlotKind, Source


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Replica(_Answer):
    """One replica, as its last table tells. Unknown numbers are null."""

    model: str
    """Base model, by its served name."""
    replica: str
    """The replica's id, as in the label `replica_id`."""
    target: str
    """Address that told of it."""
    group: str
    """Group of the target."""
    engine: str
    version: str | None
    """Of the engine."""
    slot_kind: SlotKind
    source: Source
    """How used was learnt."""
    node: str | None
    max: int | None
    """Slots for adapters."""
    used: int | None
    """Slots that a new adapter cannot take now."""
    free: int | None
    """max - used, at least 0."""
    resident: int | None
    """Adapters whose weights sit in a slot."""
    waiting: int | None
    """Adapters that have work but no slot."""
    registered: int | None
    """Adapters that are accepted by name."""
    up: bool
    """Whether the last poll of the target gave a table; if not, this is the last one."""


class DownTarget(_Answer):
    """A target whose last poll gave no table."""

    target: str
    group: str
    reason: Reason | None
    """Null before the first poll."""
    detail: str | None


class Replicas(_Answer):
    """All replicas that have a table, and the targets that are down."""

    replicas: list[Replica]
    down: list[DownTarget]


class CapacityInfo(_Answer):
    """Totals of replicas of one slot kind; the first three as Twinkle's clients know them."""

    max_loras: int | None
    """Slots."""
    used_loras: int | None
    """Slots that a new adapter cannot take now."""
    free_loras: int | None
    """The sum of each replica's own free slots, which max - used gets wrong when one is over."""
    complete: bool
    """Whether the slots of all replicas are known."""
    unknown_replicas: int
    """Replicas whose slots are not known, and targets that are down."""


class Headroom(_Answer):
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


class Stop(_Answer):
    """Replicas of one model that would be stopped on one node."""

    model: str
    node: str
    count: int
    keeps: int
    """Replicas that the model has left when all stops are made."""
    below_min: bool
    """Whether that is fewer than its card's min_replicas."""


class Target(_Answer):
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


class Error(_Answer):
    """Why there is no answer."""

    error: str

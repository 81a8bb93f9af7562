"""What the API answers, as types; the OpenAPI document is made of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from exporter.fleet import Reason, SlotKind, Source


class Answer(BaseModel):
    """What all answers have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Replica(Answer):
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


class DownTarget(Answer):
    """A target whose last poll gave no table."""

    target: str
    group: str
    reason: Reason | None
    """Null before the first poll."""
    detail: str | None


class Replicas(Answer):
    """All replicas that have a table, and the targets that are down."""

    replicas: list[Replica]
    down: list[DownTarget]


class CapacityInfo(Answer):
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


class Error(Answer):
    """Why there is no answer."""

    error: str

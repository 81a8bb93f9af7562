"""The fleet's table, as people read it on the page and in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from exporter.fleet import Fleet, ReplicaStatus, TargetStatus
from exporter.quantities import show_duration

UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the fleet's table, as people read it. `?`: not known."""

    model: str
    replica: str
    engine: str
    kind: str
    """Of the slots: exclusive or evictable."""
    state: str
    """`up`, or why not."""
    up: bool
    max: str
    used: str
    free: str
    share: int | None
    """Per cent of the slots that are used; None: not known."""
    full: bool
    waiting: str
    age: str
    detail: str


def rows(fleet: Fleet) -> list[Row]:
    """The table: a line for each replica, and for each target without one."""
    return sorted(_rows(fleet), key=lambda row: (row.model, row.replica))


def _rows(fleet: Fleet) -> Iterable[Row]:
    for status in fleet.targets:
        for replica in status.replicas or (None,):
            yield _row(status, replica, fleet.at)


def _row(status: TargetStatus, replica: ReplicaStatus | None, now: float) -> Row:
    table = replica.table if replica is not None else None
    limit = table.max if table is not None else None
    used = table.used if table is not None else None
    free = table.free if table is not None else None
    if status.up is None:
        state = "not polled yet"
    elif status.reason is not None:
        state = f"down: {status.reason.value}"
    else:
        state = "up"
    return Row(
        model=table.model if table is not None else _model_of(status),
        replica=replica.replica_id if replica is not None else status.target.url,
        engine=status.engine or UNKNOWN,
        kind=table.slot_kind.value if table is not None else UNKNOWN,
        state=state,
        up=bool(status.up),
        max=shown(limit),
        used=shown(used),
        free=shown(free),
        share=None if not limit or used is None else min(round(100 * used / limit), 100),
        full=free == 0,
        waiting=shown(table.waiting if table is not None else None),
        age=age(status.last_success, now),
        detail=status.detail,
    )


def _model_of(status: TargetStatus) -> str:
    """Of a target without table: what it was last known to serve, or is said to."""
    return ", ".join(sorted(set(status.models))) or status.target.model or UNKNOWN


def shown(number: int | None) -> str:
    """A number for people."""
    return UNKNOWN if number is None else str(number)


def age(at: float | None, now: float) -> str:
    """How long ago the last good poll was."""
    return "never" if at is None else show_duration(max(round(now - at), 0))

"""Tables of the fleet, its models and owners, as people read them on the page and in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from exporter.fleet import Fleet, ReplicaStatus, TargetStatus
from exporter.planning.overall import Planning, Share
from exporter.planning.plans import Plan
from exporter.quantities import show_duration, show_size, show_thousandths

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
    """Per cent of the slots that are used; None: `unshared` says why not."""
    unshared: str
    """`unknown`, or `no slots` where the engine has none."""
    full: bool
    waiting: str
    age: str
    detail: str


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One line of the table of models. `?`: not known."""

    model: str
    class_name: str
    owner: str
    current: str
    needed: str
    short: bool
    """Whether more are needed than there are."""
    free: str
    preempting: str
    fits: str
    """`yes`, `no` or `?`."""
    misfit: bool
    would_stop: str
    blocked: str
    unplanned: str
    unplaced: str
    """Replicas that find no room when all models' are placed together; empty where none."""


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One resource of an owner's quota."""

    owner: str
    resource: str
    quota: str
    used: str
    share: int
    """Per cent of the quota that is used."""


def model_rows(planning: Planning) -> list[ModelRow]:
    """A line for each model, by name."""
    return [_model_row(one, planning) for one in planning.models.values()]


def quota_rows(planning: Planning) -> list[QuotaRow]:
    """A line for each quota, by owner."""
    return [_quota_row(share) for share in planning.shares]


def _model_row(one: Plan, planning: Planning) -> ModelRow:
    room = one.headroom
    unplaced = planning.unplaced.get(one.model)
    return ModelRow(
        model=one.model,
        class_name=one.card.class_name,
        owner=one.card.owner,
        current=str(one.current),
        needed=shown(one.needed),
        short=bool(one.more),
        free=shown(room.free if room is not None else None),
        preempting=shown(room.preempting if room is not None else None),
        fits=yes_or_no(one.fits),
        misfit=one.fits is False,
        would_stop=", ".join(f"{count} {victim}" for victim, count in one.preempted.items()),
        blocked=", ".join(one.blocked),
        unplanned=", ".join(one.unplanned),
        unplaced=str(unplaced) if unplaced else "",
    )


def _quota_row(share: Share) -> QuotaRow:
    return QuotaRow(
        owner=share.owner,
        resource=share.resource,
        quota=_amount(share.resource, share.quota),
        used=_amount(share.resource, share.used),
        share=round(100 * share.used / share.quota) if share.quota else 100,
    )


def _amount(resource: str, amount: int) -> str:
    if resource == "memory":
        return show_size(amount)
    return str(show_thousandths(amount) if resource in ("cores", "gpus") else amount)


def yes_or_no(answer: bool | None) -> str:
    """An answer for people."""
    return UNKNOWN if answer is None else "yes" if answer else "no"


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
        kind=UNKNOWN if table is None else table.slot_kind.value if table.has_slots else "none",
        state=state,
        up=bool(status.up),
        max=shown(limit),
        used=shown(used),
        free=shown(free),
        share=None if not limit or used is None else min(round(100 * used / limit), 100),
        unshared="no slots" if table is not None and not table.has_slots else "unknown",
        full=free == 0,
        waiting=shown(table.waiting if table is not None else None),
        age=age(status.table_at, now),
        detail=status.detail,
    )


def _model_of(status: TargetStatus) -> str:
    """Of a target without table: what it was last known to serve, or is said to."""
    return ", ".join(sorted(set(status.models))) or status.target.model or UNKNOWN


def shown(number: int | None) -> str:
    """A number for people."""
    return UNKNOWN if number is None else str(number)


def age(at: float | None, now: float) -> str:
    """How long ago the table was read."""
    return "never" if at is None else show_duration(max(round(now - at), 0))

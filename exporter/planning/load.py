"""What a model's replicas show of its load at one moment: slots, waiting work, adapters. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.fleet import (
    AdapterState,
    Fleet,
    Reason,
    ReplicaStatus,
    ReplicaTable,
    SlotKind,
    TargetStatus,
)

_WITHOUT_SLOTS = frozenset({Reason.NO_LORA, Reason.UNSUPPORTED})
_WITH_WORK = frozenset({AdapterState.ACTIVE, AdapterState.WAITING})

_Found = tuple[TargetStatus, ReplicaStatus]


@dataclass(frozen=True, slots=True)
class Pool:
    """The slots of a model's replicas of one kind, which replace each other."""

    slot_kind: SlotKind
    used: int
    """Slots that are used, copies of an adapter counted as they are."""
    waiting: int
    """Adapters that wait for a slot, where that is told."""
    per_replica: int
    """Slots of a further replica: the fewest that one has, so that it is never too few."""


@dataclass(frozen=True, slots=True)
class Load:
    """A model's load, as far as its replicas show it."""

    ready: int = 0
    """Replicas whose table is known."""
    unread: int = 0
    """Replicas that the model has, and whose table is not known."""
    incomplete: bool = False
    """Whether a replica is unread, or a target that was never read may be one of the model's."""
    unpolled: bool = False
    """Whether some target was not polled yet that may be of the model."""
    pools: tuple[Pool, ...] = ()
    slots_unknown: bool = False
    """Whether some replica has slots, and does not tell how many are used."""
    full: bool | None = None
    """Whether no replica has a free slot, and work waits. None: nobody could tell."""
    distinct: int | None = None
    """Distinct adapters with work."""


def loads(fleet: Fleet) -> dict[str, Load]:
    """The load of each model that some target serves, or was last known to serve."""
    by_group: dict[str, set[str]] = defaultdict(set)
    found: dict[str, list[_Found]] = {}
    unread: Counter[str] = Counter()
    for status in fleet.targets:
        models = models_of(status)
        by_group[status.target.group].update(models)
        for model in models:
            found.setdefault(model, [])
        for replica in status.replicas:
            found[replica.table.model].append((status, replica))
        if not status.replicas and not (status.up and not status.models):
            unread.update(models)
    doubtful = {model for group in fleet.undiscovered for model in by_group[group]}
    unpolled: set[str] = set()
    for status in fleet.targets:
        if status.up is None:
            # Until it is known what it serves, it may be anything.
            unpolled.update(models_of(status) or by_group[status.target.group] or found)
        elif not status.up and not models_of(status):
            # Never read: it may be of any model that its group serves.
            doubtful.update(by_group[status.target.group])
    return {
        model: _load(its, unread[model], model in doubtful, model in unpolled)
        for model, its in found.items()
    }


def models_of(status: TargetStatus) -> tuple[str, ...]:
    """The model of each replica that the target was last known to speak for, or is said to."""
    if not status.models and status.target.model is not None:
        return (status.target.model,)
    return status.models


def _load(found: list[_Found], unread: int, doubtful: bool, unpolled: bool) -> Load:
    tables = [replica.table for _, replica in found]
    slotted = [replica.table for status, replica in found if _has_slots(status, replica.table)]
    return Load(
        ready=len(tables),
        unread=unread,
        incomplete=doubtful or unread > 0,
        unpolled=unpolled,
        pools=_pools(slotted),
        slots_unknown=any(table.max is None or table.used is None for table in slotted),
        full=_full(slotted),
        distinct=_distinct(tables),
    )


def _has_slots(status: TargetStatus, table: ReplicaTable) -> bool:
    return status.reason not in _WITHOUT_SLOTS and table.max != 0


def _pools(tables: Iterable[ReplicaTable]) -> tuple[Pool, ...]:
    """The slots that are known, by kind."""
    by_kind: dict[SlotKind, list[tuple[int, int, int]]] = defaultdict(list)
    for table in tables:
        if table.max is not None and table.used is not None:
            by_kind[table.slot_kind].append((table.max, table.used, table.waiting or 0))
    return tuple(
        Pool(
            slot_kind=kind,
            used=sum(used for _, used, _ in rows),
            waiting=sum(waiting for _, _, waiting in rows),
            per_replica=min(limit for limit, _, _ in rows),
        )
        for kind, rows in sorted(by_kind.items())
    )


def _full(tables: Iterable[ReplicaTable]) -> bool | None:
    known = [table for table in tables if table.free is not None]
    if not known:
        return None
    if any(table.free for table in known):
        return False
    told = [waits for table in known if (waits := _work_waiting(table)) is not None]
    return any(told) if told else None


def _work_waiting(table: ReplicaTable) -> bool | None:
    """Whether work waits for a slot, by the best that the engine tells of it."""
    for waits in (table.waiting, table.requests_deferred, table.requests_waiting):
        if waits is not None:
            return waits > 0
    return None


def _distinct(tables: list[ReplicaTable]) -> int | None:
    """Distinct adapters with work; None where some replica does not name those that it has."""
    names: set[str] = set()
    for table in tables:
        at_work = {adapter.name for adapter in table.adapters if adapter.state in _WITH_WORK}
        if table.used is None or (table.used and not at_work):
            return None
        names |= at_work
    return len(names) if tables else None

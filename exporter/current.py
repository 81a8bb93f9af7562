"""The fleet as it is now: what each target last said, counted and kept until it is stale."""

from __future__ import annotations

from dataclasses import replace

from exporter.exposition.fleet import Exposition
from exporter.fetching.ask import Asked
from exporter.fleet import (
    AdapterTable,
    Fleet,
    Reading,
    Reason,
    ReplicaStatus,
    ReplicaTable,
    Target,
    TargetStatus,
)
from exporter.naming import replica_id

_Key = tuple[str, str]


class CurrentFleet:
    """What all targets last said, with its text.

    Not safe for threads: all calls come from one event loop. Statuses are replaced, never edited,
    so whoever holds one sees one moment.
    """

    def __init__(self, exposition: Exposition, stale_after: float, this_host: str) -> None:
        """`stale_after`: seconds for which a table outlives the polls that fail."""
        self.exposition = exposition
        self.stale_after = stale_after
        self.undiscovered: frozenset[str] = frozenset()
        """Groups whose targets were not all found yet."""
        self._this_host = this_host
        self._statuses: dict[str, TargetStatus] = {}
        self._unpolled: set[str] = set()
        self._owners: dict[_Key, str] = {}
        self._next_expiry = float("inf")

    def add(self, target: Target) -> None:
        """Starts with a target of which nothing is known; one that changed starts anew."""
        self.remove(target.url)
        self._unpolled.add(target.url)
        self._put(TargetStatus(target, polls=0, failures=0))

    def remove(self, url: str) -> None:
        """Forgets a target whole."""
        self._unpolled.discard(url)
        status = self._statuses.pop(url, None)
        if status is not None:
            self._release(status)
            self.exposition.remove(url)

    def record(self, url: str, asked: Asked, now: float) -> TargetStatus | None:
        """Takes in the outcome of a poll at `now` (unix seconds); None for a removed target."""
        before = self._statuses.get(url)
        if before is None:
            return None
        self._unpolled.discard(url)
        reading = self._without_doubles(before.target, asked.reading)
        status = replace(
            before,
            engine=asked.engine or before.engine,
            up=reading.up,
            reason=reading.reason,
            detail=reading.detail or asked.note,
            polls=(before.polls or 0) + 1,
            failures=(before.failures or 0) + (not reading.up),
            last_success=now if reading.up else before.last_success,
            duration=asked.seconds,
        )
        if reading.table is not None:
            self._release(before)
            status = replace(
                status,
                replicas=name_replicas(
                    before.target, reading.table, self._this_host, before.replicas
                ),
                ghosts=reading.table.ghosts,
                models=tuple(row.model for row in reading.table.replicas),
                table_at=now,
            )
            for replica in status.replicas:
                self._owners[_key(replica)] = url
        self._put(status)
        self.expire(now)
        return status

    def expire(self, now: float) -> None:
        """Drops the tables that are older than `stale_after` at `now`."""
        if now < self._next_expiry:
            return
        self._next_expiry = float("inf")
        for status in list(self._statuses.values()):
            if now >= self._expiry(status):
                self._release(status)
                self._put(replace(status, replicas=(), ghosts=None))
            else:
                self._next_expiry = min(self._next_expiry, self._expiry(status))

    def snapshot(self, now: float) -> Fleet:
        """The fleet at `now`, ordered by address."""
        self.expire(now)
        statuses = tuple(self._statuses[url] for url in sorted(self._statuses))
        return Fleet(statuses, now, self.undiscovered)

    def text(self, openmetrics: bool, now: float) -> tuple[bytes, ...]:
        """The fleet's text at `now`, in pieces."""
        self.expire(now)
        return self.exposition.chunks(openmetrics)

    def set_limits(self, stale_after: float, max_adapters: int) -> None:
        """Goes over to other limits, and renders every target anew."""
        self.stale_after = stale_after
        self._next_expiry = 0.0
        self.exposition.set_max_adapters(max_adapters)
        for status in self._statuses.values():
            self.exposition.update(status)

    @property
    def all_polled(self) -> bool:
        """Whether each target was polled at least once."""
        return not self._unpolled

    def __len__(self) -> int:
        return len(self._statuses)

    def _put(self, status: TargetStatus) -> None:
        self._statuses[status.target.url] = status
        self.exposition.update(status)
        self._next_expiry = min(self._next_expiry, self._expiry(status))

    def _expiry(self, status: TargetStatus) -> float:
        """When the table vanishes; never, where there is none."""
        if status.table_at is None or (not status.replicas and status.ghosts is None):
            return float("inf")
        return status.table_at + self.stale_after

    def _release(self, status: TargetStatus) -> None:
        for replica in status.replicas:
            if self._owners.get(_key(replica)) == status.target.url:
                del self._owners[_key(replica)]

    def _without_doubles(self, target: Target, reading: Reading) -> Reading:
        """Refuses a table whose replica another target already told of: series would be doubled."""
        if reading.table is None:
            return reading
        seen: set[_Key] = set()
        for table in reading.table.replicas:
            key = (table.model, table.replica or replica_id(target, self._this_host))
            owner = self._owners.get(key, target.url)
            if owner != target.url or key in seen:
                detail = f"replica {key[1]} of model {key[0]} is also told of by {owner}"
                return Reading(reason=Reason.AMBIGUOUS, detail=detail)
            seen.add(key)
        return reading


def name_replicas(
    target: Target,
    table: AdapterTable,
    this_host: str,
    before: tuple[ReplicaStatus, ...] | None = (),
) -> tuple[ReplicaStatus, ...]:
    """The table's replicas with their ids, their counts carried on from `before`.

    `before` None: nobody counts (one reading on demand), so there are no counts.
    """
    counts = {_key(replica): (replica.polls, replica.full_polls) for replica in before or ()}
    named = []
    for row in table.replicas:
        status = ReplicaStatus(row, row.replica or replica_id(target, this_host))
        if before is not None:
            polls, full_polls = counts.get(_key(status), (0, 0))
            status = replace(
                status,
                polls=(polls or 0) + (row.free is not None),
                full_polls=(full_polls or 0) + (row.free == 0),
            )
        named.append(status)
    return tuple(named)


def _key(replica: ReplicaStatus) -> _Key:
    table: ReplicaTable = replica.table
    return table.model, replica.replica_id

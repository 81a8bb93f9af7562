"""The fleet as it is now: what each target last said, counted and kept until it is stale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from exporter.exposition import Exposition
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


@dataclass(slots=True)
class _Entry:
    """One target. `table_at`: when its table was read (unix seconds)."""

    status: TargetStatus
    table_at: float = 0.0


class CurrentFleet:
    """What all targets last said, with its text.

    Not safe for threads: all calls come from one event loop. Statuses are replaced, never edited,
    so whoever holds one sees one moment.
    """

    def __init__(self, exposition: Exposition, stale_after: float, this_host: str) -> None:
        """`stale_after`: seconds for which a table outlives the polls that fail."""
        self.exposition = exposition
        self.stale_after = stale_after
        self._this_host = this_host
        self._entries: dict[str, _Entry] = {}
        self._owners: dict[_Key, str] = {}
        self._next_expiry = float("inf")

    def add(self, target: Target) -> None:
        """Starts with a target of which nothing is known; one that changed starts anew."""
        self.remove(target.url)
        status = TargetStatus(target, polls=0, failures=0)
        self._put(_Entry(status))

    def remove(self, url: str) -> None:
        """Forgets a target whole."""
        entry = self._entries.pop(url, None)
        if entry is not None:
            self._release(entry.status)
            self.exposition.remove(url)

    def record(self, url: str, asked: Asked, now: float) -> TargetStatus | None:
        """Takes in the outcome of a poll at `now` (unix seconds); None for a removed target."""
        entry = self._entries.get(url)
        if entry is None:
            return None
        before = entry.status
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
        table_at = entry.table_at
        if reading.table is not None:
            self._release(before)
            status = replace(
                status,
                replicas=name_replicas(
                    before.target, reading.table, self._this_host, before.replicas
                ),
                ghosts=reading.table.ghosts,
                models=tuple(row.model for row in reading.table.replicas),
            )
            for replica in status.replicas:
                self._owners[_key(replica)] = url
            table_at = now
        self._put(_Entry(status, table_at))
        self.expire(now)
        return status

    def expire(self, now: float) -> None:
        """Drops the tables that are older than `stale_after` at `now`."""
        if now < self._next_expiry:
            return
        self._next_expiry = float("inf")
        for entry in list(self._entries.values()):
            if not entry.status.replicas and entry.status.ghosts is None:
                continue
            if now >= entry.table_at + self.stale_after:
                self._release(entry.status)
                self._put(_Entry(replace(entry.status, replicas=(), ghosts=None)))
            else:
                self._expect(entry)

    def snapshot(self, now: float) -> Fleet:
        """The fleet at `now`, ordered by address."""
        self.expire(now)
        return Fleet(tuple(self._entries[url].status for url in sorted(self._entries)), now)

    def text(self, openmetrics: bool, now: float) -> tuple[bytes, ...]:
        """The fleet's text at `now`, in pieces."""
        self.expire(now)
        return self.exposition.chunks(openmetrics)

    def render_all(self) -> None:
        """Renders every target anew, after the exposition's limits changed."""
        for entry in self._entries.values():
            self.exposition.update(entry.status)

    @property
    def all_polled(self) -> bool:
        """Whether each target was polled at least once."""
        return all(entry.status.up is not None for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, entry: _Entry) -> None:
        self._entries[entry.status.target.url] = entry
        self.exposition.update(entry.status)
        self._expect(entry)

    def _expect(self, entry: _Entry) -> None:
        if entry.status.replicas or entry.status.ghosts is not None:
            self._next_expiry = min(self._next_expiry, entry.table_at + self.stale_after)

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

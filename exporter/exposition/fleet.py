"""Fleet -> bytes.

Text is rendered when a target's status changes, one fragment per target and family, and joined
when somebody scrapes. Samples are the same in both formats; only headers and the end differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from exporter.catalogue.fleet import (
    ADAPTER_STATE,
    FLEET_FAMILIES,
    REPLICA_FAMILIES,
    REPLICA_INFO,
    TARGET_FAILURE,
    TARGET_FAMILIES,
)
from exporter.exposition.text import ONE, WHOLE, number, series
from exporter.fleet import Adapter, ReplicaStatus, Target, TargetStatus

_CHUNK_TARGETS = 500
_KEPT_LINES = 4
"""Lines of adapters that are kept for a replica, in multiples of those that are shown."""
_NOTHING: tuple[bytes, ...] = (b"",) * (len(REPLICA_FAMILIES) + 2)


def _fragments(prefixes: tuple[bytes, ...], values: tuple[float | None, ...]) -> list[bytes]:
    """Lines for the values that are known, and nothing for the others."""
    return [
        b"" if value is None else prefix + (WHOLE.get(value) or number(value))
        for prefix, value in zip(prefixes, values, strict=True)
    ]


@dataclass(slots=True)
class _ReplicaText:
    """What of a replica's text stays the same from poll to poll."""

    identity: tuple[str, str, str]
    prefixes: tuple[bytes, ...]
    adapter_lines: dict[Adapter, bytes] = field(default_factory=dict)
    adapters: tuple[Adapter, ...] | None = None
    adapter_block: bytes = b""
    info_of: tuple[str, ...] = ()
    info: bytes = b""


@dataclass(slots=True)
class _TargetText:
    """The same of a target, and its replicas by id."""

    group: str
    prefixes: tuple[bytes, ...]
    replicas: dict[str, _ReplicaText] = field(default_factory=dict)


class Exposition:
    """The text of a fleet, kept up to date target by target.

    Not safe for threads: all calls come from one event loop. `chunks` gives immutable bytes that
    any thread may compress.
    """

    def __init__(self, max_adapters: int) -> None:
        """`max_adapters`: the most adapters named for one replica; 0 names none."""
        self._max_adapters = max_adapters
        self._columns: list[list[bytes]] = [[] for _ in FLEET_FAMILIES]
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._texts: dict[str, _TargetText] = {}
        self._headers = {
            openmetrics: [family.header(openmetrics) for family in FLEET_FAMILIES]
            for openmetrics in (False, True)
        }
        self._chunks: dict[bool, tuple[bytes, ...]] = {}

    def set_max_adapters(self, max_adapters: int) -> None:
        """Changes the cap; each target follows at its next update."""
        if max_adapters != self._max_adapters:
            self._max_adapters = max_adapters
            self._texts.clear()

    def update(self, status: TargetStatus) -> None:
        """Renders one target anew."""
        url = status.target.url
        slot = self._slots.get(url)
        if slot is None:
            if self._free:
                slot = self._free.pop()
            else:
                slot = len(self._columns[0])
                for column in self._columns:
                    column.append(b"")
            self._slots[url] = slot
        for column, fragment in zip(self._columns, self._render(status), strict=True):
            column[slot] = fragment
        self._chunks.clear()

    def remove(self, url: str) -> None:
        """Forgets a target whole."""
        slot = self._slots.pop(url, None)
        if slot is None:
            return
        for column in self._columns:
            column[slot] = b""
        self._free.append(slot)
        self._texts.pop(url, None)
        self._chunks.clear()

    def chunks(self, openmetrics: bool) -> tuple[bytes, ...]:
        """All families that have samples, without an end mark; more may follow.

        In pieces of at most some megabytes, as fresh memory for all at once costs more than the
        joining. The pieces stay the same until something changes.
        """
        chunks = self._chunks.get(openmetrics)
        if chunks is None:
            joined: list[bytes] = []
            for header, column in zip(self._headers[openmetrics], self._columns, strict=True):
                if any(column):
                    joined.append(header)
                    joined.extend(
                        b"".join(column[at : at + _CHUNK_TARGETS])
                        for at in range(0, len(column), _CHUNK_TARGETS)
                    )
            chunks = tuple(joined)
            self._chunks[openmetrics] = chunks
        return chunks

    def join(self, openmetrics: bool) -> bytes:
        """The same as one piece."""
        return b"".join(self.chunks(openmetrics))

    def _render(self, status: TargetStatus) -> tuple[bytes, ...]:
        target = status.target
        text = self._texts.get(target.url)
        if text is None or text.group != target.group:
            text = _TargetText(
                target.group,
                tuple(
                    series(family, *(target.url, target.group)[: len(family.labels)])
                    for family in TARGET_FAMILIES
                ),
            )
            self._texts[target.url] = text
        before, text.replicas = text.replicas, {}
        rows = []
        for replica in status.replicas:
            its_text = self._text_of(replica, before)
            text.replicas[replica.replica_id] = its_text
            rows.append(self._replica(target, replica, its_text))
        fragments = self._target(status, text.prefixes)
        if len(rows) == 1:
            return (*rows[0], *fragments)
        if not rows:
            return (*_NOTHING, *fragments)
        return (*(b"".join(column) for column in zip(*rows, strict=True)), *fragments)

    def _text_of(self, replica: ReplicaStatus, before: dict[str, _ReplicaText]) -> _ReplicaText:
        table = replica.table
        identity = (table.model, replica.replica_id, table.slot_kind.value)
        text = before.get(replica.replica_id)
        if text is None or text.identity != identity:
            prefixes = tuple(
                series(family, *identity[: len(family.labels)]) for family in REPLICA_FAMILIES
            )
            text = _ReplicaText(identity, prefixes)
        return text

    def _replica(self, target: Target, replica: ReplicaStatus, text: _ReplicaText) -> list[bytes]:
        table = replica.table
        # In the order of REPLICA_FAMILIES.
        values = (
            table.max,
            table.used,
            table.free,
            table.resident,
            table.waiting,
            table.registered,
            max(len(table.adapters) - self._max_adapters, 0),
            replica.polls,
            replica.full_polls,
            table.prompt_tokens,
            table.generation_tokens,
            table.requests_running,
            table.requests_waiting,
            table.requests_deferred,
            table.orphans,
            table.oldest_heartbeat,
            table.largest_holder,
        )
        fragments = _fragments(text.prefixes, values)
        if table.adapters != text.adapters:
            text.adapter_block = self._adapters(table.adapters, text)
            text.adapters = table.adapters
        fragments.append(text.adapter_block)
        info_of = (
            table.engine,
            table.version or "",
            table.slot_kind.value,
            table.source.value,
            table.node or target.node,
            target.namespace,
            target.pod,
        )
        if info_of != text.info_of:
            text.info = series(REPLICA_INFO, *text.identity[:2], *info_of) + ONE
            text.info_of = info_of
        fragments.append(text.info)
        return fragments

    def _adapters(self, adapters: tuple[Adapter, ...], text: _ReplicaText) -> bytes:
        named = adapters[: self._max_adapters]
        lines = text.adapter_lines
        try:
            return b"".join(map(lines.__getitem__, named))
        except KeyError:
            if len(lines) > _KEPT_LINES * self._max_adapters:
                lines.clear()
            model, replica_id, _ = text.identity
            for adapter in named:
                if adapter not in lines:
                    name, state = adapter
                    line = series(ADAPTER_STATE, model, replica_id, name, state.value)
                    lines[adapter] = line + ONE
            return b"".join(map(lines.__getitem__, named))

    def _target(self, status: TargetStatus, prefixes: tuple[bytes, ...]) -> list[bytes]:
        # In the order of TARGET_FAMILIES. The failure's labels are not the same each time.
        values = (
            None if status.up is None else int(status.up),
            None,
            status.polls,
            status.failures,
            status.last_success,
            status.duration,
            status.ghosts,
        )
        fragments = _fragments(prefixes, values)
        if status.reason is not None:
            line = series(TARGET_FAILURE, status.target.url, status.reason.value)
            fragments[TARGET_FAMILIES.index(TARGET_FAILURE)] = line + ONE
        return fragments

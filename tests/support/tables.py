"""Tables for tests that do not care how they were read."""

from __future__ import annotations

from exporter.fetching.ask import Asked
from exporter.fleet import (
    AdapterTable,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
)


def target(url: str = "http://10.0.0.5:8000", group: str = "g", **rest: str) -> Target:
    return Target(url, group, **rest)  # type: ignore[arg-type]  # rest are the fields of text


def replica(
    model: str = "base",
    used: int | None = 1,
    limit: int | None = 4,
    name: str | None = None,
    tokens: float | None = None,
) -> ReplicaTable:
    return ReplicaTable(
        model,
        "vllm",
        SlotKind.EVICTABLE,
        Source.ACTIVITY,
        replica=name,
        max=limit,
        used=used,
        generation_tokens=tokens,
    )


def asked(
    *replicas: ReplicaTable, reason: Reason | None = None, ghosts: int | None = None
) -> Asked:
    table = AdapterTable(replicas, ghosts) if replicas or reason is None else None
    return Asked(Reading(table, reason, "why" if reason else ""), "vllm", (), 0.25)

"""What each recorded body is read as, against the checked-in adapter tables.

`UPDATE_GOLDEN=1` in the environment writes `tests/golden/**/*.json` anew, from the same tests.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from exporter.fleet import Reading, ReplicaTable
from tests.support.captures import Case, assert_only_goldens, cases, check_golden


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case.path))
def test_recorded_bodies_are_read_as_the_golden_table(case: Case) -> None:
    check_golden(f"{case.path}.json", _shown(case.read()))


def test_each_golden_table_belongs_to_a_capture() -> None:
    assert_only_goldens(".json", (case.path for case in cases()))


def _shown(reading: Reading) -> str:
    table = reading.table
    document = {
        "up": reading.up,
        "reason": reading.reason,
        "detail": reading.detail,
        "ghosts": None if table is None else table.ghosts,
        "replicas": None if table is None else [_replica(row) for row in table.replicas],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _replica(row: ReplicaTable) -> dict[str, Any]:
    return {
        "model": row.model,
        "replica": row.replica,
        "engine": row.engine,
        "version": row.version,
        "node": row.node,
        "slot_kind": row.slot_kind,
        "source": row.source,
        "max": row.max,
        "used": row.used,
        "free": row.free,
        "resident": row.resident,
        "waiting": row.waiting,
        "registered": row.registered,
        "adapters": dict(row.adapters),
        "prompt_tokens": row.prompt_tokens,
        "generation_tokens": row.generation_tokens,
        "requests_running": row.requests_running,
        "requests_waiting": row.requests_waiting,
        "requests_deferred": row.requests_deferred,
        "orphans": row.orphans,
        "oldest_heartbeat": row.oldest_heartbeat,
        "largest_holder": row.largest_holder,
    }

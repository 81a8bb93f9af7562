"""Rows and lists of a Twinkle server as tests write them, and what its reader makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.fleet import Reading, ReplicaTable, Target
from tests.support.captures import (
    GATEWAY_TARGET,
    RAY_TARGET,
    STATE_TARGET,
    application_of,
    twinkle_answers,
)

TWINKLE = ENGINES["twinkle"]

NOW = 1_796_000_000.0


def model_row(replica: str | None, session: str | None = "s1", name: str | None = "a") -> bytes:
    """A row of an adapter that a session holds."""
    document: dict[str, Any] = {
        "token": "tok-secret",
        "replica_id": replica,
        "session_id": session,
        "base_model": "mock-model",
        "user_metadata": {} if name is None else {"adapter_name": name},
    }
    return json.dumps(document).encode()


def session_row(beat: float | None = NOW) -> bytes:
    """A row of a session."""
    return json.dumps({} if beat is None else {"last_heartbeat": beat}).encode()


def ray(applications: Mapping[str, Any]) -> bytes:
    """What Ray's dashboard lists."""
    return json.dumps({"applications": applications}).encode()


def listed(replica: str, state: str = "RUNNING") -> dict[str, Any]:
    """A replica as Ray's dashboard lists it."""
    return {"replica_id": replica, "state": state, "node_ip": "10.0.0.7", "node_id": "n1"}


def mock_model(*replicas: dict[str, Any]) -> bytes:
    """What Ray's dashboard lists of a server of one model."""
    return ray(
        {
            "server": application_of("/api/v1", listed("gateway0")),
            "models-mock-model": application_of("/api/v1/model/mock-model", *replicas),
            "sampler-mock-model": application_of("/api/v1/sampler/mock-model", listed("sampler0")),
        }
    )


def read_state(
    entries: dict[str, bytes],
    dashboard: bytes | None = None,
    *,
    target: Target | None = None,
    routes: bytes | None = None,
) -> Reading:
    """The reading of a store's rows, joined with Ray's dashboard where it is told."""
    answers = dict(twinkle_answers(entries=entries, ray=dashboard))
    if routes is not None:
        answers["routes"] = Answer(routes)
    used = target or (STATE_TARGET if dashboard is None else RAY_TARGET)
    return TWINKLE.read(used, answers, NOW)


def rows(reading: Reading) -> dict[str | None, ReplicaTable]:
    """The replicas of a reading, by id."""
    assert reading.table is not None
    found = {row.replica: row for row in reading.table.replicas}
    assert len(found) == len(reading.table.replicas)
    return found


def slots(row: ReplicaTable) -> tuple[int | None, int | None, int | None]:
    """Max, used and free."""
    return row.max, row.used, row.free


def total(body: bytes, target: Target = GATEWAY_TARGET, routes: bytes | None = None) -> Reading:
    """The reading of the gateway's totals."""
    answers = dict(twinkle_answers(capacity=body))
    if routes is not None:
        answers["routes"] = Answer(routes)
    return TWINKLE.read(target, answers, NOW)


def capacity(limit: object, used: object) -> bytes:
    """What capacity_info says."""
    return json.dumps({"max_loras": limit, "used_loras": used, "free_loras": 0}).encode()

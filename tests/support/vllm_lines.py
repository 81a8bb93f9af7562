"""Lines of vLLM's answers as tests write them, and what its reader makes of them."""

from __future__ import annotations

import json

from exporter.engines import ENGINES
from exporter.fleet import AdapterState, Reading, ReplicaTable, Target
from tests.support.captures import (
    VLLM_TARGET,
    vllm_answers,
)

VLLM_ENGINE = ENGINES["vllm"]

NOW = 1_796_000_000.0


def info(running: str, waiting: str = "", at: float = NOW, max_lora: str = "2") -> str:
    """A line of vllm:lora_requests_info, escaped as Prometheus's clients escape."""
    labels = ",".join(
        f'{name}="{escaped(value)}"'
        for name, value in (
            ("max_lora", max_lora),
            ("running_lora_adapters", running),
            ("waiting_lora_adapters", waiting),
        )
    )
    return f"vllm:lora_requests_info{{{labels}}} {at!r}"


def running(requests: float, engine: str = "0") -> str:
    """A line of vllm:num_requests_running."""
    return f'vllm:num_requests_running{{engine="{engine}",model_name="base-model"}} {requests}'


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def models_of(*adapters: str) -> bytes:
    """What /v1/models says with these adapters."""
    rows = [{"id": "base-model", "parent": None, "root": "/secret/weights"}]
    rows += [{"id": name, "parent": "base-model", "root": "/secret/lora"} for name in adapters]
    return json.dumps({"object": "list", "data": rows}).encode()


def read(
    *lines: str,
    models: bytes | None = b'{"data": []}',
    version: str | None = None,
    now: float = NOW,
    target: Target = VLLM_TARGET,
) -> Reading:
    """The reading of an exposition with these lines."""
    metrics = "".join(f"{line}\n" for line in ("# HELP a comment", *lines))
    told = None if version is None else json.dumps({"version": version}).encode()
    return VLLM_ENGINE.read(target, vllm_answers(metrics.encode(), models, told), now)


def row(reading: Reading) -> ReplicaTable:
    """The only replica of a reading."""
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


def names(table: ReplicaTable, state: AdapterState) -> set[str]:
    """Adapters in a state."""
    return {adapter.name for adapter in table.adapters if adapter.state is state}

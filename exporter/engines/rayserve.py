"""Ray Serve LLM: the multiplexed models of its replicas, from the metrics of a Ray node.

What is mapped to what: a slot is a place in Serve's own cache of adapters, of which idle ones give
way; its size (`max_num_adapters_per_replica`) is not exported, so max is the operator's.
resident = models that the replica holds. Where vLLM's series come through Ray with the replica's
id (`ray_vllm_…`), max and used are vLLM's: its slots are those in the GPU. Without them used is 0
where nothing is held, and unknown where anything is.

Series of models that were unloaded stay, with the value 0, and are none. One target tells of all
replicas on its node.

Wire format: `ray_serve_num_multiplexed_models`, `ray_serve_registered_multiplexed_model_id` with
the labels application, deployment, replica and model_id of Ray 2.60.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from exporter.engines import vllm
from exporter.engines.base import About, Answer, Answers, Engine, Request, failed
from exporter.engines.prometheus_text import Finder, has_family_prefix, whole
from exporter.fleet import (
    Adapter,
    AdapterState,
    AdapterTable,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
    order_adapters,
)

HELD = "ray_serve_num_multiplexed_models"
MODEL_ID = "ray_serve_registered_multiplexed_model_id"
WANTED = (HELD, MODEL_ID)
SHOWN = (*WANTED, "ray_vllm_lora", "ray_vllm_num_requests")

_FINDER = Finder(WANTED)
_OF_VLLM = re.compile(rb'^ray_vllm_([^{\n]*\{[^\n]*ReplicaId="([^"\n\\]+)"[^\n]*)$', re.MULTILINE)
_LLM = "llm"


@dataclass(slots=True)
class _Replica:
    """What the series say of one replica."""

    application: str
    deployment: str
    held: int | None = None
    models: set[str] = field(default_factory=set)


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    return (Request("metrics", target.metrics_url(), shown=SHOWN),)


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter tables of all replicas on one node."""
    missing = failed(answers, "metrics")
    if missing is not None:
        return missing
    body = answers["metrics"].body
    if not has_family_prefix(body, "ray_"):
        detail = "/metrics has no ray_ series; wanted the metrics port of a Ray node"
        return Reading(reason=Reason.NO_STATS, detail=detail)
    replicas = _replicas(body)
    engines = _of_vllm(body)
    tables = tuple(
        _table(target, name, replica, engines.get(name), answers["metrics"].date or now)
        for name, replica in sorted(replicas.items())
    )
    detail = ""
    if any(table.used is None for table in tables):
        detail = "Ray Serve tells which adapters are held, not which are in use: used is unknown"
    return Reading(AdapterTable(tables), detail=detail)


def _table(
    target: Target, name: str, replica: _Replica, engine: bytes | None, clock: float
) -> ReplicaTable:
    held = len(replica.models) if replica.held is None else replica.held
    states = dict.fromkeys(replica.models, AdapterState.REGISTERED)
    table = ReplicaTable(
        model=target.model or _model_of(replica) or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.OPERATOR,
        replica=name,
        max=target.max,
        used=None if held else 0,
        resident=held,
        adapters=order_adapters(states),
    )
    reading = vllm.read(target, {"metrics": Answer(engine)}, clock) if engine else None
    if reading is None or reading.table is None or not reading.up:
        return table
    (behind,) = reading.table.replicas
    return replace(
        behind,
        engine=ENGINE.name,
        replica=name,
        resident=table.resident if behind.resident is None else behind.resident,
        adapters=_joined(behind.adapters, table.adapters),
    )


def _joined(known: tuple[Adapter, ...], held: tuple[Adapter, ...]) -> tuple[Adapter, ...]:
    """vLLM tells more of an adapter than Serve does."""
    states = dict(held) | dict(known)
    return order_adapters(states)


def _replicas(body: bytes) -> dict[str, _Replica]:
    """Replicas of LLM deployments by id. Other deployments' models are no adapters."""
    found = _FINDER.find(body)
    replicas: dict[str, _Replica] = {}
    for series, samples in found.items():
        for labels, value in samples:
            name, deployment = labels.get("replica"), labels.get("deployment", "")
            if not name or _LLM not in deployment.lower():
                continue
            replica = replicas.setdefault(name, _Replica(labels.get("application", ""), deployment))
            if series == HELD:
                replica.held = whole(value)
            elif value > 0 and labels.get("model_id"):
                replica.models.add(labels["model_id"])
    return replicas


def _of_vllm(body: bytes) -> dict[str, bytes]:
    """vLLM's samples by replica, under the names that they have without Ray."""
    lines: dict[str, list[bytes]] = defaultdict(list)
    for line, replica in _OF_VLLM.findall(body):
        lines[replica.decode(errors="replace")].append(b"vllm:" + line)
    return {replica: b"\n".join(found) + b"\n" for replica, found in lines.items()}


def _model_of(replica: _Replica) -> str:
    """The model of a deployment such as `LLMServer:qwen3-8b`, else the application."""
    return replica.deployment.partition(":")[2] or replica.application


def detection(target: Target) -> tuple[Request, ...]:
    """What tells a Ray node from other servers."""
    return (Request("metrics", target.metrics_url(), shown=SHOWN, turn=2),)


def claims(target: Target, answers: Answers) -> bool:
    """Whether the exposition has a Serve replica of an LLM deployment."""
    del target
    answer = answers.get("metrics")
    return answer is not None and answer.ok and bool(_replicas(answer.body))


def _sources() -> Iterable[Source]:
    return (Source.OPERATOR, *(one for one in vllm.ENGINE.sources if one is not Source.OPERATOR))


ENGINE = Engine(
    "rayserve",
    About(
        "Ray Serve LLM",
        "2.60, made from its published series",
        "`slots.max`; `ray_vllm_lora_requests_info` where it names the replica",
        "the same series of vLLM; else 0 where nothing is held, unknown where anything is",
    ),
    SlotKind.EVICTABLE,
    tuple(_sources()),
    requests,
    read,
    detection,
    claims,
)

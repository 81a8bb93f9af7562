"""NVIDIA Dynamo: a worker's system port, with the adapters of `/v1/loras`.

What is mapped to what: registered = `count` of `/v1/loras`, names its keys. Where the worker passes
vLLM's or SGLang's series through, max and used are as for that engine. Else max is the operator's
(the discovery record's `max_gpu_lora_count`, which is 4 where it is absent, is not on this port),
and used is 0 with no adapter and unknown with any.

`dynamo_frontend_lora_churn_*_total` are named like counters and reset at each tick: not read.

Wire format: Dynamo 1.6, `{"status", "loras": {name: id}, "count"}`; its documentation says that
the engine's series are passed through on `/metrics` of the system port.
"""

from __future__ import annotations

from dataclasses import replace

from exporter.engines import sglang, vllm
from exporter.engines.base import (
    About,
    Answer,
    Answers,
    Engine,
    Request,
    body_of,
    count,
    failed,
    json_object,
)
from exporter.engines.nim import passed_through
from exporter.engines.openai_models import models_of_names
from exporter.fleet import (
    AdapterTable,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
)


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches. `/v1/loras` is only read: a POST would load an adapter."""
    return (
        Request("loras", f"{target.base}/v1/loras"),
        Request("metrics", target.metrics_url(), shown=(*vllm.WANTED, *sglang.WANTED)),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one worker."""
    missing = failed(answers, "loras")
    if missing is not None:
        return missing
    names = _read_loras(answers["loras"].body)
    if names is None:
        detail = "/v1/loras: wanted an object of adapters by name under loras"
        return Reading(reason=Reason.FORMAT, detail=detail)
    models = models_of_names(names)
    engine_answers = {
        "metrics": Answer(body_of(answers, "metrics")),
        "models": Answer(parsed=models),
    }
    reading = passed_through(target, engine_answers, now, ENGINE.name)
    if reading is not None and reading.table is not None:
        # Which rows of an engine's own list have parents says nothing here.
        rows = tuple(replace(row, registered=len(names)) for row in reading.table.replicas)
        return replace(reading, table=replace(reading.table, replicas=rows))
    table = ReplicaTable(
        model=target.model or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.OPERATOR,
        max=target.max,
        used=None if names else 0,
        registered=len(names),
        adapters=models.registered,
    )
    detail = "the worker passes no engine's series through: used is unknown" if names else ""
    return Reading(AdapterTable((table,)), detail=detail)


def _read_loras(body: bytes) -> frozenset[str] | None:
    document = json_object(body)
    loras = document.get("loras") if document is not None else None
    return frozenset(loras) - {""} if isinstance(loras, dict) else None


def detection(target: Target) -> tuple[Request, ...]:
    """What tells a Dynamo worker from the engine that it passes through."""
    return (Request("loras", f"{target.base}/v1/loras", turn=1),)


def claims(target: Target, answers: Answers) -> bool:
    """Whether the address lists adapters as a worker does."""
    del target
    body = body_of(answers, "loras")
    document = json_object(body) or {}
    return _read_loras(body) is not None and count(document.get("count")) is not None


ENGINE = Engine(
    "dynamo",
    About(
        "NVIDIA Dynamo worker",
        "1.6, made from its schema",
        "as vLLM or SGLang where their series are passed through; else `slots.max`",
        "as vLLM or SGLang; else 0 without adapters, unknown with any",
    ),
    SlotKind.EVICTABLE,
    (*vllm.ENGINE.sources,),
    requests,
    read,
    detection,
    claims,
)

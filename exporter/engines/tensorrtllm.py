"""TensorRT-LLM: capacity by memory and rank, which only its log tells.

What is mapped to what: max is the operator's; used, and with it free, is unknown. Tokens and
requests come from `/prometheus/metrics` of `trtllm-serve`, or from Triton's metrics port with
`metrics_path: /metrics`. `/metrics` of `trtllm-serve` itself is never asked: it hands out each
iteration's statistics once, and who reads them takes them from whoever they are for.

Wire format: the series `trtllm_…` of its collector, and `nv_trt_llm_…` of Triton's backend.
"""

from __future__ import annotations

from dataclasses import replace

from exporter.engines import openai_models
from exporter.engines.base import (
    About,
    Answers,
    Engine,
    Request,
    body_of,
    failed,
    json_object,
    text,
)
from exporter.engines.openai_models import models_of, owned_by
from exporter.engines.prometheus_text import Finder, has_family_prefix, total
from exporter.fleet import AdapterTable, Reading, Reason, ReplicaTable, SlotKind, Source, Target

METRICS_PATH = "/prometheus/metrics"
PROMPT_TOKENS = "trtllm_prompt_tokens_total"
GENERATION_TOKENS = "trtllm_generation_tokens_total"
OF_TRITON = "nv_trt_llm_request_metrics"
WANTED = (PROMPT_TOKENS, GENERATION_TOKENS, OF_TRITON)
VERSION_MAX_AGE = 300.0

_FINDER = Finder(WANTED)


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    return (
        Request("metrics", target.metrics_url(METRICS_PATH), shown=WANTED),
        # Asked each time: without series nothing else tells that the server is still this one.
        replace(openai_models.request(target), max_age=0.0),
        Request("version", f"{target.base}/version", max_age=VERSION_MAX_AGE),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """What little is known of one replica."""
    del now
    missing = failed(answers, "metrics")
    if missing is not None and missing.reason is not Reason.STATUS:
        return missing
    body = body_of(answers, "metrics")
    models = models_of(answers)
    # Without its series, which have to be switched on, the list of models must be its own.
    if not _is_ours(body) and not owned_by(answers, "tensorrt_llm"):
        detail = f"neither {METRICS_PATH} nor /v1/models is TensorRT-LLM's"
        return missing or Reading(reason=Reason.NO_STATS, detail=detail)
    found = _FINDER.find(body)
    names = {sample.labels.get("model_name") for series in found.values() for sample in series}
    named = min((name for name in names if name), default=None)
    if named is None and models is not None:
        named = models.base
    version = text((json_object(body_of(answers, "version")) or {}).get("version"))
    by_kind = {
        kind: total(one for one in found[OF_TRITON] if one.labels.get("request_type") == kind)
        for kind in ("scheduled", "waiting")
    }
    table = ReplicaTable(
        model=target.model or named or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.OPERATOR,
        version=version[:64] if version is not None else None,
        max=target.max,
        prompt_tokens=total(found[PROMPT_TOKENS]),
        generation_tokens=total(found[GENERATION_TOKENS]),
        requests_running=by_kind["scheduled"],
        requests_waiting=by_kind["waiting"],
    )
    detail = "TensorRT-LLM tells neither its adapters nor its slots: used is unknown"
    return Reading(AdapterTable((table,)), detail=detail)


def _is_ours(body: bytes) -> bool:
    return has_family_prefix(body, "trtllm_") or has_family_prefix(body, "nv_trt_llm_")


def detection(target: Target) -> tuple[Request, ...]:
    """What tells TensorRT-LLM from other servers, before anything asks for `/metrics`."""
    return (
        openai_models.detection(target),
        Request("metrics", target.metrics_url(METRICS_PATH), shown=WANTED, turn=1),
    )


def claims(target: Target, answers: Answers) -> bool:
    """Whether the models are owned by TensorRT-LLM, or the exposition has its families."""
    del target
    return _is_ours(body_of(answers, "metrics")) or owned_by(answers, "tensorrt_llm")


ENGINE = Engine(
    "tensorrtllm",
    About("TensorRT-LLM", "made from its published series", "`slots.max`", "unknown"),
    SlotKind.EVICTABLE,
    (Source.OPERATOR,),
    requests,
    read,
    detection,
    claims,
)

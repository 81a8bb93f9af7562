"""NIM: passes the series of vLLM or SGLang through under `/v1/metrics`.

What is mapped to what: as the engine that is passed through. Other servers that do the same under
another path are read by that engine's reader, with `metrics_path`.

Wire format: that of the engine behind; the path from NIM 2.
"""

from __future__ import annotations

from dataclasses import replace

from exporter.engines import openai_models, sglang, vllm
from exporter.engines.base import About, Answers, Engine, Request, body_of, failed
from exporter.engines.prometheus_text import has_family_prefix
from exporter.fleet import Reading, Reason, SlotKind, Target

METRICS_PATH = "/v1/metrics"


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    shown = (*vllm.WANTED, *sglang.WANTED)
    return (
        Request("metrics", target.metrics_url(METRICS_PATH), shown=shown),
        openai_models.request(target),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one replica, as the engine behind tells it."""
    missing = failed(answers, "metrics")
    if missing is not None:
        return missing
    reading = passed_through(target, answers, now, ENGINE.name)
    if reading is None:
        detail = f"{METRICS_PATH} has neither vllm: nor sglang: series"
        return Reading(reason=Reason.NO_STATS, detail=detail)
    return reading


def passed_through(target: Target, answers: Answers, now: float, name: str) -> Reading | None:
    """What vLLM's or SGLang's reader makes of the series, in the name of another engine.

    None where the series are of neither.
    """
    body = body_of(answers, "metrics")
    if has_family_prefix(body, "vllm:"):
        reading = vllm.read(target, answers, now)
    elif has_family_prefix(body, "sglang:"):
        reading = sglang.read(target, answers, now)
    else:
        return None
    if reading.table is None:
        return reading
    rows = tuple(replace(row, engine=name) for row in reading.table.replicas)
    return replace(reading, table=replace(reading.table, replicas=rows))


def detection(target: Target) -> tuple[Request, ...]:
    """What tells NIM from the engine that it passes through."""
    shown = (*vllm.WANTED, *sglang.WANTED)
    return (Request("metrics", target.metrics_url(METRICS_PATH), shown=shown),)


def claims(target: Target, answers: Answers) -> bool:
    """Whether the engines' series are under NIM's path, where the engines themselves have none."""
    if target.metrics_path is not None:
        # The operator named the path of an engine's own reader.
        return False
    body = body_of(answers, "metrics")
    return has_family_prefix(body, "vllm:") or has_family_prefix(body, "sglang:")


ENGINE = Engine(
    "nim",
    About(
        "NVIDIA NIM",
        "2; the bodies are those of the engine behind",
        "as vLLM or SGLang, from `/v1/metrics`",
        "as vLLM or SGLang",
    ),
    SlotKind.EVICTABLE,
    (*vllm.ENGINE.sources,),
    requests,
    read,
    detection,
    claims,
)

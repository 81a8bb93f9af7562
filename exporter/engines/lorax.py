"""LoRAX: neither a list of adapters nor a maximum.

What is mapped to what: max is the operator's; used, and with it free, is unknown.

Wire format: the series `lorax_…` of `/metrics`, and `/info`, read in its source.
"""

from __future__ import annotations

from exporter.engines.base import (
    About,
    Answers,
    Engine,
    Request,
    base_name,
    body_of,
    failed,
    json_object,
    text,
)
from exporter.engines.prometheus_text import Finder, has_family_prefix, total
from exporter.fleet import AdapterTable, Reading, Reason, ReplicaTable, SlotKind, Source, Target

QUEUE = "lorax_queue_length"
WANTED = (QUEUE,)
INFO_MAX_AGE = 60.0

_FINDER = Finder(WANTED)


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    return (
        Request("metrics", target.metrics_url(), shown=WANTED),
        Request("info", f"{target.base}/info", max_age=INFO_MAX_AGE, confidential=True),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """What little is known of one replica."""
    del now
    missing = failed(answers, "metrics")
    if missing is not None:
        return missing
    body = answers["metrics"].body
    if not has_family_prefix(body, "lorax_"):
        return Reading(reason=Reason.NO_STATS, detail="/metrics has no lorax_ series")
    info = json_object(body_of(answers, "info")) or {}
    model, version = text(info.get("model_id")), text(info.get("version"))
    if model is not None and model.startswith(("/", ".")):
        model = base_name(model)
    table = ReplicaTable(
        model=target.model or model or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.OPERATOR,
        version=version[:64] if version is not None else None,
        max=target.max,
        requests_waiting=total(_FINDER.find(body)[QUEUE]),
    )
    detail = "LoRAX tells neither its adapters nor its slots: used is unknown"
    return Reading(AdapterTable((table,)), detail=detail)


def detection(target: Target) -> tuple[Request, ...]:
    """What tells LoRAX from other servers."""
    return (Request("metrics", target.metrics_url(), shown=WANTED, turn=2),)


def claims(target: Target, answers: Answers) -> bool:
    """Whether the exposition has LoRAX's families."""
    del target
    return has_family_prefix(body_of(answers, "metrics"), "lorax_")


ENGINE = Engine(
    "lorax",
    About("LoRAX", "made from its source", "`slots.max`", "unknown"),
    SlotKind.EVICTABLE,
    (Source.OPERATOR,),
    requests,
    read,
    detection,
    claims,
)

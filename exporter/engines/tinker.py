"""Servers with Tinker's training API: they say which models they train, and no more.

What is mapped to what: slot kind exclusive, as an adapter is held until its owner lets go; max is
the operator's; used, and with it free, is unknown.

Wire format: `GET {prefix}/get_server_capabilities`, `{"supported_models": [{"model_name"}]}`, as
Tinker's public client reads it; the prefix is `/api/v1`.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

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
from exporter.engines.twinkle import DEFAULT_PREFIX
from exporter.fleet import AdapterTable, Reading, Reason, ReplicaTable, SlotKind, Source, Target


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    base = target.base if urlsplit(target.base).path else target.base + DEFAULT_PREFIX
    return (Request("capabilities", f"{base}/get_server_capabilities"),)


def read(target: Target, answers: Answers, now: float) -> Reading:
    """What little is known of one server."""
    del now
    missing = failed(answers, "capabilities")
    if missing is not None:
        return missing
    names = _read_models(answers["capabilities"].body)
    if names is None:
        detail = "get_server_capabilities: wanted a list under supported_models"
        return Reading(reason=Reason.FORMAT, detail=detail)
    table = ReplicaTable(
        model=target.model or (names[0] if len(names) == 1 else target.group),
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.OPERATOR,
        max=target.max,
    )
    detail = "the server tells neither its adapters nor its slots: used is unknown"
    return Reading(AdapterTable((table,)), detail=detail)


def _read_models(body: bytes) -> list[str] | None:
    document = json_object(body)
    rows = document.get("supported_models") if document is not None else None
    if not isinstance(rows, list):
        return None
    names = {text(row.get("model_name")) for row in rows if isinstance(row, dict)}
    return sorted(name for name in names if name is not None)


def detection(target: Target) -> tuple[Request, ...]:
    """What tells such a server from others."""
    return tuple(replace(request, turn=1) for request in requests(target))


def claims(target: Target, answers: Answers) -> bool:
    """Whether the address lists the models that it trains."""
    del target
    return bool(_read_models(body_of(answers, "capabilities")))


ENGINE = Engine(
    "tinker",
    About(
        "Servers with Tinker's API",
        "made from the public client's schema",
        "`slots.max`",
        "unknown",
    ),
    SlotKind.EXCLUSIVE,
    (Source.OPERATOR,),
    requests,
    read,
    detection,
    claims,
)

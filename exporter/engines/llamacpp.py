"""llama.cpp's server: adapters without slots, from `/lora-adapters`.

What is mapped to what: max, used and free are never known, because there is nothing that could be
full: each adapter is loaded at the start and stays. What the server calls slots (`/slots`,
`total_slots`) is room for requests, never for adapters. resident = registered = the adapters;
active = those that a request in progress names. The slot kind says evictable and means nothing.

An adapter has no name, so the base name of its file stands for it. `requests_deferred` of this
server are requests that wait for room of any kind: `requests_waiting`, not ours that wait for an
adapter.

Wire format: recorded from build 11434.
"""

from __future__ import annotations

from typing import Any

import orjson

from exporter.engines import openai_models
from exporter.engines.base import (
    About,
    Answers,
    Engine,
    Request,
    base_name,
    body_of,
    count,
    failed,
    json_object,
    text,
)
from exporter.engines.openai_models import owned_by
from exporter.engines.prometheus_text import Finder, total
from exporter.fleet import (
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

PROMPT_TOKENS = "llamacpp:prompt_tokens_total"
GENERATION_TOKENS = "llamacpp:tokens_predicted_total"
PROCESSING = "llamacpp:requests_processing"
DEFERRED = "llamacpp:requests_deferred"
WANTED = (PROMPT_TOKENS, GENERATION_TOKENS, PROCESSING, DEFERRED)
PROPS_MAX_AGE = 60.0

_FINDER = Finder(WANTED)


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches. `/lora-adapters` is only read: a POST to it would change scales."""
    return (
        # Adapters have paths, slots may have prompts, properties have both.
        Request("adapters", f"{target.base}/lora-adapters", confidential=True),
        Request("slots", f"{target.base}/slots", confidential=True),
        Request("metrics", target.metrics_url(), shown=WANTED),
        Request("props", f"{target.base}/props", max_age=PROPS_MAX_AGE, confidential=True),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one server."""
    del now
    missing = failed(answers, "adapters")
    if missing is not None:
        return missing
    rows = _rows(answers["adapters"].body)
    names = {} if rows is None else _names(rows)
    if rows is None or len(names) != len(rows):
        detail = "/lora-adapters: wanted a list of objects with id and path"
        return Reading(reason=Reason.FORMAT, detail=detail)
    slots = _rows(body_of(answers, "slots"))
    # Without the slots nothing is known of an adapter but that it is there.
    resting = AdapterState.REGISTERED if slots is None else AdapterState.IDLE
    states = dict.fromkeys(names.values(), resting)
    for adapter in _active(slots or []) & names.keys():
        states[names[adapter]] = AdapterState.ACTIVE
    found = _FINDER.find(body_of(answers, "metrics"))
    running = total(found[PROCESSING])
    if running is None and slots is not None:
        running = float(sum(slot.get("is_processing") is True for slot in slots))
    props = json_object(body_of(answers, "props")) or {}
    alias, build = text(props.get("model_alias")), text(props.get("build_info"))
    table = ReplicaTable(
        model=target.model or (base_name(alias) if alias else "") or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.ACTIVITY,
        version=build[:64] if build is not None else None,
        resident=len(rows),
        registered=len(rows),
        adapters=order_adapters(states),
        prompt_tokens=total(found[PROMPT_TOKENS]),
        generation_tokens=total(found[GENERATION_TOKENS]),
        requests_running=running,
        requests_waiting=total(found[DEFERRED]),
    )
    if not rows:
        detail = "llama-server has no adapters; start it with --lora"
        return Reading(AdapterTable((table,)), Reason.NO_LORA, detail)
    return Reading(AdapterTable((table,)), detail="llama.cpp has adapters, and no slots for them")


def _rows(body: bytes) -> list[dict[str, Any]] | None:
    """A list of objects; None for anything else."""
    try:
        rows = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    return rows


def _names(rows: list[dict[str, Any]]) -> dict[int, str]:
    """Names by id. Two files of one name are told apart by the id."""
    names: dict[int, str] = {}
    for row in rows:
        adapter, path = count(row.get("id")), text(row.get("path"))
        name = base_name(path) if path is not None else ""
        if adapter is not None and name:
            names[adapter] = f"{name}#{adapter}" if name in names.values() else name
    return names


def _active(slots: list[dict[str, Any]]) -> set[int]:
    """Ids of adapters that requests in progress name. What a slot says after its end is old."""
    active: set[int] = set()
    for slot in slots:
        params = slot.get("params")
        used = params.get("lora") if isinstance(params, dict) else None
        if slot.get("is_processing") is not True or not isinstance(used, list):
            continue
        for row in used:
            adapter = count(row.get("id")) if isinstance(row, dict) else None
            if adapter is not None and row.get("scale", 1) != 0:
                active.add(adapter)
    return active


def detection(target: Target) -> tuple[Request, ...]:
    """What tells llama.cpp from other servers."""
    return (openai_models.detection(target),)


def claims(target: Target, answers: Answers) -> bool:
    """Whether the models are owned by llama.cpp."""
    del target
    return owned_by(answers, "llamacpp")


ENGINE = Engine(
    "llamacpp",
    About(
        "llama.cpp",
        "recorded from build 11434",
        "adapters have no slots",
        "adapters have no slots; those that a request in progress names are active",
    ),
    SlotKind.EVICTABLE,
    (Source.ACTIVITY,),
    requests,
    read,
    detection,
    claims,
    has_slots=False,
)

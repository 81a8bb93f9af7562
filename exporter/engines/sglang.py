"""SGLang: the LoRA pool of `/metrics` and `/v1/loads`, its settings from `/server_info`.

What is mapped to what: slot kind evictable; max = `lora_pool_slots_total` (`slots_total`), else
`max_loras_per_batch` times the data-parallel ranks; used = distinct adapters of the running batch,
0 while nothing runs, because the gauges keep the last batch's value. Tensor and pipeline ranks
repeat one pool, so the greatest counts; each data-parallel rank has a pool of its own, so they
add up. Requests of the base model take a slot that is not counted: with `slots.base_uses_slot` it
is added wherever more requests run than adapters, as an upper bound.

Wire format: `SchedulerMetricsCollector`, `v1_loads` and `ServerArgs` of the releases 0.5.4 to
0.5.23. `/metrics` has the pool from 0.5.7; `/v1/loads` exists from 0.5.8, and its `lora` is null or
missing up to 0.5.12.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from exporter.engines import openai_models
from exporter.engines.base import (
    About,
    Answers,
    Engine,
    Request,
    body_of,
    count,
    failed,
    json_object,
    text,
)
from exporter.engines.openai_models import models_of, owned_by
from exporter.engines.prometheus_text import Finder, Found, Sample, has_family_prefix, total, whole
from exporter.fleet import (
    AdapterTable,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
)

USED = "sglang:lora_pool_slots_used"
TOTAL = "sglang:lora_pool_slots_total"
RUNNING = "sglang:num_running_reqs"
QUEUED = "sglang:num_queue_reqs"
PROMPT_TOKENS = "sglang:prompt_tokens_total"
GENERATION_TOKENS = "sglang:generation_tokens_total"
WANTED = (USED, TOTAL, RUNNING, QUEUED, PROMPT_TOKENS, GENERATION_TOKENS)
INFO_MAX_AGE = 300.0

_FINDER = Finder(WANTED)
_MOST_RANKS = 4096


@dataclass(frozen=True, slots=True)
class Info:
    """What is kept of `/server_info`, which also holds keys and paths."""

    version: str | None = None
    model: str | None = None
    enable_lora: bool | None = None
    max_loras: int | None = None
    ranks: int | None = None
    """Data-parallel ranks."""


@dataclass(frozen=True, slots=True)
class _Rank:
    """One data-parallel rank, which has a pool of its own. None: not told."""

    running: float | None = None
    queued: float | None = None
    used: int | None = None
    total: int | None = None


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    info = Request(
        "info",
        f"{target.base}/server_info",
        max_age=INFO_MAX_AGE,
        parse=read_info,
        accepts=_is_info,
        # All arguments of the server are in it, its keys too.
        confidential=True,
        fallback=Request("info", f"{target.base}/get_server_info", confidential=True),
    )
    return (
        Request("metrics", target.metrics_url(), shown=WANTED),
        Request("loads", f"{target.base}/v1/loads?include=core,lora,queues"),
        info,
        openai_models.request(target),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one replica."""
    del now
    body = body_of(answers, "metrics")
    loads = _read_loads(answers)
    is_ours = has_family_prefix(body, "sglang:")
    if loads is None and not is_ours:
        return failed(answers, "metrics") or Reading(
            reason=Reason.NO_STATS,
            detail="/metrics has no sglang: series and /v1/loads is none of SGLang's; start SGLang "
            "with --enable-metrics",
        )
    found = _FINDER.find(body)
    info = _info_of(answers)
    ranks = _joined(loads, found)
    table = _table(target, found, ranks, info, answers)
    has_pool = any(rank.total is not None for rank in ranks) or bool(found[TOTAL])
    if not has_pool and info.enable_lora is False:
        detail = "SGLang runs without LoRA; start it with --enable-lora"
        table = replace(table, max=None, used=None)
        return Reading(AdapterTable((table,)), Reason.NO_LORA, detail)
    detail = ""
    if len(ranks) < (info.ranks or 1):
        detail = f"{len(ranks)} of {info.ranks} data-parallel ranks are told: used is unknown"
    elif table.used is None:
        detail = "no LoRA pool in /metrics nor in /v1/loads while requests run: used is unknown"
    elif table.max is None:
        detail = "neither the pool nor max_loras_per_batch is told: max is unknown"
    return Reading(AdapterTable((table,)), detail=detail)


def _table(
    target: Target, found: Found, ranks: list[_Rank], info: Info, answers: Answers
) -> ReplicaTable:
    models = models_of(answers)
    names = {sample.labels.get("model_name", "") for series in found.values() for sample in series}
    name = target.model or min(names - {""}, default=None) or info.model
    if name is None and models is not None:
        name = models.base
    limit = _limit(ranks, info)
    used, bounded = _used(ranks, target.base_uses_slot)
    if len(ranks) < (info.ranks or 1):
        used, bounded = None, False
    # Older versions list the base model alone, in rows without the key.
    knows_adapters = models is not None and models.tells_parents
    return ReplicaTable(
        model=name or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.ACTIVITY_UPPER_BOUND if bounded else Source.ACTIVITY,
        version=info.version,
        max=target.max if limit is None else limit,
        used=used,
        registered=len(models.adapters) if models is not None and knows_adapters else None,
        adapters=models.registered if models is not None else (),
        prompt_tokens=total(found[PROMPT_TOKENS]),
        generation_tokens=total(found[GENERATION_TOKENS]),
        requests_running=_sum(rank.running for rank in ranks),
        requests_waiting=_sum(rank.queued for rank in ranks),
    )


def _limit(ranks: list[_Rank], info: Info) -> int | None:
    """Slots of all ranks. A pool of 0 is one that has not been counted yet."""
    totals = [rank.total for rank in ranks if rank.total]
    if totals and len(totals) == len(ranks) >= (info.ranks or 1):
        return sum(totals)
    if info.max_loras is None:
        return None
    return info.max_loras * max(info.ranks or 1, len(ranks))


def _used(ranks: list[_Rank], base_uses_slot: bool) -> tuple[int | None, bool]:
    """Slots that are used on all ranks, and whether that is only an upper bound."""
    used, bounded = 0, False
    for rank in ranks:
        if rank.running == 0:
            continue
        if rank.used is None or rank.running is None:
            return None, False
        used += rank.used
        has_room = rank.total is None or rank.used < rank.total
        if base_uses_slot and rank.running > rank.used and has_room:
            used, bounded = used + 1, True
    return (used, bounded) if ranks else (None, False)


def _joined(loads: dict[str, _Rank] | None, found: Found) -> list[_Rank]:
    """The data-parallel ranks. What `/v1/loads` leaves out is taken from `/metrics`."""
    shown = _read_ranks(found)
    if loads is None:
        return list(shown.values())
    # A single rank has no dp_rank label in /metrics.
    single = shown.get("") if len(loads) == 1 and len(shown) == 1 else None
    joined = []
    for name, load in loads.items():
        series = shown.get(name, single) or _Rank()
        whole_pool = load if load.total is not None and load.used is not None else series
        joined.append(
            _Rank(
                series.running if load.running is None else load.running,
                series.queued if load.queued is None else load.queued,
                whole_pool.used,
                whole_pool.total,
            )
        )
    return joined


def _read_ranks(found: Found) -> dict[str, _Rank]:
    """Ranks by the label `dp_rank`, empty where there is one."""
    by_name = {name: _greatest(found[name]) for name in (RUNNING, QUEUED, USED, TOTAL)}
    ranks = set().union(*by_name.values())
    return {
        rank: _Rank(
            by_name[RUNNING].get(rank),
            by_name[QUEUED].get(rank),
            whole(by_name[USED].get(rank)),
            whole(by_name[TOTAL].get(rank)),
        )
        for rank in sorted(ranks)
    }


def _greatest(samples: Iterable[Sample]) -> dict[str, float]:
    greatest: dict[str, float] = {}
    for labels, value in samples:
        rank = labels.get("dp_rank", "")
        greatest[rank] = max(value, greatest.get(rank, 0.0))
    return greatest


def _read_loads(answers: Answers) -> dict[str, _Rank] | None:
    """Ranks by name from `/v1/loads`; None where it is not SGLang's, or empty."""
    document = json_object(body_of(answers, "loads"))
    rows = document.get("loads") if document is not None else None
    if not isinstance(rows, list):
        return None
    ranks: dict[str, _Rank] = {}
    for row in rows[:_MOST_RANKS]:
        rank = count(row.get("dp_rank")) if isinstance(row, dict) else None
        if rank is None:
            continue
        lora = row.get("lora")
        pool = lora if isinstance(lora, dict) else {}
        ranks[str(rank)] = _Rank(
            _number(row.get("num_running_reqs")),
            _number(row.get("num_waiting_reqs")),
            count(pool.get("slots_used")),
            count(pool.get("slots_total")),
        )
    return ranks or None


def _is_info(body: bytes) -> bool:
    document = json_object(body)
    return document is not None and "max_loras_per_batch" in document


def read_info(body: bytes) -> Info:
    """The few settings that are wanted; the rest is forgotten."""
    document: dict[str, Any] = json_object(body) or {}
    version = text(document.get("version"))
    enabled = document.get("enable_lora", ...)
    return Info(
        version=version[:64] if version is not None else None,
        model=text(document.get("served_model_name")),
        enable_lora=None if enabled is ... else enabled is True,
        max_loras=count(document.get("max_loras_per_batch")),
        ranks=count(document.get("dp_size")),
    )


def _info_of(answers: Answers) -> Info:
    answer = answers.get("info")
    if answer is None or not answer.ok:
        return Info()
    return answer.parsed if isinstance(answer.parsed, Info) else read_info(answer.body)


def _number(value: object) -> float | None:
    number = count(value)
    return None if number is None else float(number)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def detection(target: Target) -> tuple[Request, ...]:
    """What tells SGLang from other servers."""
    return (
        openai_models.detection(target),
        Request("metrics", target.metrics_url(), shown=WANTED, turn=2),
    )


def claims(target: Target, answers: Answers) -> bool:
    """Whether the models are owned by SGLang, or the exposition has its families."""
    del target
    return has_family_prefix(body_of(answers, "metrics"), "sglang:") or owned_by(answers, "sglang")


ENGINE = Engine(
    "sglang",
    About(
        "SGLang",
        "0.5.4 to 0.5.23; bodies from the serialisers of 0.5.23, others made from the source",
        "`sglang:lora_pool_slots_total` or `/v1/loads`, added over data-parallel ranks; else "
        "`max_loras_per_batch`",
        "adapters of the running batch, from the same; 0 while nothing runs",
    ),
    SlotKind.EVICTABLE,
    (Source.ACTIVITY, Source.ACTIVITY_UPPER_BOUND),
    requests,
    read,
    detection,
    claims,
)

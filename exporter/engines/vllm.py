"""vLLM: the series `vllm:lora_requests_info` of `/metrics`, names from `/v1/models`.

What is mapped to what: slot kind evictable; max = max_lora x engines of the replica; used =
distinct adapters with requests in flight. vLLM tells which adapters are active, not which are
resident, so an idle resident adapter is invisible and its slot counts as free, which it is for
whoever comes next. Where a build tells residency (`vllm:lora_adapter_loaded`), used = active or
pinned.

Wire format: `vllm/v1/metrics/loggers.py` (V1) and `vllm/engine/metrics.py` (V0) of the releases
0.8 to 0.32. The value of the series is the unix time at which its label set was last true; label
sets never disappear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from exporter.engines import openai_models
from exporter.engines.base import About, Answers, Engine, Request, body_of, failed, json_object
from exporter.engines.openai_models import Models, models_of, owned_by
from exporter.engines.prometheus_text import (
    Finder,
    Found,
    Sample,
    declared,
    has_family_prefix,
    total,
)
from exporter.engines.vllm_residency import RESIDENCY, has_residency, read_residency
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

LORA_INFO = "vllm:lora_requests_info"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
WAITING_BY_REASON = "vllm:num_requests_waiting_by_reason"
PROMPT_TOKENS = "vllm:prompt_tokens_total"
GENERATION_TOKENS = "vllm:generation_tokens_total"

WANTED = (
    LORA_INFO,
    RUNNING,
    WAITING,
    WAITING_BY_REASON,
    PROMPT_TOKENS,
    GENERATION_TOKENS,
    *RESIDENCY,
)

_FINDER = Finder(WANTED)

FUTURE_SECONDS = 300.0
"""A sample later than this after now is a sum of timestamps, made by several API servers."""
STALE_SECONDS = 30.0
"""With requests running, a newest sample older than this does not tell the present."""
VERSION_MAX_AGE = 300.0

_MOST_COMMAS = 16
"""In a name; one with more is taken for several, as its search would cost too much."""
_MOST_PARTS = 2000
_FIRST_WITHOUT_WAITING = (0, 11, 1)
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")
_MAX_LORA = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class _Present:
    """The present of `vllm:lora_requests_info`."""

    max_lora: int
    running: str
    waiting: str
    at: float
    waiting_is_told: bool
    """False where every series repeats running as waiting (releases since 0.11.1)."""


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches."""
    names = "&".join(f"name[]={name}" for name in WANTED)
    whole = Request("metrics", target.metrics_url(), shown=WANTED)
    # Only the path with a trailing slash filters by name. Where the series are elsewhere, another
    # server passes them through, and what it makes of a filter is not known.
    filtered = replace(
        whole, url=f"{target.base}/metrics/?{names}", accepts=_has_lora_sample, fallback=whole
    )
    return (
        filtered if target.metrics_path is None else whole,
        openai_models.request(target),
        Request("version", f"{target.base}/version", max_age=VERSION_MAX_AGE),
    )


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one replica. `now` serves where the engine sent no Date."""
    missing = failed(answers, "metrics")
    if missing is not None:
        return missing
    metrics = answers["metrics"]
    body = metrics.body
    found = _FINDER.find(body)
    models = models_of(answers)
    table = _skeleton(target, found, models, _read_version(answers))
    if not any(found.values()) and not has_family_prefix(body, "vllm:"):
        if body.strip() and not body.lstrip().startswith(b"#"):
            return Reading(reason=Reason.FORMAT, detail="/metrics is not a Prometheus exposition")
        return Reading(
            AdapterTable((table,)),
            Reason.NO_STATS,
            "/metrics has no vllm: series; start vLLM without --disable-log-stats",
        )
    lora = found[LORA_INFO]
    clock = metrics.date if metrics.date is not None else now
    if any(sample.value > clock + FUTURE_SECONDS for sample in lora):
        return Reading(
            AdapterTable((_of_several_servers(table, target),)),
            Reason.AMBIGUOUS,
            f"{LORA_INFO} adds up the timestamps of several API servers; "
            "start vLLM with --api-server-count 1",
        )
    if not lora and not has_residency(found):
        return _without_lora_samples(target, table, body, found, models)
    present = _present(lora, table.version)
    if lora and present is None:
        return Reading(
            AdapterTable((table,)),
            Reason.FORMAT,
            f"{LORA_INFO}: no sample has a max_lora that is a whole number",
        )
    if present is not None and present.max_lora == 0:
        return _no_lora(table)
    table = _with_slots(target, table, found, present, models, clock)
    detail = ""
    if table.used is None and present is not None:
        detail = f"{LORA_INFO} is old while requests run: used is unknown"
    return Reading(AdapterTable((table,)), detail=detail)


def _skeleton(
    target: Target, found: Found, models: Models | None, version: str | None
) -> ReplicaTable:
    """A table of all that is known before slots."""
    name = target.model
    if name is None:
        for series in (RUNNING, PROMPT_TOKENS, GENERATION_TOKENS):
            served = {sample.labels.get("model_name", "") for sample in found[series]}
            name = min(served - {""}, default=None)
            if name is not None:
                break
    if name is None and models is not None:
        name = models.base
    return ReplicaTable(
        model=name or target.group,
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.ACTIVITY,
        version=version,
        registered=None if models is None else len(models.adapters),
        adapters=() if models is None else models.registered,
        prompt_tokens=total(found[PROMPT_TOKENS]),
        generation_tokens=total(found[GENERATION_TOKENS]),
        requests_running=total(found[RUNNING]),
        requests_waiting=total(found[WAITING]),
        requests_deferred=total(
            sample
            for sample in found[WAITING_BY_REASON]
            if sample.labels.get("reason") == "deferred"
        ),
    )


def _of_several_servers(table: ReplicaTable, target: Target) -> ReplicaTable:
    """Each server's gauges are its own view; which one answered is not told."""
    return replace(
        table,
        max=target.max,
        requests_running=None,
        requests_waiting=None,
        requests_deferred=None,
    )


def _without_lora_samples(
    target: Target,
    table: ReplicaTable,
    body: bytes,
    found: Found,
    models: Models | None,
) -> Reading:
    """Before the first engine step there is no sample: slots are unknown, not 0.

    With several API servers not even the family is declared then; they betray themselves by the
    missing samples of the running gauge.
    """
    adapters = models.adapters if models is not None else frozenset()
    if not declared(body, LORA_INFO) and found[RUNNING] and not adapters:
        return _no_lora(table)
    if target.max is not None and table.requests_running == 0:
        table = replace(table, max=target.max, used=0, source=Source.OPERATOR)
        return Reading(AdapterTable((table,)))
    detail = f"no {LORA_INFO} before the first request: slots are unknown"
    return Reading(AdapterTable((replace(table, max=target.max),)), detail=detail)


def _no_lora(table: ReplicaTable) -> Reading:
    return Reading(
        AdapterTable((table,)),
        Reason.NO_LORA,
        "vLLM runs without LoRA; start it with --enable-lora",
    )


def _present(lora: Sequence[Sample], version: str | None) -> _Present | None:
    """The newest sample: the greatest value, whatever the order of the lines."""
    shapes = [
        (
            sample.value,
            sample.labels.get("running_lora_adapters", ""),
            sample.labels.get("waiting_lora_adapters", ""),
            int(sample.labels["max_lora"]),
        )
        for sample in lora
        if _MAX_LORA.fullmatch(sample.labels.get("max_lora", ""))
    ]
    if not shapes:
        return None
    at, running, waiting, max_lora = max(shapes)
    differs = any(shape[1] != shape[2] for shape in shapes)
    return _Present(max_lora, running, waiting, at, differs or _tells_waiting(version))


def _tells_waiting(version: str | None) -> bool:
    match = _VERSION.match(version) if version else None
    if match is None:
        return False
    return tuple(int(part or 0) for part in match.groups()) < _FIRST_WITHOUT_WAITING


def _with_slots(
    target: Target,
    table: ReplicaTable,
    found: Found,
    present: _Present | None,
    models: Models | None,
    clock: float,
) -> ReplicaTable:
    known = models.adapters if models is not None else frozenset()
    per_engine: dict[str, float] = {}
    for sample in found[RUNNING]:
        engine = sample.labels.get("engine", "")
        per_engine[engine] = per_engine.get(engine, 0.0) + sample.value
    engines = max(len(per_engine), 1)
    states: dict[str, AdapterState] = {}
    active: frozenset[str] | None = None
    limit, used, source = target.max, None, table.source
    if present is not None:
        limit = present.max_lora * engines
        if not (table.requests_running and present.at < clock - STALE_SECONDS):
            active = frozenset(split_names(present.running, known))
            used = len(active)
            if engines > 1:
                bound = sum(
                    int(min(present.max_lora, used, max(n, 0))) for n in per_engine.values()
                )
                used = max(used, bound)
                source = Source.ACTIVITY_UPPER_BOUND
            if present.waiting_is_told:
                states.update(
                    dict.fromkeys(split_names(present.waiting, known), AdapterState.WAITING)
                )
    elif table.requests_running == 0:
        # Builds that tell residency do so before the first request, of which none is there yet.
        active, used = frozenset(), 0
    resident = None
    if has_residency(found):
        residency = read_residency(found, active, states, engines)
        limit = limit if residency.max is None else residency.max
        resident = residency.resident
        if residency.used is not None:
            used, source = residency.used, Source.RESIDENCY
    if active is not None:
        # An adapter in both lists has a slot: only some of its requests wait.
        states.update(dict.fromkeys(active, AdapterState.ACTIVE))
    waiting = None
    if present is not None and active is not None and present.waiting_is_told:
        waiting = sum(state is AdapterState.WAITING for state in states.values())
    return replace(
        table,
        max=limit,
        used=used,
        source=source,
        resident=resident,
        waiting=waiting,
        adapters=_with_registered(states, models),
    )


def _with_registered(states: dict[str, AdapterState], models: Models | None) -> tuple[Adapter, ...]:
    """Adapters of which more is known than that they are registered, then the others."""
    others = models.registered if models is not None else ()
    return (*order_adapters(states), *(one for one in others if one.name not in states))


def split_names(joined: str, known: frozenset[str]) -> list[str]:
    """Splits names that were joined by commas without escaping.

    A name may itself contain commas, so of all ways to split, the one with the fewest unknown names
    is taken, then the one with the fewest names.
    """
    if not joined:
        return []
    parts = joined.split(",")
    commas = (name.count(",") for name in known if "," in name)
    longest = max((count for count in commas if count <= _MOST_COMMAS), default=0) + 1
    if longest == 1 or len(parts) > _MOST_PARTS:
        return parts
    best: list[tuple[int, int, int]] = [(0, 0, 0)]
    for end in range(1, len(parts) + 1):
        options = []
        for start in range(max(0, end - longest), end):
            is_known = ",".join(parts[start:end]) in known
            if is_known or end - start == 1:
                unknown, names, _ = best[start]
                options.append((unknown + (not is_known), names + 1, start))
        best.append(min(options))
    split: list[str] = []
    end = len(parts)
    while end:
        start = best[end][2]
        split.append(",".join(parts[start:end]))
        end = start
    return split[::-1]


def _read_version(answers: Answers) -> str | None:
    answer = answers.get("version")
    document = json_object(answer.body) if answer is not None and answer.ok else None
    version = document.get("version") if document is not None else None
    return version[:64] if isinstance(version, str) and version else None


def _has_lora_sample(body: bytes) -> bool:
    return has_family_prefix(body, LORA_INFO + "{")


def detection(target: Target) -> tuple[Request, ...]:
    """What tells a vLLM replica from other servers."""
    return (
        openai_models.detection(target),
        Request("metrics", target.metrics_url(), shown=WANTED, turn=2),
    )


def claims(target: Target, answers: Answers) -> bool:
    """Whether the exposition has vLLM's families, or the models are owned by vLLM."""
    del target
    return has_family_prefix(body_of(answers, "metrics"), "vllm:") or owned_by(answers, "vllm")


ENGINE = Engine(
    "vllm",
    About(
        "vLLM",
        "recorded from 0.8.5, 0.10.2, 0.27.1, 0.32.0; residency made from open pull requests",
        "`max_lora` of `vllm:lora_requests_info`, times the engines of a replica",
        "adapters with requests in flight, from the same series; an upper bound for a "
        "data-parallel replica, whose engines share one list; active or pinned ones from builds "
        "that tell residency",
    ),
    SlotKind.EVICTABLE,
    (Source.ACTIVITY, Source.ACTIVITY_UPPER_BOUND, Source.RESIDENCY, Source.OPERATOR),
    requests,
    read,
    detection,
    claims,
)

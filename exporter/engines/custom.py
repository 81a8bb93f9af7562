"""Any JSON or Prometheus endpoint, read as the settings of the target group map it.

What is mapped to what: as the operator says under `custom`, in paths into the answer. What is not
mapped is unknown. Of `used` and `free` one follows from the other with `max`; without either, used
is the number of `active` adapters. Values that a path finds many of are added up.

Wire format: the operator's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from exporter.engines.base import About, Answers, Engine, Request, count, failed
from exporter.engines.custom_paths import NothingError, find, selector
from exporter.engines.prometheus_text import Finder, Found, Sample, declared
from exporter.fleet import (
    AdapterState,
    AdapterTable,
    CustomMap,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
    order_adapters,
)

SLOTS = ("max", "used", "free")
COUNTS = (*SLOTS, "resident", "waiting", "registered")
AMOUNTS = ("prompt_tokens", "generation_tokens", "requests_running", "requests_waiting")
NAMES = ("active", "adapters")
KEYS = (*COUNTS, *AMOUNTS, *NAMES, "model")
"""All that can be mapped."""


@dataclass(slots=True)
class _Found:
    """What the paths found, and what is to be said of those that did not."""

    counts: dict[str, int] = field(default_factory=dict)
    amounts: dict[str, float] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


class _WrongError(ValueError):
    """A path that found something else than what is wanted. The message says what."""


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches. Nobody knows what else the endpoint tells, so it is never shown."""
    if target.custom is None:
        return ()
    return (Request("custom", target.base + target.custom.path, confidential=True),)


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one replica."""
    del now
    custom = target.custom
    if custom is None:
        detail = "engine: custom needs custom: in the target's group, which maps the answer"
        return Reading(reason=Reason.UNSUPPORTED, detail=detail)
    missing = failed(answers, "custom")
    if missing is not None:
        return missing
    body = answers["custom"].body
    values = _of_json(body) if custom.format == "json" else _of_series(body, custom)
    if values is None:
        return Reading(reason=Reason.FORMAT, detail=f"{custom.path}: the answer is no JSON")
    found = _collect(custom, values)
    table = _table(target, custom, found)
    detail = "; ".join(f"{custom.path}: {key}: {text}" for key, text in found.problems.items())
    lost = found.problems.keys() & {*SLOTS, "active"}
    return Reading(AdapterTable((table,)), Reason.FORMAT if lost else None, detail)


def _table(target: Target, custom: CustomMap, found: _Found) -> ReplicaTable:
    limit = found.counts.get("max", target.max)
    active = found.names.get("active")
    used, source = found.counts.get("used"), Source.SLOTS
    if used is None and "free" in found.counts and limit is not None:
        used = max(limit - found.counts["free"], 0)
    if active is not None:
        if used is None and not found.problems.keys() & set(SLOTS):
            used, source = len(set(active)), Source.ACTIVITY
        # An adapter at work has a slot, whatever the other number says.
        used = None if used is None else max(used, len(set(active)))
    states = dict.fromkeys(found.names.get("adapters", ()), AdapterState.REGISTERED)
    states |= dict.fromkeys(active or (), AdapterState.ACTIVE)
    models = found.names.get("model", [])
    return ReplicaTable(
        model=target.model or (models[0] if models else target.group),
        engine=ENGINE.name,
        slot_kind=custom.slot_kind,
        source=source,
        max=limit,
        used=used,
        resident=found.counts.get("resident"),
        waiting=found.counts.get("waiting"),
        registered=found.counts.get("registered"),
        adapters=order_adapters(states),
        prompt_tokens=found.amounts.get("prompt_tokens"),
        generation_tokens=found.amounts.get("generation_tokens"),
        requests_running=found.amounts.get("requests_running"),
        requests_waiting=found.amounts.get("requests_waiting"),
    )


_Values = Callable[[str, bool], list[Any]]
"""What a path finds: numbers, or with True names. Raises NothingError and _WrongError."""


def _collect(custom: CustomMap, values: _Values) -> _Found:
    found = _Found()
    for key, path in custom.paths:
        try:
            if key in COUNTS:
                numbers = values(path, False)
                if key == "max" and not numbers:
                    # Nothing is used where an empty list adds up to 0, but no room is unknown room.
                    raise NothingError(path)
                found.counts[key] = _count(numbers)
            elif key in AMOUNTS:
                found.amounts[key] = _amount(values(path, False))
            else:
                found.names[key] = _names(values(path, True))
        except NothingError as error:
            where = "" if str(error) == path else f"{path}: "
            found.problems[key] = f"{where}found nothing at {error}"
        except _WrongError as error:
            found.problems[key] = f"{path}: wanted {error}"
    return found


def _of_json(body: bytes) -> _Values | None:
    try:
        document = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return lambda path, _: find(document, path)


def _of_series(body: bytes, custom: CustomMap) -> _Values:
    names = tuple(sorted({selector(path).name for _, path in custom.paths}))
    series: Found = _finder(names).find(body)

    def values(path: str, of_names: bool) -> list[Any]:
        wanted = selector(path)
        samples: list[Sample] = [
            sample for sample in series[wanted.name] if wanted.matches(sample.labels)
        ]
        if not samples and not (of_names and is_there(wanted.name)):
            raise NothingError(path)
        if not of_names:
            return [sample.value for sample in samples]
        # An adapter that left may keep its series, at 0.
        label = custom.adapter_label
        named = [sample.labels.get(label) for sample in samples if sample.value > 0]
        if named and not any(named):
            raise NothingError(f"label {label} of {path}")
        return [name for name in named if name]

    def is_there(name: str) -> bool:
        """Whether the series exists: only then does having no sample mean having no adapter."""
        return bool(series[name]) or declared(body, name)

    return values


@lru_cache(maxsize=256)
def _finder(names: tuple[str, ...]) -> Finder:
    return Finder(names)


def _amount(values: list[Any]) -> float:
    """The sum of numbers."""
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise _WrongError("numbers")
    try:
        amount = float(sum(values))
    except OverflowError:
        amount = math.inf
    if not math.isfinite(amount) or amount < 0:
        raise _WrongError("numbers from 0 on")
    return amount


def _count(values: list[Any]) -> int:
    amount = _amount(values)
    number = count(int(amount)) if amount.is_integer() else None
    if number is None:
        raise _WrongError("whole numbers")
    return number


def _names(values: list[Any]) -> list[str]:
    if any(not isinstance(value, str) or not value for value in values):
        raise _WrongError("names")
    return values


def detection(target: Target) -> tuple[Request, ...]:
    """Nothing: what the operator maps is not found by itself."""
    del target
    return ()


def claims(target: Target, answers: Answers) -> bool:
    """Never."""
    del target, answers
    return False


ENGINE = Engine(
    "custom",
    About(
        "Any other",
        "JSON or Prometheus, mapped under `custom`",
        "the path `custom.max`, else `slots.max`",
        "the path `custom.used`, or `free`, or the number of names at `active`",
    ),
    SlotKind.EVICTABLE,
    (Source.SLOTS, Source.ACTIVITY),
    requests,
    read,
    detection,
    claims,
)

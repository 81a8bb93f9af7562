"""The same adapters take slots on many replicas, and slots are short."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, mostly_full, view
from alerts.generator.inputs import AlertLimits, Factor, Limit
from alerts.generator.rules import Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How many copies are many."""

    copies: Limit[Factor]


def _expression(context: Context, limits: Limits) -> Either:
    s = context.scope
    evictable = 'model:lora_used:sum{slot_kind="evictable"}'
    used = f"sum {s.by('model')} ({latest(evictable, context)})"
    distinct = latest("model:lora_distinct_adapters:max", context)
    return one(
        f"{used} / ({distinct} > 0) > {limits.copies.value:g}",
        mostly_full(context),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "The same adapters take LoRA slots on many replicas of a full model.",
        f"{context.model()}: each adapter with work takes {{{{ $value | humanize }}}} slots on "
        "average. Route requests by adapter before adding replicas.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraAdaptersDuplicated", Limits, _expression, _text)

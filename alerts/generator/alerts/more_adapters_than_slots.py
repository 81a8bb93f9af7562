"""Adapters share slots that are too few for all of them, and meet each other there."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest, view
from alerts.generator.inputs import FULL_WINDOW, AlertLimits, Limit, Share
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """From when on sharing is worth a word."""

    full_share: Limit[Share]


def _expression(context: Context, limits: Limits) -> Either:
    s = context.scope
    slots = s.max_by(latest('replica:lora_max:max{slot_kind="evictable"}', context), "model")
    ratio = f"avg_over_time(model:lora_full:ratio{FULL_WINDOW}[1h])"
    return one(
        f"{kept('lora_registered', '', context)} > {slots}",
        # A few hot adapters on few slots are served well, however many are registered.
        Clause("and", f"{s.on('model')} {ratio} >= {limits.full_share.value:g}"),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "A model has more adapters than LoRA slots on a replica, and they meet.",
        f"{context.model()}: {{{{ $value | humanize }}}} adapters are registered, more than a "
        f"replica has slots, and slots were full for at least {limits.full_share.value:.0%} of the "
        "last hour.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraMoreAdaptersThanSlots", Limits, _expression, _text)

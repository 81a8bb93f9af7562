"""Slots are full most of the time, and adapters are known to wait for one."""

from __future__ import annotations

from alerts.generator.alerts.common import evictable, mostly_full, view, work_waits
from alerts.generator.inputs import FULL_WINDOW, AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(work_waits(context), mostly_full(context), evictable(context))


def _text(context: Context, limits: AlertLimits) -> Text:
    common = context.inputs.common
    waits = counted("adapter, or request for one, waits", "adapters, or requests for them, wait")
    return Text(
        "Adapters wait for a LoRA slot.",
        f"{context.model()}: {waits} for a slot on average, and slots were full for at least "
        f"{common.full_share.value:.0%} of the last {FULL_WINDOW}. Their users see slow answers.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraAdaptersWaiting", AlertLimits, _expression, _text, room=True)

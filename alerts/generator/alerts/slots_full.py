"""Slots are full most of the time, and it is known that nothing waits."""

from __future__ import annotations

from alerts.generator.alerts.common import evictable, latest, requests_wait, view
from alerts.generator.inputs import FULL_WINDOW, AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


def _expression(context: Context, limits: AlertLimits) -> Either:
    common = context.inputs.common
    on = context.scope.on("model")
    nobody = f"avg_over_time(model:lora_waiting:sum[{common.waiting_window.value}])"
    ratio = latest(f"model:lora_full:ratio{FULL_WINDOW}", context)
    return one(
        f"{ratio} >= {common.full_share.value:g}",
        evictable(context),
        Clause("and", f"{on} {nobody} < {common.waiting.value:g}"),
        Clause("unless", f"{on} {requests_wait(context)}"),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "The LoRA slots of a model are full, and nothing waits yet.",
        f"{context.model()}: slots were full for {{{{ $value | humanizePercentage }}}} of the last "
        f"{FULL_WINDOW}. Nothing waits; the next adapter with work will.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraSlotsFull", AlertLimits, _expression, _text)

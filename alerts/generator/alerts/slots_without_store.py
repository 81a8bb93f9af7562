"""Slots that are held are known from a gateway's total only."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    rows = 'replica:lora_replica_info:topk{slot_kind="exclusive",source="gateway"}'
    return one(f"count {context.scope.by('model')} ({latest(rows, context)}) > 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "Held LoRA slots are read without the store that knows who holds them.",
        f"{context.model()}: {counted('gateway tells', 'gateways tell')} a total only. Slots that "
        "look free may be those of replicas that are gone.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraSlotsReadWithoutStore", AlertLimits, _expression, _text)

"""Slots whose session is gone are still held."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(f"{kept('lora_replica_orphans', '', context, 'replica_id')} > 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "LoRA slots are held by sessions that are gone.",
        f"{context.model()}: sessions that no longer exist hold {counted('slot', 'slots')} of "
        "replica {{ $labels.replica_id }}. Nobody will give that back.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraSlotsOrphaned", AlertLimits, _expression, _text)

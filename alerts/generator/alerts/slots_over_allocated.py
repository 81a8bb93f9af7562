"""A replica has given out more slots than it has."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    used, most = (
        latest(f'replica:lora_{what}:max{{slot_kind="exclusive"}}', context)
        for what in ("used", "max")
    )
    return one(f"{used} - {most} > 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A replica has given out more LoRA slots than it has.",
        f"{context.model()}: replica {{{{ $labels.replica_id }}}} has given out "
        f"{counted('slot', 'slots')} more than it has.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraSlotsOverAllocated", AlertLimits, _expression, _text)

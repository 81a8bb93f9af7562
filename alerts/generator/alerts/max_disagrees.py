"""Replicas of one model and version have different numbers of slots."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, steady, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(f"{latest('model:lora_max:spread', context)} > 0", steady(context))


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "Replicas of one version have different numbers of LoRA slots.",
        f"{context.model()}: replicas of {{{{ $labels.engine }}}} {{{{ $labels.version }}}} differ "
        f"by {counted('slot', 'slots')}. One of them has other settings than was meant.",
        view("lora-replicas", "model"),
    )


ALERT = Definition("LoraMaxDisagrees", AlertLimits, _expression, _text)

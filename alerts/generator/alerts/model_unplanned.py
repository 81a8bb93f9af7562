"""A model has a card, and its plan has been unknown for long."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one

_CHOSEN = "no_card|no_inventory|slots_unknown"
"""What the operator left out on purpose, and what has an alert of its own."""


def _expression(context: Context, limits: AlertLimits) -> Either:
    on = context.scope.on("model")
    others = kept("lora_model_unplanned", f'reason!~"{_CHOSEN}"', context, "reason")
    no_card = kept("lora_model_unplanned", 'reason="no_card"', context)
    return one(
        f"{others} == 1",
        Clause("unless", f"{on} {no_card} == 1"),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "What a model needs has been unknown for long.",
        f"{context.model()}: needed replicas or headroom have been unknown for "
        f"{limits.for_.value}, reason {{{{ $labels.reason }}}}.",
        view("lora-planning", "model"),
    )


ALERT = Definition("LoraModelUnplanned", AlertLimits, _expression, _text)

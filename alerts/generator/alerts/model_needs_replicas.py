"""A model runs fewer replicas than its load needs, and they would fit."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.planning import fits, more, runs
from alerts.generator.alerts.replicas_lost import lost
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(
        more(context),
        runs(context),
        fits(0, context, "unless"),
        Clause("unless", f"{context.scope.on('model')} {lost(context)}"),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A model needs more replicas than it has.",
        f"{context.model()}: the load needs {counted('more replica', 'more replicas')} than there "
        f"are, for {limits.for_.value} already, and nobody starts them.",
        view("lora-planning", "model"),
    )


ALERT = Definition("LoraModelNeedsReplicas", AlertLimits, _expression, _text, room=True)

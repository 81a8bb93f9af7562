"""Each of two models would fit, and both together do not."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.alerts.planning import fits, runs
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one


def _expression(context: Context, limits: AlertLimits) -> Either:
    unplaced = kept("lora_model_unplaced_replicas", "", context)
    return one(f"{unplaced} > 0", fits(1, context), runs(context))


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A model counts on room that another model needs too.",
        f"{context.model()}: alone it would fit, but {{{{ $value | humanize }}}} of the replicas "
        "that it needs find no room once models of higher rank have theirs.",
        view("lora-planning", "model"),
    )


ALERT = Definition("LoraModelUnplaced", AlertLimits, _expression, _text)

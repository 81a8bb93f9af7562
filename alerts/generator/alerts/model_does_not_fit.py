"""The replicas that a model needs find no room, even by stopping others."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.planning import fits, more, quota_stops, runs
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(
        more(context),
        runs(context),
        fits(0, context),
        quota_stops("unless", context),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    needed = counted(
        "more replica is needed and does not", "more replicas are needed and do not all"
    )
    return Text(
        "The replicas that a model needs do not fit.",
        f"{context.model()}: {needed} fit, even by stopping replicas of lower-ranked classes.",
        view("lora-planning", "model"),
    )


ALERT = Definition("LoraModelDoesNotFit", AlertLimits, _expression, _text, room=True)

"""The replicas that a model needs are more than its owner's quota allows."""

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
        quota_stops("and", context),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A quota stops the replicas that a model needs.",
        f"{context.model()}: {counted('more replica is', 'more replicas are')} needed, and the "
        "quota of {{ $labels.owner }} stops that.",
        view("lora-planning", "model", "owner"),
    )


ALERT = Definition("LoraQuotaStopsModel", AlertLimits, _expression, _text, room=True)

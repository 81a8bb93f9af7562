"""Adapters are left out of the series because there are too many."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one


def _expression(context: Context, limits: AlertLimits) -> Either:
    s = context.scope
    dropped = kept("lora_replica_adapters_dropped", "", context, "replica_id")
    return one(f"max {s.by('model')} ({dropped}) > 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "Some adapters of a model have no series.",
        f"{context.model()}: up to {{{{ $value | humanize }}}} adapters of a replica are not "
        "named, as there are more than poll.max_adapters.",
        view("lora-replicas", "model"),
    )


ALERT = Definition("LoraAdaptersDropped", AlertLimits, _expression, _text)

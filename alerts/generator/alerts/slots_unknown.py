"""Replicas serve requests and do not tell their slots."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest, view
from alerts.generator.inputs import AlertLimits, Duration, Limit
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """What counts as serving."""

    traffic_window: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    s, replica = context.scope, ("model", "replica_id")
    tokens = s.series("lora_replica_generation_tokens_total")
    served = s.max_by(f"increase({tokens}[{limits.traffic_window.value}])", *replica)
    return one(
        kept("lora_replica_info", "", context, "replica_id"),
        Clause("unless", f"{s.on(*replica)} {latest('replica:lora_free:max', context)}"),
        # Engines tell their slots with the first request, and before it they tell nothing.
        Clause("and", f"{s.on(*replica)} {served} > 0"),
        wrap=f"count {s.by('model')} ({{}}) > 0",
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "Replicas serve requests, and their LoRA slots are unknown.",
        f"{context.model()}: {{{{ $value | humanize }}}} replicas have served requests within "
        f"{limits.traffic_window.value} and do not tell how many slots are free.",
        view("lora-replicas", "model"),
    )


ALERT = Definition("LoraSlotsUnknown", Limits, _expression, _text)

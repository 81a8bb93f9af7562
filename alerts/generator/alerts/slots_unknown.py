"""Replicas are in use and do not tell their slots."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest, view
from alerts.generator.inputs import AlertLimits, Duration, Limit
from alerts.generator.recordings.slots import full
from alerts.generator.rules import Branch, Clause, Context, Definition, Either, Text
from alerts.generator.words import counted


class Limits(AlertLimits):
    """What counts as serving."""

    traffic_window: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    s, replica = context.scope, ("model", "replica_id")
    tokens = s.series("lora_replica_generation_tokens_total")
    served = s.max_by(f"increase({tokens}[{limits.traffic_window.value}])", *replica)
    unknown = kept("lora_replica_info", "", context, "replica_id")
    known = Clause("unless", f"{s.on(*replica)} {latest('replica:lora_free:max', context)}")
    # Engines tell their slots with the first request, and before it they tell nothing.
    serving = Clause("and", f"{s.on(*replica)} {served} > 0")
    # The alerts on slots that are held stay silent, as these replicas may have room.
    held = full(context.inputs.common.dip.value).expression
    others_held = Clause("and", f"{s.on('model')} {held}")
    return Either(
        (Branch(unknown, (known, serving)), Branch(unknown, (known, others_held))),
        f"count {s.by('model')} ({{}}) > 0",
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "Replicas are in use, and their LoRA slots are unknown.",
        f"{context.model()}: {counted('replica does', 'replicas do')} not tell how many slots are "
        f"free. There were requests within {limits.traffic_window.value}, or all slots that are "
        "known are held.",
        view("lora-replicas", "model"),
    )


ALERT = Definition("LoraSlotsUnknown", Limits, _expression, _text)

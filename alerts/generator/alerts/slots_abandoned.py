"""A session holds slots and has shown no sign of life for long."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.inputs import AlertLimits, Duration, Limit, seconds
from alerts.generator.rules import Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How long a session may be silent."""

    silence: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    series = "lora_replica_oldest_heartbeat_timestamp_seconds"
    beat = kept(series, "", context, "replica_id")
    return one(f"time() - {beat} > {seconds(limits.silence.value)}")


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "A session that holds LoRA slots has been silent for long.",
        f"{context.model()}: a session that holds slots of replica {{{{ $labels.replica_id }}}} "
        "gave its last sign of life {{ $value | humanizeDuration }} ago.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraSlotsAbandoned", Limits, _expression, _text)

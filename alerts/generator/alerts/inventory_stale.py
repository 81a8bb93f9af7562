"""Plans are made from nodes as they were a while ago."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.exporter import own
from alerts.generator.inputs import AlertLimits, Duration, Limit, seconds
from alerts.generator.rules import Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How old an inventory may be."""

    age: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    read = own("lora_exporter_inventory_last_success_timestamp_seconds", context)
    return one(f"time() - {read} > {seconds(limits.age.value)}")


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "The LoRA exporter plans with an old inventory.",
        f"Exporter {context.scope.named('instance')} read nodes and placements "
        "{{ $value | humanizeDuration }} ago. Headroom and what fits may be untrue.",
        view("lora-planning"),
    )


ALERT = Definition("LoraInventoryStale", Limits, _expression, _text, card=False)

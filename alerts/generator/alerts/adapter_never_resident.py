"""An adapter has work on a replica, and never gets into a slot there."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.inputs import AlertLimits, Duration, Limit
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How long never is."""

    window: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    s, dip = context.scope, context.inputs.common.dip.value
    adapter = ("model", "replica_id", "adapter")
    waiting = s.series("lora_adapter_state", 'state="waiting"')
    resident = s.series("lora_adapter_state", 'state=~"active|idle"')
    window = limits.window.value
    return one(
        f"{s.max_by(f'last_over_time({waiting}[{dip}])', *adapter)} == 1",
        Clause(
            "unless",
            f"{s.on(*adapter)} {s.max_by(f'last_over_time({resident}[{window}])', *adapter)}",
        ),
        Clause(
            "and",
            f"{s.on('model', 'replica_id')} {kept('lora_resident', '', context, 'replica_id')}",
        ),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "An adapter waits and never gets a LoRA slot.",
        f"{context.model()}: adapter {{{{ $labels.adapter }}}} has waited on replica "
        f"{{{{ $labels.replica_id }}}} for {limits.for_.value} and was in no slot there for "
        f"{limits.window.value}.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraAdapterNeverResident", Limits, _expression, _text)

"""The same where a gateway's total is all that is known."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, on_gateway_total, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.recordings.slots import full
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import all_held


def _expression(context: Context, limits: AlertLimits) -> Either:
    held = latest('model:lora_max:sum{slot_kind="exclusive"}', context)
    return one(
        f"{held} > 0",
        full(context.inputs.common.dip.value),
        on_gateway_total("and", context),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "The reported total says that all LoRA slots are held.",
        f"{context.model()}: the gateway's reported total says that {all_held()}. "
        "It counts replicas that are gone and misses "
        "those that nobody asked yet: new adapters are probably refused.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraSlotsReportedExhausted", AlertLimits, _expression, _text, room=True)

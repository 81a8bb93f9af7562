"""Slots that are held until released, and none is free."""

from __future__ import annotations

from alerts.generator.alerts.common import all_slots_known, latest, on_gateway_total, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.recordings.slots import full, known_before
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import all_held


def _expression(context: Context, limits: AlertLimits) -> Either:
    held = latest('model:lora_max:sum{slot_kind="exclusive"}', context)
    return one(
        f"{held} > 0",
        full(context.inputs.common.dip.value),
        known_before(context.inputs.common.dip.value),
        on_gateway_total("unless", context),
        all_slots_known(context),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "All LoRA slots of a model are held: new adapters are refused.",
        f"{context.model()}: {all_held()}. Whoever asks for one now is refused.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraSlotsExhausted", AlertLimits, _expression, _text, room=True)

"""What is held on the largest replica would find no room on the others."""

from __future__ import annotations

from alerts.generator.alerts.common import all_slots_known, latest, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    dip = context.inputs.common.dip.value
    after = f'model:lora_free_after_loss:sum{{slot_kind="exclusive"}}[{dip}]'
    replicas = latest("model:lora_replicas_seen:count", context)
    return one(
        f"-max_over_time({after}) > 0",
        # One replica alone is never survived, which is its operator's choice.
        Clause("and", f"{context.scope.on('model')} {replicas} > 1"),
        all_slots_known(context),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    homeless = counted("adapter that holds a slot", "adapters that hold slots")
    return Text(
        "A model would not survive the loss of its largest replica.",
        f"{context.model()}: if its largest replica went, {homeless} "
        "now would find none on the others.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraReplicaLossNotSurvived", AlertLimits, _expression, _text, room=True)

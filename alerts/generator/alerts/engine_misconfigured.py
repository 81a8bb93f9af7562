"""An engine answers, and was started without what the exporter reads."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one

SERIES = "target:lora_target_failure:max"
SWITCHED_OFF = 'reason=~"no_lora|no_stats"'


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(f"{latest(f'{SERIES}{{{SWITCHED_OFF}}}', context)} == 1")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "An engine runs without LoRA or without statistics.",
        f"{context.scope.named('target')} answers, and tells no slots: {{{{ $labels.reason }}}}.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraEngineMisconfigured", AlertLimits, _expression, _text, card=False)

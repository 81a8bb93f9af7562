"""Plans cannot be made, by a mistake of the exporter's own."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.inputs import FULL_WINDOW, AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    s = context.scope
    failures = s.series("lora_exporter_plan_failures_total")
    return one(f"{s.max_by(f'increase({failures}[{FULL_WINDOW}])', 'job', 'instance')} > 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "The LoRA exporter cannot plan.",
        f"Exporter {context.scope.named('instance')} failed to plan {counted('time', 'times')} "
        f"in {FULL_WINDOW}. What models need, and what fits, is not told meanwhile; slots "
        "are.",
        view("lora-planning"),
    )


ALERT = Definition("LoraPlanningFails", AlertLimits, _expression, _text, card=False)

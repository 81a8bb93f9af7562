"""A target gives no adapter table."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.engine_misconfigured import SERIES as FAILURE
from alerts.generator.alerts.engine_misconfigured import SWITCHED_OFF
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


def _expression(context: Context, limits: AlertLimits) -> Either:
    s, dip = context.scope, context.inputs.common.dip.value
    return one(
        f"max_over_time(target:lora_target_up:max[{dip}]) == 0",
        Clause("unless", f"{s.on('instance', 'target')} {FAILURE}{{{SWITCHED_OFF}}} == 1"),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A target cannot be read.",
        f"{context.scope.named('target')} of group {{{{ $labels.group }}}} has given no adapter "
        f"table for {limits.for_.value}. Its slots are unknown.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraTargetDown", AlertLimits, _expression, _text, card=False)

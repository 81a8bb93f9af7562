"""One exporter of several does not answer."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.exporter import seen_up
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(
        f"{seen_up(context, 'instance')} == 0",
        Clause("and", f"{context.scope.on('job')} {seen_up(context)} == 1"),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "One of several LoRA exporters is down.",
        f"Exporter {context.scope.named('instance')} has not answered for {limits.for_.value}; "
        "others of its job do. The one left is a single point of failure, or, with sidecars, the "
        "slots of this replica are unknown.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraExporterInstanceDown", AlertLimits, _expression, _text, card=False)

"""Targets are those of a while ago, as discovery fails."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.exporter import own
from alerts.generator.inputs import FULL_WINDOW, AlertLimits, Duration, Limit, seconds
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How old a list of targets may be."""

    age: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    s = context.scope
    found = own("lora_exporter_discovery_last_success_timestamp_seconds", context, "group")
    failures = s.series("lora_exporter_discovery_failures_total")
    failing = s.max_by(f"increase({failures}[{FULL_WINDOW}])", "job", "instance", "group")
    return one(
        f"time() - {found} > {seconds(limits.age.value)}",
        # Some ways to find targets succeed once and have nothing more to do.
        Clause("and", f"{failing} > 0"),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "The LoRA exporter cannot find its targets any more.",
        f"Exporter {context.scope.named('instance')} last found the targets of group "
        "{{ $labels.group }} {{ $value | humanizeDuration }} ago, and fails since. New replicas "
        "are not seen.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraDiscoveryStale", Limits, _expression, _text, card=False)

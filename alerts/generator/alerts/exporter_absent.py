"""Nothing of the exporter's job was scraped for long, or ever."""

from __future__ import annotations

from alerts.generator.alerts import exporter_down
from alerts.generator.alerts.common import view
from alerts.generator.alerts.exporter import job
from alerts.generator.inputs import AlertLimits, Duration, Limit
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How long all sidecars may be gone."""

    sidecars_gone: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    down = context.inputs.limits(exporter_down.ALERT.name, exporter_down.Limits)
    up = context.scope.series("up", job(context))
    sidecars = f"job:lora_sidecar_targets:count{{{job(context)}}}[{limits.sidecars_gone.value}]"
    return one(
        # Within that time the alert that keeps the labels tells it.
        f"absent_over_time({up}[{down.missed_for.value}]) == 1",
        Clause("unless", f"on () last_over_time({sidecars})"),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "Prometheus does not scrape the LoRA exporter at all.",
        "Nothing with job {{ $labels.job }} was scraped within a day. No alert on LoRA slots can "
        "fire.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraExporterAbsent", Limits, _expression, _text, card=False)

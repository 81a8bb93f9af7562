"""No exporter of the job answers, or it is gone although it watched targets a day ago."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.exporter import job, seen_up
from alerts.generator.inputs import AlertLimits, Duration, Limit
from alerts.generator.rules import Branch, Clause, Context, Definition, Either, Text


class Limits(AlertLimits):
    """How long an exporter that is gone is missed."""

    missed_for: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    # Sidecars come and go with their replicas, and are not missed.
    watched = f"job:lora_remote_targets:count{{{job(context)}}}[{limits.missed_for.value}]"
    up = seen_up(context)
    return Either(
        (
            Branch(
                f"last_over_time({watched}) > 0",
                (Clause("unless", f"{context.scope.on('job')} {up} == 1"),),
            ),
            Branch(f"{up} == 0"),
        )
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "The LoRA exporter is down: nobody sees the slots.",
        f"No exporter of job {context.scope.named('job')} answers. Alerts on slots cannot fire, "
        "and those that fire will end soon though nothing was solved.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraExporterDown", Limits, _expression, _text, card=False)

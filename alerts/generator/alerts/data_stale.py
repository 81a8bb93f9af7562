"""An exporter says that targets are up, and has not read them for long."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.inputs import AlertLimits, Duration, Limit, seconds
from alerts.generator.rules import Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How old data may be."""

    age: Limit[Duration]


def _expression(context: Context, limits: Limits) -> Either:
    s, target = context.scope, ("job", "instance", "target")
    read = s.max_by(s.series("lora_target_last_success_timestamp_seconds"), *target)
    up = s.max_by(s.series("lora_target_up"), *target)
    # Times up: a target that is down has an alert of its own.
    old = f"(time() - {read}) * {up} > {seconds(limits.age.value)}"
    return one(old, wrap=f"count {s.by('job', 'instance')} ({{}}) > 0")


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "An exporter shows old numbers as if they were new.",
        f"Exporter {context.scope.named('instance')} has not read {{{{ $value | humanize }}}} of "
        f"its targets for {limits.age.value}, and calls them up.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraDataStale", Limits, _expression, _text, card=False)

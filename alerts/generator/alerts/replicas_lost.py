"""A model has fewer replicas than an hour ago or than its minimum, and needs them."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest, view
from alerts.generator.alerts.planning import more, runs
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Branch, Clause, Context, Definition, Either, Text
from alerts.generator.words import counted

CURRENT = "model:lora_current_replicas:max"


def lost(context: Context) -> str:
    """Replicas that there were within the last hour, and that are gone."""
    return f"max_over_time({CURRENT}[1h]) - {latest(CURRENT, context)} > 0"


def _expression(context: Context, limits: AlertLimits) -> Either:
    missing = f"{kept('lora_model_min_replicas', '', context)} - {latest(CURRENT, context)} > 0"
    return Either(
        (
            # Who scales down, or ends a rollout with surge, leaves what the load needs.
            Branch(
                lost(context),
                (Clause("and", f"{context.scope.on('model')} {more(context)}"), runs(context)),
            ),
            Branch(missing),
        )
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A model has lost replicas that it needs.",
        f"{context.model()}: {counted('replica', 'replicas')} fewer than within the last "
        "hour or than its minimum, and needed.",
        view("lora-replicas", "model"),
    )


ALERT = Definition("LoraReplicasLost", AlertLimits, _expression, _text, room=True)

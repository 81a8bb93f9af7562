"""A state store keeps rows of replicas that no longer live."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    s = context.scope
    return one(f"{s.max_by(latest(s.series('lora_target_ghosts'), context), 'target')} > 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A state store keeps LoRA slots of replicas that no longer live.",
        f"{context.scope.named('target')}: its store has {counted('row', 'rows')} of "
        "replicas that are gone. The exporter leaves them out; the gateway's own total does not.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraGhosts", AlertLimits, _expression, _text, card=False)

"""What a model needs fits only by stopping another's replicas. Both owners are told."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.promql import CARD
from alerts.generator.rules import Branch, Context, Definition, Either, Text


def _expression(context: Context, limits: AlertLimits) -> Either:
    s = context.scope
    stopped = f"{kept('lora_model_would_preempt_replicas', '', context, 'victim')} > 0"
    victims = f'label_replace({CARD}, "victim", "$1", "model", "(.+)")'
    gains = f"({stopped})\n* {s.on('model')} group_left (class, owner) {CARD}"
    loses = f"({stopped})\n* {s.on('victim')} group_left (class, owner) {victims}"
    return Either(
        tuple(
            Branch(f'label_replace(\n  {side},\n  "side", "{name}", "", ""\n)')
            for name, side in (
                ("gains", gains.replace("\n", "\n  ")),
                ("loses", loses.replace("\n", "\n  ")),
            )
        )
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "A model gets the replicas that it needs only by stopping another's.",
        f"{context.model()} needs replicas that fit only by stopping {{{{ $value | humanize }}}} "
        "of {{ $labels.victim }}. {{ $labels.owner }} {{ $labels.side }}.",
        view("lora-planning", "model"),
    )


ALERT = Definition("LoraModelStopsOthers", AlertLimits, _expression, _text, card=False)

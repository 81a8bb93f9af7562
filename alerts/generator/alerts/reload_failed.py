"""An exporter runs with an older configuration than its file."""

from __future__ import annotations

from alerts.generator.alerts.common import view
from alerts.generator.alerts.exporter import own
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Context, Definition, Either, Text, one


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(f"{own('lora_exporter_config_last_reload_successful', context)} == 0")


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "The LoRA exporter refused its new configuration.",
        f"Exporter {context.scope.named('instance')} could not load its configuration and goes on "
        "with the old one. It would not start again.",
        view("lora-fleet"),
    )


ALERT = Definition("LoraExporterReloadFailed", AlertLimits, _expression, _text, card=False)

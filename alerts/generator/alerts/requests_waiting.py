"""Slots are full most of the time, and requests wait, for whatever reason."""

from __future__ import annotations

from alerts.generator.alerts.common import (
    evictable,
    mostly_full,
    requests_wait,
    view,
    work_waits,
)
from alerts.generator.inputs import FULL_WINDOW, AlertLimits
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    return one(
        requests_wait(context),
        mostly_full(context),
        evictable(context),
        Clause("unless", f"{context.scope.on('model')} {work_waits(context)}"),
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    common = context.inputs.common
    return Text(
        "Requests wait while the LoRA slots are full.",
        f"{context.model()}: {counted('request waits', 'requests wait')} on average, and slots "
        f"were full for at least {common.full_share.value:.0%} of the last {FULL_WINDOW}. The "
        "engine does not tell whether it is slots that they wait for.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraRequestsWaiting", AlertLimits, _expression, _text, room=True)

"""Adapters push each other out of the slots all the time, and requests wait meanwhile."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest, view
from alerts.generator.inputs import FULL_WINDOW, AlertLimits, Factor, Limit
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """What tells thrash from a change of shift."""

    turnover: Limit[Factor]


def _expression(context: Context, limits: Limits) -> Either:
    s, common = context.scope, context.inputs.common
    replica = ("model", "replica_id")
    resident = s.series("lora_adapter_state", 'state=~"active|idle"')
    seen = s.max_by(f"count_over_time({resident}[{FULL_WINDOW}])", *replica, "adapter")
    slots = s.max_by(latest('replica:lora_max:max{slot_kind="evictable"}', context), *replica)
    full = latest(f"replica:lora_full:ratio{FULL_WINDOW}", context)
    waits = f"avg_over_time(replica:lora_requests_waiting:max[{common.waiting_window.value}])"
    return one(
        f"count {s.by(*replica)} ({seen}) > {slots} * {limits.turnover.value:g}",
        # Only where residency is told: elsewhere an idle adapter is not seen in its slot.
        Clause("and", f"{s.on(*replica)} {kept('lora_resident', '', context, 'replica_id')}"),
        Clause("and", f"{s.on(*replica)} {full} >= {common.full_share.value:g}"),
        Clause("and", f"{s.on(*replica)} {waits} >= {common.waiting.value:g}"),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "Adapters push each other out of the LoRA slots of a replica.",
        f"{context.model()}: {{{{ $value | humanize }}}} adapters went through the slots of "
        f"replica {{{{ $labels.replica_id }}}} within {FULL_WINDOW}, more than "
        f"{limits.turnover.value:g} times as many as it has, while requests waited. Loading costs "
        "more than serving.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraAdaptersThrash", Limits, _expression, _text)

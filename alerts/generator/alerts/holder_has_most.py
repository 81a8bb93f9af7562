"""One session holds most slots of a full replica."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest, view
from alerts.generator.inputs import AlertLimits, Count, Limit, Share
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """What most is."""

    share: Limit[Share]
    smallest_replica: Limit[Count]


def _expression(context: Context, limits: Limits) -> Either:
    s, dip = context.scope, context.inputs.common.dip.value
    replica = ("model", "replica_id")
    slots = s.max_by(latest('replica:lora_max:max{slot_kind="exclusive"}', context), *replica)
    free = f'max_over_time(replica:lora_free:max{{slot_kind="exclusive"}}[{dip}])'
    holder = kept("lora_replica_largest_holder_slots", "", context, "replica_id")
    return one(
        f"{holder} / ({slots} > 0) >= {limits.share.value:g}",
        Clause("and", f"{s.on(*replica)} {slots} >= {limits.smallest_replica.value}"),
        Clause("and", f"{s.on(*replica)} {free} == 0"),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "One session holds most LoRA slots of a full replica.",
        f"{context.model()}: one session holds {{{{ $value | humanizePercentage }}}} of the slots "
        "of replica {{ $labels.replica_id }}, which has none free.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraHolderHasMostSlots", Limits, _expression, _text)

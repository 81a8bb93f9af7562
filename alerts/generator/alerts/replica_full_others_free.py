"""One replica is full for long while others have room."""

from __future__ import annotations

from alerts.generator.alerts.common import latest, steady, view
from alerts.generator.inputs import FULL_WINDOW, AlertLimits, Limit, Share
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """How much room the others must have."""

    free_share: Limit[Share]


def _expression(context: Context, limits: Limits) -> Either:
    common, on = context.inputs.common, context.scope.on
    ratio = latest(f"replica:lora_full:ratio{FULL_WINDOW}", context)
    used = latest("model:lora_used:ratio", context)
    quiet = context.scope.max_by(
        f"max_over_time({context.scope.series('lora_waiting')}[{FULL_WINDOW}])",
        "model",
        "replica_id",
    )
    return one(
        f"{ratio} >= {common.full_share.value:g}",
        Clause(
            "and",
            f"{on('model')} {used} <= {1 - limits.free_share.value:g}",
        ),
        # Routing that keeps adapters together fills a replica on purpose.
        Clause("unless", f"{on('model', 'replica_id')} {quiet} == 0"),
        steady(context),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "A replica has no free LoRA slot while others of its model do.",
        f"{context.model()}: replica {{{{ $labels.replica_id }}}} was full for "
        f"{{{{ $value | humanizePercentage }}}} of the last {FULL_WINDOW}, while at least "
        f"{limits.free_share.value:.0%} of the model's slots are free.",
        view("lora-replicas", "model", "replica_id"),
    )


ALERT = Definition("LoraReplicaFullOthersFree", Limits, _expression, _text)

"""Few slots that are held until released are left."""

from __future__ import annotations

from alerts.generator.alerts.common import all_slots_known, latest, on_gateway_total, view
from alerts.generator.inputs import AlertLimits, Count, Limit, Share
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one
from alerts.generator.words import counted


class Limits(AlertLimits):
    """What is few."""

    free_share: Limit[Share]
    small_share: Limit[Share]
    small_most: Limit[Count]
    smallest_pool: Limit[Count]


def left(context: Context) -> str:
    """Free slots; a single low reading does not count."""
    dip = context.inputs.common.dip.value
    return f'max_over_time(model:lora_free:sum{{slot_kind="exclusive"}}[{dip}])'


def few(context: Context, limits: Limits) -> str:
    """A share of a small pool, rounded up; a smaller share of a large one."""
    pool = latest('model:lora_max:sum{slot_kind="exclusive"}', context)
    small = f"clamp_max(ceil({pool} * {limits.small_share.value:g}), {limits.small_most.value})"
    # The second part counts from where the share of a large pool is more.
    large = f"clamp_min({pool} * {limits.free_share.value:g} - {limits.small_most.value}, 0)"
    return f"({small} + {large})"


def _expression(context: Context, limits: Limits) -> Either:
    pool = latest('model:lora_max:sum{slot_kind="exclusive"}', context)
    return one(
        f"{left(context)} <= {few(context, limits)}",
        Clause("and", f"{left(context)} > 0"),
        Clause("and", f"{pool} >= {limits.smallest_pool.value}"),
        on_gateway_total("unless", context),
        all_slots_known(context),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "The LoRA slots of a model are almost all held.",
        f"{context.model()}: {counted('slot is', 'slots are')} left. When none is, "
        "new adapters are refused.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraSlotsAlmostExhausted", Limits, _expression, _text, room=True)

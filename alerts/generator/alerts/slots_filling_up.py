"""Slots are taken faster than they are given back, and will be gone soon."""

from __future__ import annotations

from alerts.generator.alerts import slots_almost_exhausted as almost
from alerts.generator.alerts.common import all_slots_known, latest, on_gateway_total, steady, view
from alerts.generator.inputs import AlertLimits, Count, Duration, Limit, Share, seconds
from alerts.generator.recordings.slots import TREND_WINDOW
from alerts.generator.rules import Clause, Context, Definition, Either, Text, one


class Limits(AlertLimits):
    """What makes a forecast worth telling."""

    horizon: Limit[Duration]
    free_share: Limit[Share]
    events: Limit[Count]
    direction: Limit[Share]


def _expression(context: Context, limits: Limits) -> Either:
    dip = context.inputs.common.dip.value
    free = 'model:lora_free:sum{slot_kind="exclusive"}'
    pool = 'model:lora_max:sum{slot_kind="exclusive"}'
    before = f"last_over_time({pool}[{dip}] offset {TREND_WINDOW})"
    taken = f"last_over_time({free}[{dip}] offset {TREND_WINDOW}) - {latest(free, context)}"
    few = almost.few(context, context.inputs.limits(almost.ALERT.name, almost.Limits))
    return one(
        f"{latest('model:lora_free:seconds_to_zero', context)} < {seconds(limits.horizon.value)}",
        # Above the band of the alert that tells that few are left.
        Clause("and", f"{almost.left(context)} > {few}"),
        Clause(
            "and",
            f"{almost.left(context)} <= {latest(pool, context)} * {limits.free_share.value:g}",
        ),
        Clause("and", f"changes({free}[{TREND_WINDOW}]) >= {limits.events.value}"),
        # Most events were takings: sessions that come and go are no trend.
        Clause("and", f"{taken} >= changes({free}[{TREND_WINDOW}]) * {limits.direction.value:g}"),
        # A pool that changed, or that was not there all the time, tells nothing about its users.
        Clause("and", f"{latest(pool, context)} == {before}"),
        steady(context, TREND_WINDOW),
        on_gateway_total("unless", context),
        all_slots_known(context),
    )


def _text(context: Context, limits: Limits) -> Text:
    return Text(
        "The LoRA slots of a model are filling up.",
        f"{context.model()}: at the pace of the last {TREND_WINDOW} no slot is free in about "
        "{{ $value | humanizeDuration }}. New adapters are refused from then on.",
        view("lora-model", "model"),
    )


ALERT = Definition("LoraSlotsFillingUp", Limits, _expression, _text, room=True)

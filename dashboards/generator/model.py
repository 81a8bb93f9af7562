"""Model: why it is short of slots, what it needs, and what that costs others."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.generator import promql as q
from dashboards.generator.board import Line, Section, dashboard
from dashboards.generator.fleet import alerts
from dashboards.generator.panels import (
    Column,
    Look,
    Query,
    colour,
    graph,
    stat,
    strip,
    table,
    unstacked,
)
from dashboards.generator.words import (
    ANY_IS_BAD,
    BAD,
    BLANK,
    FILL,
    FREE,
    GOOD,
    LOSS,
    NEXT_STEP,
    NOT_WHOLE,
    NOTICE,
    PLAIN,
    UNKNOWN,
    WARN,
    steps,
    texts,
    values,
)

CURRENT = q.per_model("lora_model_current_replicas")
NEEDED = q.per_model("lora_model_needed_replicas")
REASONS = {
    "memory": "no node has the memory",
    "cores": "no node has the cores",
    "gpus": "no node has the GPUs",
    "quota": "the owner's quota",
    "max_replicas": "the card's max_replicas",
    "no_node": "no node at all",
    "unmeasured": "no measurement",
    "no_demand": "no demand is known",
    "warming_up": "the demand window fills",
    "incomplete": "a ready replica is unread",
    "slots_unknown": "slots are unknown",
    "no_inventory": "no inventory",
    "no_requests": "the card asks for nothing",
    "no_card": "no card",
}


def model() -> Dashboard:
    """One row of panels for each chosen model."""
    lines = (
        Line(
            4,
            (
                (5, _step()),
                (4, _out()),
                (3, _free()),
                (3, _waiting()),
                (5, _replicas()),
                (4, _spare()),
            ),
        ),
        Line(8, ((8, _slots()), (8, _needed()), (8, _constraints()))),
        Line(7, ((14, _fill()), (10, _why()))),
        Line(8, ((8, _demand()), (8, _headroom()), (8, _loss()))),
        Line(6, ((24, alerts()),)),
    )
    return dashboard(
        "lora-model",
        "LoRA capacity / Model",
        "Why a model is short of LoRA slots, what it needs, and what that costs others.",
        [Section("$model", lines, repeat="model")],
        replicas=True,
    )


def _step() -> Panel:
    return stat(
        "Next step",
        "What to do, most urgent first: bring back replicas that do not answer, find room, add a "
        "replica with or without stopping a lower class, watch.",
        [Query(q.next_step())],
        Look(mappings=NEXT_STEP, thresholds=steps(PLAIN)),
        background=True,
    )


def _out() -> Panel:
    expr = f"({q.out_since()}) or (0 * ({q.model_slots('free')} > 0) - 1)"
    return stat(
        "Out of slots for",
        "How long no known slot has been free, at most 6 h.",
        [Query(expr, "{{slot_kind}}")],
        Look(
            unit="dthms",
            thresholds=steps(GOOD, (0, BAD)),
            mappings=values(**{"v-1": ("has free slots", GOOD)}),
        ),
    )


def _free() -> Panel:
    return stat(
        "Free slots",
        "Slots that a new adapter can take now, by kind.",
        [Query(q.model_slots("free"), "{{slot_kind}}")],
        Look(thresholds=FREE),
        named=True,
    )


def _waiting() -> Panel:
    return stat(
        "Adapters waiting",
        "Adapters that have work and no slot; for engines that tell only requests, those.",
        [Query(f"sum by (model) ({q.work_waiting()})", "waiting")],
        Look(thresholds=ANY_IS_BAD, nothing="not told"),
    )


def _replicas() -> Panel:
    return stat(
        "Replicas",
        "Replicas that the model has (those that do not answer count), needs, and may have by its "
        "card.",
        [
            Query(CURRENT, "has"),
            Query(q.known_or(NEEDED, CURRENT), "needs"),
            Query(q.per_model("lora_model_min_replicas"), "at least"),
            Query(q.per_model("lora_model_max_replicas"), "at most"),
        ],
        Look(mappings=values(**{"v-1": ("?", UNKNOWN)}), nothing=NOT_WHOLE),
        named=True,
    )


def _spare() -> Panel:
    return stat(
        "If a replica is lost",
        "Free slots that are left when the largest replica dies and its adapters go to the others. "
        "Below 0 some find no slot.",
        [Query(q.after_loss(), "{{slot_kind}}")],
        Look(unit="suffix: slots", thresholds=LOSS),
    )


def _slots() -> Panel:
    return graph(
        "Slots",
        "All slots of the model, those used, and adapters that wait for one. Used at the dashed "
        "line: full. Far fewer distinct adapters with work than used slots: the same adapter takes "
        "slots on many replicas.",
        [
            Query(q.model_slots("max"), "max {{slot_kind}}"),
            Query(q.model_slots("used"), "used {{slot_kind}}"),
            Query(f"sum by (model) ({q.work_waiting()})", "waiting"),
            Query(q.per_model("lora_model_distinct_adapters"), "distinct adapters"),
        ],
        Look(
            decimals=0,
            overrides=[
                colour("^max", PLAIN, dashed=True),
                colour("^used", "blue"),
                colour("^waiting", BAD),
                colour("^distinct", NOTICE, dashed=True),
            ],
        ),
        fill=25,
        table=False,
    )


def _needed() -> Panel:
    return graph(
        "Replicas: had and needed",
        "Where needed is above current, the model is short. A gap in needed: it is not known, and "
        "the table below says why.",
        [
            Query(CURRENT, "current"),
            Query(q.answering(), "answering"),
            Query(NEEDED, "needed"),
        ],
        Look(
            decimals=0,
            overrides=[
                colour("^current", "blue"),
                colour("^answering", GOOD, dashed=True),
                colour("^needed", WARN, bare=True),
            ],
        ),
        fill=15,
        table=False,
    )


def _fill() -> Panel:
    return strip(
        "Used slots of each replica",
        "Share of the slots that is used: red where the replica was full, empty where its slots "
        "are not known. Of more than 20 replicas, the fullest.",
        [Query(q.most(q.replica_fill(q.REPLICA), 20), "{{replica_id}}")],
        Look(unit="percentunit", decimals=0, thresholds=FILL),
    )


def _why() -> Panel:
    victims = q.per_model("lora_model_would_preempt_replicas", "victim")
    blocked = f"{q.per_model('lora_model_blocked', 'reason')} == 1"
    unplanned = f"{q.per_model('lora_model_unplanned', 'reason')} == 1"
    saturated = f"{q.per_model('lora_model_saturated')} == 1"
    parts = [
        f'label_replace({victims} > 0, "what", "stops replicas of", "", "")',
        f'label_replace({blocked}, "what", "blocks more replicas", "", "")',
        f'label_replace({unplanned}, "what", "why not planned", "", "")',
        f'label_replace({saturated}, "what", "needed is a lower bound", "", "")',
    ]
    nothing = q.otherwise(" or ".join(parts), "nothing of these")
    return table(
        "Who would be stopped, what blocks, what is not known",
        "Replicas of other models that would be stopped so that this one has what it needs; what "
        "stops the replicas that are needed or, where all fit, one more; why needed or headroom is "
        "not told; and whether the model is saturated.",
        [Query(nothing)],
        [
            Column("what", "What", width=220),
            Column("victim", "Model", nothing=""),
            Column(
                "reason",
                "Reason",
                mappings=texts({key: (text, PLAIN) for key, text in REASONS.items()}),
                nothing="",
            ),
            Column("A", "Count", width=70, mappings=BLANK),
        ],
    )


def _demand() -> Panel:
    measured = q.per_model("lora_model_measured_tokens_per_second")
    return graph(
        "Demand and measured capacity",
        "Tokens per second that were served, that the card asks for, and that the replicas which "
        "answer serve at their service level by measurement. Served above capacity: too few.",
        [
            Query(q.per_model("lora_model_observed_tokens_per_second"), "served"),
            Query(q.per_model("lora_model_target_tokens_per_second"), "target"),
            Query(f"{measured} * on (model) ({q.answering()})", "capacity"),
        ],
        Look(
            unit="suffix: tok/s",
            nothing="no engine tells tokens",
            overrides=[
                colour("served", "blue"),
                colour("target", NOTICE, dashed=True),
                colour("capacity", PLAIN, dashed=True),
            ],
        ),
        stepped=False,
        table=False,
    )


def _headroom() -> Panel:
    room = q.per_model("lora_model_headroom_replicas", "room")
    return graph(
        "Headroom: replicas that still fit",
        "In what is free, and further ones by stopping replicas of lower classes. The line is what "
        "the model needs beyond what it has: above the area, it does not fit.",
        [Query(room, "{{room}}"), Query(q.more(), "to add")],
        Look(
            decimals=0,
            nothing=NOT_WHOLE,
            overrides=[
                colour("^free", GOOD),
                colour("^preempting", "purple"),
                unstacked("^to add", BAD),
            ],
        ),
        stacked=True,
        fill=40,
        table=False,
    )


def _loss() -> Panel:
    return graph(
        "Free slots after the loss of the largest replica",
        "Below 0, adapters of the lost replica find no slot on the others.",
        [Query(q.after_loss(), "{{slot_kind}}")],
        Look(decimals=0, thresholds=LOSS),
        fill=0,
        limit=True,
        table=False,
    )


def _constraints() -> Panel:
    return graph(
        "Needed replicas by constraint",
        "What throughput, slots and the card's minimum alone would need; the largest counts.",
        [
            Query(q.per_model("lora_model_needed_replicas_by", "constraint"), "{{constraint}}"),
        ],
        Look(
            decimals=0,
            nothing=NOT_WHOLE,
            overrides=[
                colour("slots", "blue"),
                colour("throughput", "purple"),
                colour("minimum", PLAIN, dashed=True),
            ],
        ),
        fill=0,
        table=False,
    )

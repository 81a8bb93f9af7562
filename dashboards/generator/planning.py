"""Planning and exporter: nodes, classes, quotas; and whether the exporter can be believed."""

from __future__ import annotations

from dataclasses import replace

from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.generator import promql as q
from dashboards.generator.board import Line, dashboard
from dashboards.generator.exporter import exporter
from dashboards.generator.fleet import MODEL
from dashboards.generator.model import REASONS
from dashboards.generator.panels import BAR, TEXT, Column, Look, Query, stat, table
from dashboards.generator.words import (
    ANY_IS_BAD,
    ANY_IS_WARNING,
    BAD,
    BLANK,
    FILL,
    FITS,
    GOOD,
    NOTICE,
    PLAIN,
    WARN,
    steps,
    texts,
    values,
)

OWNER = 'owner=~"$owner"'
AGE = steps(GOOD, (60, NOTICE), (300, BAD))
"""A minute is several polls, five are as long as old tables are ever shown."""
QUOTA = steps(GOOD, (0.75, NOTICE), (1, WARN))
"""A full quota stops further replicas and no present one."""
YES = values(v1=("yes", BAD), v0=("no", PLAIN))


def planning() -> Dashboard:
    """What plans are made of, and the exporter itself."""
    return dashboard(
        "lora-planning",
        "LoRA capacity / Planning and exporter",
        "Nodes, classes, quotas and plans; and whether the exporter works and its data are fresh.",
        [
            Line(
                4,
                (
                    (4, _short()),
                    (4, _unplaced()),
                    (4, _unplanned()),
                    (4, _quota()),
                    (4, _inventory()),
                    (4, _oldest()),
                ),
            ),
            Line(9, ((24, _plans()),)),
            Line(8, ((16, _nodes()), (8, _on_nodes()))),
            Line(8, ((10, _quotas()), (6, _classes()), (8, _reasons()))),
            exporter(),
        ],
    )


def _short() -> Panel:
    return stat(
        "Need more replicas",
        "Models that need more replicas than they have, of those whose need is known.",
        [Query(f"count({q.more()} > 0) or 0 * count({q.more()})")],
        Look(thresholds=ANY_IS_WARNING, nothing="no need is known"),
    )


def _unplaced() -> Panel:
    return stat(
        "Replicas without room",
        "Needed replicas that find no room when those of all models are placed together, highest "
        "rank first.",
        [Query(f"sum({q.per_model('lora_model_unplaced_replicas')})")],
        Look(thresholds=ANY_IS_BAD, nothing="not planned"),
    )


def _unplanned() -> Panel:
    models = f"group by (model) (lora_model_info{{{q.MODEL}}})"
    reasons = f"group by (model) (lora_model_unplanned{{{q.MODEL}}} == 1)"
    return stat(
        "Models not planned",
        "Models whose need or headroom is not told; the table of reasons says why.",
        [Query(f"count({reasons}) or 0 * count({models})")],
        Look(thresholds=ANY_IS_WARNING),
    )


def _share() -> str:
    used = f"max by (owner, resource) (lora_owner_quota_used{{{OWNER}}})"
    return f"{used} / max by (owner, resource) (lora_owner_quota{{{OWNER}}})"


def _quota() -> Panel:
    return stat(
        "Fullest quota",
        "The largest share of a quota that an owner's replicas hold.",
        [Query(f"topk(1, {_share()})", "{{owner}} {{resource}}")],
        Look(unit="percentunit", decimals=0, thresholds=QUOTA, nothing="no quotas"),
        named=True,
    )


def _inventory() -> Panel:
    return stat(
        "Age of the inventory",
        "Since nodes and placements were last read. A lost inventory stays as it was.",
        [Query("time() - max(lora_exporter_inventory_last_success_timestamp_seconds)")],
        Look(unit="s", decimals=0, thresholds=AGE, nothing="no inventory"),
    )


def _oldest() -> Panel:
    return stat(
        "Oldest data",
        "Since the most silent target last gave its adapter table.",
        [Query(f"max(time() - {q.per_target('lora_target_last_success_timestamp_seconds')})")],
        Look(unit="s", decimals=0, thresholds=AGE),
    )


def _plans() -> Panel:
    def of(name: str, matchers: str = "") -> Query:
        return Query(q.per_model(f"lora_model_{name}", matchers=matchers))

    return table(
        "Plans",
        "What each model has, needs and may have. Room is for this model alone: models count on "
        "the same room, and Without room says what stays out when all get theirs, highest class "
        "first. ? is unknown.",
        [
            Query(q.CARD),
            of("current_replicas"),
            of("needed_replicas"),
            Query(q.more()),
            of("fits"),
            of("headroom_replicas", 'room="free"'),
            of("headroom_replicas", 'room="preempting"'),
            of("unplaced_replicas"),
            of("saturated"),
            of("min_replicas"),
            of("max_replicas"),
            of("observed_tokens_per_second"),
            of("target_tokens_per_second"),
            of("measured_tokens_per_second"),
        ],
        [
            replace(MODEL, width=200),
            Column("class", "Class", width=100),
            Column("owner", "Owner", width=95),
            Column("B", "Has", width=65),
            Column("C", "Needs", width=75),
            Column("D", "To add", width=75, thresholds=ANY_IS_WARNING, cell=TEXT),
            Column("E", "Fits", width=105, mappings=FITS, cell=TEXT, left=True),
            Column("F", "Room: free", width=95),
            Column("G", "by stopping", width=100),
            Column("H", "Without room", width=110, thresholds=ANY_IS_BAD, cell=TEXT),
            Column("I", "Saturated", width=90, mappings=YES),
            Column("J", "At least", width=80, nothing="-"),
            Column("K", "At most", width=80, nothing="-"),
            Column("L", "Served tok/s", width=100, decimals=0),
            Column("M", "Target", width=80, nothing="-"),
            Column("N", "Per replica", width=90),
        ],
        sort=[("To add", True)],
    )


def _nodes() -> Panel:
    def free(resource: str) -> str:
        return f'max by (node) (lora_node_free{{resource="{resource}"}})'

    def all_of(resource: str) -> str:
        return f'max by (node) (lora_node_allocatable{{resource="{resource}"}})'

    def used(resource: str) -> Query:
        return Query(f"1 - {free(resource)} / ({all_of(resource)} > 0)")

    def bar(letter: str, title: str) -> Column:
        return Column(
            letter, title, "percentunit", 115, cell=BAR, most=1, decimals=0, thresholds=FILL
        )

    return table(
        "Nodes",
        "What is free on each node, and the share that is placed. A replica sits on one node: the "
        "sum of what is free is not room. Below 0 more is placed than there is.",
        [
            Query(free("gpus")),
            Query(all_of("gpus")),
            used("gpus"),
            Query(free("memory")),
            Query(all_of("memory")),
            used("memory"),
            Query(free("cores")),
            Query(all_of("cores")),
            used("cores"),
        ],
        [
            Column("node", "Node"),
            Column("A", "GPUs free", width=85, thresholds=steps(BAD, (1, GOOD)), cell=TEXT),
            Column("B", "of", width=50),
            bar("C", "GPUs placed"),
            Column("D", "Memory free", "bytes", 95),
            Column("E", "of ", "bytes", 80),
            bar("F", "Memory placed"),
            Column("G", "Cores free", width=85, decimals=0),
            Column("H", "of  ", width=55, decimals=0),
            bar("I", "Cores placed"),
        ],
        nothing="no inventory tells nodes",
    )


def _on_nodes() -> Panel:
    placed = f'group by (node, model, replica_id) (lora_replica_info{{{q.MODEL},node!=""}})'
    expr = q.otherwise(f"count by (node, model) ({placed})", "no replica tells its node")
    return table(
        "Who is on the nodes",
        "Replicas whose node is known, by node and model.",
        [Query(expr)],
        [
            Column("node", "Node"),
            replace(MODEL, width=190),
            Column("A", "Replicas", width=90, mappings=BLANK),
        ],
        sort=[("Node", False)],
    )


def _quotas() -> Panel:
    def amount(name: str) -> str:
        plain = f'max by (owner, resource) ({name}{{{OWNER},unit!="byte"}})'
        memory = f'max by (owner, resource) ({name}{{{OWNER},unit="byte"}}) / 2^30'
        return f"{plain} or {in_gib(memory)}"

    def in_gib(expression: str) -> str:
        return f'label_replace({expression}, "resource", "$1, GiB", "resource", "(memory)")'

    used = amount("lora_owner_quota_used")
    return table(
        "Quotas",
        "What each owner's current replicas hold of the quota, by their cards.",
        [
            Query(q.otherwise(in_gib(_share()), "no owner has a quota")),
            Query(used),
            Query(amount("lora_owner_quota")),
        ],
        [
            Column("owner", "Owner"),
            Column("resource", "Resource", width=110, nothing=""),
            Column("B", "Held", width=65, nothing=""),
            Column("C", "of", width=60, nothing=""),
            Column(
                "A",
                "Share",
                "percentunit",
                190,
                BLANK,
                cell=BAR,
                most=1,
                decimals=0,
                thresholds=QUOTA,
            ),
        ],
        sort=[("Share", True)],
    )


def _classes() -> Panel:
    def by_class(expression: str) -> str:
        return f"sum by (class) (({expression}) * on (model) group_left (class) {q.CARD})"

    return table(
        "Classes",
        "Models and replicas of each class; empty: without a card.",
        [
            Query(f"count by (class) ({q.CARD})"),
            Query(by_class(q.per_model("lora_model_current_replicas"))),
            Query(by_class(q.more())),
        ],
        [
            Column("class", "Class", nothing="no class"),
            Column("A", "Models", width=70),
            Column("B", "Replicas", width=75),
            Column("C", "To add", width=70, thresholds=ANY_IS_WARNING, cell=TEXT),
        ],
    )


def _reasons() -> Panel:
    blocked = f"{q.per_model('lora_model_blocked', 'reason')} == 1"
    unplanned = f"{q.per_model('lora_model_unplanned', 'reason')} == 1"
    classes = "max by (reason) (lora_exporter_class_mistakes) > 0"
    both = (
        f'label_replace({blocked}, "what", "blocked by", "", "") or '
        f'label_replace({unplanned}, "what", "unplanned:", "", "") or '
        f'label_replace({classes}, "what", "PriorityClasses:", "", "")'
    )
    return table(
        "What blocks, what is not known",
        "What stops the replicas that are needed or, where all fit, one more, even by stopping "
        "others; why needed or headroom is not told; and PriorityClasses that classes name and "
        "that are missing or in another order.",
        [Query(q.otherwise(both, "nothing"))],
        [
            replace(MODEL, width=190),
            Column("what", "What", width=90, nothing=""),
            Column(
                "reason",
                "Reason",
                mappings=texts({key: (text, PLAIN) for key, text in REASONS.items()}),
                nothing="",
            ),
        ],
        sort=[("Model", False)],
    )

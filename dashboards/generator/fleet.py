"""Fleet: is any model out of slots, which will be next, what has to be done."""

from __future__ import annotations

from dataclasses import replace

from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.generator import promql as q
from dashboards.generator.board import MODEL_URL, Line, dashboard
from dashboards.generator.panels import (
    BAR,
    KEEP,
    TEXT,
    Column,
    Look,
    Query,
    colour,
    graph,
    link,
    stat,
    strip,
    table,
)
from dashboards.generator.words import (
    ANY_IS_BAD,
    ANY_IS_WARNING,
    BAD,
    BLANK,
    FILL,
    FITS,
    FREE,
    GOOD,
    NEXT_STEP,
    PLAIN,
    SEVERITY,
    steps,
    values,
)

MODEL = Column("model", "Model", link=("Open the model", MODEL_URL), width=255, nothing="")
UNSEEN = values(**{"v-1": ("not in sight", PLAIN)})
SLOT_KIND = Column("slot_kind", "Slot kind", width=100, nothing="")


def fleet() -> Dashboard:
    """The dashboard for the wall."""
    return dashboard(
        "lora-fleet",
        "LoRA capacity / Fleet",
        "Is any model out of LoRA slots, which will be next, what needs more replicas.",
        [
            Line(6, ((7, _out()), (7, _next()), (4, _free()), (3, _waiting_now()), (3, _silent()))),
            Line(10, ((24, _models()),)),
            Line(7, ((15, _needs()), (9, alerts()))),
            Line(9, ((16, _fill()), (8, _waiting()))),
            Line(7, ((8, _up()), (8, silent_targets()), (8, _slots()))),
        ],
    )


def _out() -> Panel:
    out = f'label_replace(topk(6, {q.out_since()}), "link", "$1", "model", "(.*)")'
    none = f'label_replace({q.otherwise(out, "Models out of slots")}, "link", "All", "link", "")'
    return stat(
        "Out of slots now, and for how long",
        "Models none of whose known slots is free, and since when (at most 6 h). New adapters wait "
        "or are refused. Click one to see the cause and what to do.",
        [Query(none, "{{model}}{{note}}")],
        Look(
            unit="dthms",
            thresholds=steps(GOOD, (0, BAD)),
            mappings=values(**{"v-1": ("none", GOOD)}),
        ),
        background=True,
        named=True,
        rows=True,
        links=[
            link(
                "Open the model",
                f"/d/lora-model?var-model=${{__field.labels.link:percentencode}}&{KEEP}",
            )
        ],
    )


def _next() -> Panel:
    left = f"bottomk(5, {q.model_slots('free')} > 0)"
    return table(
        "Next to run out",
        "Models with the fewest free slots, and when they run out if the trend of the last half "
        "hour goes on. A time is told only for a model that is at its lowest and within half an "
        "hour of the end.",
        [
            Query(q.otherwise(left, "No model has a free slot")),
            Query(q.known_or(q.runs_out_in(), left)),
        ],
        [
            replace(MODEL, width=None),
            replace(SLOT_KIND, width=85),
            Column("A", "Free", width=60, mappings=BLANK, thresholds=FREE, cell=TEXT),
            Column("B", "Runs out in", "s", 100, UNSEEN, decimals=0),
        ],
        sort=[("Free", False)],
    )


def _free() -> Panel:
    expr = f"sum by (slot_kind) ({q.replica_slots('free')})"
    return stat(
        "Free slots",
        "Slots that a new adapter can take now, of all models, by kind: exclusive ones are held "
        "until released, evictable ones are a cache. The two are never added up.",
        [Query(expr, "{{slot_kind}}")],
        Look(thresholds=FREE),
        named=True,
        spark=True,
    )


def _waiting_now() -> Panel:
    return stat(
        "Adapters waiting",
        "Adapters that have work and no slot; for engines that tell only requests, those. Above "
        "0, users wait.",
        [Query(f"sum({q.work_waiting()})", "waiting")],
        Look(thresholds=ANY_IS_BAD, nothing="no engine tells"),
        spark=True,
    )


def _silent() -> Panel:
    up = q.per_target("lora_target_up", "group")
    return stat(
        "Replicas silent",
        "Replicas that count as current and whose table is not known: down, or placed and never "
        "discovered. Where no exporter sees whole models: targets that do not answer.",
        [Query(f"sum({q.silent()}) or count({up}) - sum({up})", "silent")],
        Look(thresholds=ANY_IS_BAD, nothing="unknown"),
    )


def _models() -> Panel:
    def rows(expression: str) -> Query:
        return Query(q.for_each_kind(expression))

    return table(
        "Models by pressure",
        "Every model, the most urgent first, then the fullest. Used above 75 % is yellow, above "
        "90 % orange, full is red; exclusive slots then refuse new adapters, evictable ones let "
        "them wait. "
        "? is unknown, which is not 0.",
        [
            Query(q.model_fill()),
            Query(q.model_slots("free")),
            Query(q.model_slots("max")),
            rows(f"sum by (model) ({q.work_waiting()})"),
            rows(q.answering()),
            rows(q.silent()),
            rows(q.more()),
            rows(q.next_step()),
        ],
        [
            MODEL,
            SLOT_KIND,
            Column("A", "Used", "percentunit", 260, thresholds=FILL, cell=BAR, most=1, decimals=0),
            Column("B", "Free", width=80, thresholds=FREE, cell=TEXT),
            Column("C", "Max", width=80),
            Column("D", "Waiting", width=90, thresholds=ANY_IS_BAD, cell=TEXT, nothing="not told"),
            Column("E", "Replicas answering", width=150),
            Column("F", "silent", width=80, thresholds=ANY_IS_BAD, cell=TEXT),
            Column("G", "to add", width=80, thresholds=ANY_IS_WARNING, cell=TEXT),
            Column("H", "Next step", mappings=NEXT_STEP, cell=TEXT, left=True),
        ],
        sort=[("Next step", True), ("Used", True)],
    )


def _needs() -> Panel:
    short = f"{q.more()} > 0"

    def rows(expression: str) -> Query:
        found = f"({expression}) and on (model) ({short})"
        none = q.otherwise(found, "No model is known to need more", "lora_model_needed_replicas")
        return Query(q.otherwise(none, "What models need is not known"))

    def first(name: str, label: str) -> Query:
        none = f'label_replace({short}, "{label}", "-", "", "")'
        return rows(f"{q.first(name, label)} or on (model) {none}")

    headroom = "lora_model_headroom_replicas"
    return table(
        "Who needs more replicas, and do they fit",
        "Models that need more replicas than they have. They fit in what is free, or further ones "
        "by stopping replicas of lower classes. Without room is what stays out when those of all "
        "models are placed together. Of several victims or reasons one is named; the model's page "
        "has all.",
        [
            rows(q.more()),
            rows(q.per_model("lora_model_current_replicas")),
            rows(q.per_model("lora_model_needed_replicas")),
            rows(q.per_model(headroom, matchers='room="free"')),
            rows(q.per_model(headroom, matchers='room="preempting"')),
            rows(q.per_model("lora_model_fits")),
            first("lora_model_would_preempt_replicas", "victim"),
            first("lora_model_blocked", "reason"),
            rows(q.per_model("lora_model_unplaced_replicas")),
        ],
        [
            replace(MODEL, width=None),
            Column("B", "Has", width=60, mappings=BLANK, nothing=""),
            Column("C", "Needs", width=70, mappings=BLANK, nothing=""),
            Column("D", "Room: free", width=90, mappings=BLANK, nothing=""),
            Column("E", "by stopping", width=95, mappings=BLANK, nothing=""),
            Column(
                "F", "Fits", width=100, mappings=[*FITS, *BLANK], cell=TEXT, left=True, nothing=""
            ),
            Column("victim", "Would stop", width=110, nothing=""),
            Column("reason", "Blocked by", width=100, nothing=""),
            Column(
                "I", "Without room", width=105, mappings=BLANK, thresholds=ANY_IS_BAD, cell=TEXT
            ),
        ],
    )


def alerts() -> Panel:
    """The alerts that fire, of these models and of no model."""
    since = 'time() - ALERTS_FOR_STATE{alertname=~"Lora.*",model=~"$model|"}'
    firing = 'ALERTS{alertname=~"Lora.*",alertstate="firing"}'
    expr = (
        "max by (alertname, severity, model, replica_id) "
        f"({since} and ignoring (alertstate) {firing})"
    )
    return table(
        "Alerts that fire",
        "Alerts on LoRA capacity, and since when their condition holds.",
        [Query(q.otherwise(expr, "None fires, or no rules are loaded"))],
        [
            Column("severity", "Severity", width=75, mappings=SEVERITY, cell=TEXT, nothing=""),
            Column("alertname", "Alert"),
            replace(MODEL, width=170),
            Column("replica_id", "Replica", width=90, nothing=""),
            Column("A", "For", "s", 75, BLANK, decimals=0),
        ],
        sort=[("Severity", False)],
    )


def _fill() -> Panel:
    return strip(
        "Used slots of each model",
        "Share of the slots that is used, over time: red where the model was full. Of more than 20 "
        "models, the fullest.",
        [Query(q.most(q.model_fill(), 20), "{{model}} ({{slot_kind}})")],
        Look(unit="percentunit", decimals=0, thresholds=FILL),
    )


def _waiting() -> Panel:
    return graph(
        "Adapters waiting for a slot",
        "By model, the ten with most. Engines that tell only requests count those.",
        [Query(q.most(f"sum by (model) ({q.work_waiting()})", 10), "{{model}}")],
        Look(nothing="no engine tells who waits"),
        table=False,
    )


def _up() -> Panel:
    told = f"sum by (state) ({q.per_model('lora_model_replicas', 'state')})"
    read = f'label_replace(sum({q.answering()}), "state", "ready", "", "")'
    return graph(
        "Replicas by state",
        "Replicas of all models. Unknown ones count as current and do not answer.",
        [Query(f"{told} or on () {read}", "{{state}}")],
        Look(
            overrides=[
                colour("ready", GOOD),
                colour("starting", "blue"),
                colour("draining", "purple"),
                colour("unknown", BAD),
            ]
        ),
        stacked=True,
        fill=30,
        table=False,
    )


def silent_targets() -> Panel:
    """The targets that are down, and why."""
    down = f"{q.per_target('lora_target_up', 'group')} == 0"
    reason = f"{q.per_target('lora_target_failure', 'reason')} == 1"
    age = f"time() - {q.per_target('lora_target_last_success_timestamp_seconds')}"
    return table(
        "Targets that do not answer",
        "Whose last poll gave no adapter table, why, and how long ago the last one was; of all "
        "models.",
        [
            Query(q.otherwise(expr, "Every target answers"))
            for expr in (
                down,
                f"({reason}) and on (target, instance) ({down})",
                f"({age}) and on (target, instance) ({down})",
            )
        ],
        [
            Column("group", "Group", width=95, nothing=""),
            Column("target", "Target", nothing=""),
            Column("instance", "Exporter", width=95, nothing=""),
            Column("reason", "Reason", width=75, nothing=""),
            Column("C", "Last answer", "s", 88, BLANK, decimals=0, nothing="never"),
        ],
        sort=[("Group", False)],
    )


def _slots() -> Panel:
    def of_kind(name: str) -> str:
        return f"sum by (slot_kind) ({q.replica_slots(name)})"

    return graph(
        "Slots of the fleet",
        "Used slots and all there are, by kind.",
        [Query(of_kind("max"), "max {{slot_kind}}"), Query(of_kind("used"), "used {{slot_kind}}")],
        Look(overrides=[colour("^max", PLAIN, dashed=True)]),
        table=False,
    )

"""Replicas and adapters: which adapter sits where, which replica is full or silent."""

from __future__ import annotations

from dataclasses import replace

from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.generator import promql as q
from dashboards.generator.board import REPLICA_URL, Line, Section, dashboard
from dashboards.generator.fleet import MODEL
from dashboards.generator.panels import BAR, TEXT, Column, Look, Query, graph, stat, strip, table
from dashboards.generator.words import (
    ANY_IS_BAD,
    ANY_IS_WARNING,
    BAD,
    BLANK,
    FILL,
    FREE,
    GOOD,
    PLAIN,
    STATE,
    UP,
    WARN,
    steps,
)

REPLICA = Column("replica_id", "Replica", link=("Show this replica", REPLICA_URL), nothing="")
ADAPTER = Column("adapter", "Adapter")
TARGETS = q.per_target("lora_target_up", "group")


def replicas() -> Dashboard:
    """The adapter table, over all replicas and time."""
    return dashboard(
        "lora-replicas",
        "LoRA capacity / Replicas and adapters",
        "Which adapter sits on which replica, which replicas are full, uneven or silent.",
        [
            Line(
                4,
                (
                    (4, _answering()),
                    (4, _silent()),
                    (4, _full()),
                    (4, _adapters("active", "at work")),
                    (4, _adapters("waiting", "waiting")),
                    (4, _unnamed()),
                ),
            ),
            Line(9, ((24, _replicas()),)),
            Line(8, ((12, _fill()), (12, _targets()))),
            Line(16, ((10, _adapter_table()), (14, _states()))),
            Line(8, ((8, _stay()), (8, _skew()), (8, _full_share()))),
            Line(8, ((8, _tokens()), (8, _requests()), (8, _failures()))),
            Section(
                "Targets, and sessions that hold slots",
                (Line(8, ((13, _down()), (11, _sessions()))),),
            ),
        ],
        replicas=True,
    )


def _answering() -> Panel:
    expr = f"count(group by (model, replica_id) (lora_replica_info{{{q.REPLICA}}}))"
    return stat(
        "Replicas that are known",
        "Replicas whose adapter table is known now.",
        [Query(expr)],
        Look(),
    )


def _silent() -> Panel:
    return stat(
        "Targets that do not answer",
        "Targets whose last poll gave no adapter table, of all models.",
        [Query(f"count({TARGETS}) - sum({TARGETS})")],
        Look(thresholds=ANY_IS_BAD),
    )


def _full() -> Panel:
    free = q.replica_slots("free", q.REPLICA)
    return stat(
        "Full replicas",
        "Replicas without a free slot. While others of the model have some, routing is uneven.",
        [Query(f"count({free} == 0) or 0 * count({free})")],
        Look(thresholds=ANY_IS_WARNING),
    )


def _adapters(state: str, words: str) -> Panel:
    named = q.per_replica("lora_adapter_state", "adapter", within=f'{q.REPLICA},state="{state}"')
    known = q.per_replica("lora_replica_adapters_dropped", within=q.REPLICA)
    return stat(
        f"Adapters {words}",
        f"Adapters that are {state}, counted on each replica.",
        [Query(f"count({named}) or 0 * count({known})")],
        Look(thresholds=ANY_IS_BAD if state == "waiting" else steps(PLAIN)),
    )


def _unnamed() -> Panel:
    dropped = q.per_replica("lora_replica_adapters_dropped", within=q.REPLICA)
    return stat(
        "Adapters not named",
        "Adapters beyond poll.max_adapters of their replica: they are counted in no panel that "
        "names adapters.",
        [Query(f"sum({dropped})")],
        Look(thresholds=ANY_IS_WARNING),
    )


def _replicas() -> Panel:
    info = "model, replica_id, slot_kind, engine, version, source"
    kinds = f"group by ({info}) (lora_replica_info{{{q.REPLICA}}})"

    def of(name: str) -> Query:
        return Query(q.per_replica(name, within=q.REPLICA))

    full = "lora_replica_full_polls_total", "lora_replica_polls_total"
    share = " / ".join(
        f"max by (model, replica_id) (increase({name}{{{q.REPLICA}}}[$__range]))" for name in full
    )
    return table(
        "Replicas",
        "Every replica, the fullest first. Source says how used was learnt. Full is the share of "
        "readings in the chosen time that found no free slot. ? is unknown or not told by the "
        "engine.",
        [
            Query(f"topk by (model, replica_id) (1, {kinds})"),
            Query(q.replica_fill(q.REPLICA)),
            Query(q.replica_slots("free", q.REPLICA)),
            Query(q.replica_slots("max", q.REPLICA)),
            of("lora_waiting"),
            of("lora_registered"),
            of("lora_replica_requests_running"),
            of("lora_replica_requests_waiting"),
            Query(q.replica_rate("lora_replica_generation_tokens_total", q.REPLICA)),
            Query(share),
        ],
        [
            replace(MODEL, width=195),
            replace(REPLICA, width=235),
            Column("engine", "Engine", width=65),
            Column("version", "Version", width=105),
            Column("source", "Source", width=85),
            Column("slot_kind", "Slot kind", width=85),
            Column("B", "Used", "percentunit", 150, thresholds=FILL, cell=BAR, most=1, decimals=0),
            Column("C", "Free", width=55, thresholds=FREE, cell=TEXT),
            Column("D", "Max", width=55),
            Column("E", "Waiting", width=75, thresholds=ANY_IS_BAD, cell=TEXT),
            Column("F", "Registered", width=95),
            Column("G", "Requests", width=85),
            Column("H", "they wait", width=85),
            Column("I", "Tokens/s", width=85, decimals=0),
            Column("J", "Full", "percentunit", 60, decimals=0),
        ],
        sort=[("Used", True)],
    )


def _fill() -> Panel:
    return strip(
        "Used slots of each replica",
        "Share of the slots that is used: red where the replica was full. Of more than 20, the "
        "fullest.",
        [Query(q.most(q.replica_fill(q.REPLICA), 20), "{{replica_id}}")],
        Look(unit="percentunit", decimals=0, thresholds=FILL),
    )


def _targets() -> Panel:
    remote = q.remote_target("lora_target_up", "group")
    beside = q.beside_target("lora_target_up", "group")
    up = (
        f'label_join({remote}, "name", " ", "group", "target") or '
        f'label_join({beside}, "name", " ", "group", "instance")'
    )
    least = f"bottomk(20, avg_over_time(({up})[$__range:$__interval] @ end()))"
    return strip(
        "Targets",
        "Whether each target gave its adapter table; of more than 20, those that failed most. A "
        "target may speak for several replicas. One beside its exporter is named after that.",
        [Query(f"({up}) and {least}", "{{name}}")],
        Look(mappings=UP),
        legend=True,
    )


def _adapter_table() -> Panel:
    return table(
        "Adapters",
        "Every adapter on every replica, and its state: the first that holds of active, waiting, "
        "idle (in a slot), offloaded (host memory), registered (only its name).",
        [Query(q.otherwise(q.adapter_state(*q.STATES), "no engine names adapters"))],
        [
            ADAPTER,
            replace(MODEL, width=150),
            replace(REPLICA, width=150),
            Column("A", "State", width=100, mappings=[*STATE, *BLANK], cell=TEXT, left=True),
        ],
        sort=[("State", True)],
    )


def _states() -> Panel:
    states = q.adapter_state(*list(q.STATES)[:-1])
    return strip(
        "Adapters over time",
        "State of the adapters that were more than registered; of more than 40, those first that "
        "waited.",
        [Query(q.most(states, 40), "{{adapter}} on {{replica_id}}")],
        Look(mappings=STATE, nothing="no adapter was at work"),
        legend=True,
    )


def _stay() -> Panel:
    held = q.per_replica(
        "lora_adapter_state", "adapter", within=f'{q.REPLICA},state=~"active|idle"'
    )
    known = q.per_replica("lora_replica_info", within=q.REPLICA)
    window = "[$__range:$__interval]"
    share = (
        f"sum_over_time(({held}){window}) / on (model, replica_id) group_left () "
        f"count_over_time(({known}){window})"
    )
    return table(
        "Adapters that never leave",
        "The 50 adapters that held a slot for the longest part of the chosen time. At 100 % one "
        "never left: a candidate for a replica of its own, or a run that hangs.",
        [Query(q.otherwise(f"topk(50, {share})", "no engine names adapters"))],
        [
            ADAPTER,
            replace(REPLICA, width=140),
            Column(
                "A",
                "Held a slot",
                "percentunit",
                190,
                BLANK,
                cell=BAR,
                most=1,
                decimals=0,
                thresholds=steps(GOOD, (0.99, WARN)),
            ),
        ],
        sort=[("Held a slot", True)],
        points=60,
    )


def _skew() -> Panel:
    fill = q.replica_fill(q.REPLICA)
    return graph(
        "Skew: fullest minus emptiest replica",
        "The ten models with most, of the share of used slots. 100 %: one replica is full while "
        "another is empty, and routing is to blame.",
        [Query(q.most(f"max by (model) ({fill}) - min by (model) ({fill})", 10), "{{model}}")],
        Look(unit="percentunit", least=0, most=1),
        table=False,
    )


def _full_share() -> Panel:
    full = q.replica_rate("lora_replica_full_polls_total", q.REPLICA)
    polls = q.replica_rate("lora_replica_polls_total", q.REPLICA)
    return graph(
        "Share of readings that found the replica full",
        "The ten replicas that were full most: this sees what a scrape misses.",
        [Query(q.most(f"{full} / {polls}", 10), "{{replica_id}}")],
        Look(unit="percentunit", least=0, most=1),
        table=False,
    )


def _tokens() -> Panel:
    return graph(
        "Tokens per second",
        "Prompt tokens processed and tokens generated, by the ten busiest replicas.",
        [
            Query(
                q.most(q.replica_rate("lora_replica_generation_tokens_total", q.REPLICA), 10),
                "{{replica_id}} generated",
            ),
            Query(
                q.most(q.replica_rate("lora_replica_prompt_tokens_total", q.REPLICA), 10),
                "{{replica_id}} prompt",
            ),
        ],
        Look(unit="suffix: tok/s", nothing="no engine tells tokens"),
        stepped=False,
        fill=0,
        table=False,
    )


def _requests() -> Panel:
    def of(name: str) -> str:
        return q.most(q.per_replica(f"lora_replica_requests_{name}", within=q.REPLICA), 10)

    return graph(
        "Requests",
        "Running and waiting requests, of the ten replicas with most; deferred ones wait for a "
        "slot, where the engine tells them apart.",
        [
            Query(of("running"), "{{replica_id}} running"),
            Query(of("waiting"), "{{replica_id}} waiting"),
            Query(of("deferred"), "{{replica_id}} deferred"),
        ],
        Look(decimals=0, nothing="no engine tells requests"),
        fill=0,
        table=False,
    )


def _failures() -> Panel:
    failed = "rate(lora_exporter_poll_failures_total[$__rate_interval])"
    return graph(
        "Failed polls by reason",
        "Polls per minute that gave no adapter table, of all targets; of exporters that watch the "
        "same targets the one with most.",
        [Query(f"60 * max by (reason) (sum by (instance, reason) ({failed}))", "{{reason}}")],
        Look(unit="suffix: /min", thresholds=steps(BAD)),
        stacked=True,
        fill=50,
        table=False,
    )


def _down() -> Panel:
    reasons = f"{q.per_target('lora_target_failure', 'reason')} == 1"
    none = f'label_replace({q.per_target("lora_target_up")}, "reason", "-", "", "")'
    return table(
        "Targets that do not answer, and ghosts",
        "Why and for how long a target has given no adapter table; ghosts are rows of replicas "
        "that no longer live, in the engine's store.",
        [
            Query(TARGETS),
            Query(f"({reasons}) or on (target, instance) {none}"),
            Query(f"time() - {q.per_target('lora_target_last_success_timestamp_seconds')}"),
            Query(q.per_target("lora_target_ghosts")),
        ],
        [
            Column("group", "Group", width=110),
            Column("target", "Target"),
            Column("instance", "Exporter", width=120, nothing=""),
            Column("A", "State", width=80, mappings=UP, cell=TEXT, left=True),
            Column("reason", "Reason", width=90),
            Column("C", "Last answer", "s", 95, decimals=0, nothing="never"),
            Column("D", "Ghosts", width=70, nothing="-"),
        ],
        sort=[("State", False)],
    )


def _sessions() -> Panel:
    def of(name: str) -> str:
        return q.per_replica(name, within=q.REPLICA)

    oldest = of("lora_replica_oldest_heartbeat_timestamp_seconds").replace("max by", "min by")
    orphans = of("lora_replica_orphans")
    return table(
        "Sessions that hold slots",
        "Of training servers with a state store: slots whose session is gone (orphans), how long "
        "the quietest holder has been silent, and the slots of the largest holder.",
        [
            Query(q.otherwise(orphans, "no server tells its sessions")),
            Query(f"time() - {oldest}"),
            Query(of("lora_replica_largest_holder_slots")),
        ],
        [
            replace(MODEL, width=190),
            REPLICA,
            Column("A", "Orphans", width=85, mappings=BLANK, thresholds=ANY_IS_WARNING, cell=TEXT),
            Column("B", "Silent for", "s", 95, decimals=0, nothing="-"),
            Column("C", "Largest holder", width=120, nothing="-"),
        ],
    )

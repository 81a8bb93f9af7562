"""Whether the exporter can be believed: polls, ages, times, and what it costs."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from dashboards.generator import promql as q
from dashboards.generator.board import Line, Section
from dashboards.generator.panels import TEXT, Column, Look, Query, graph, table
from dashboards.generator.words import ANY_IS_BAD, BAD, BLANK, GOOD, values

LOADED = values(v1=("good", GOOD), v0=("refused", BAD))
ONE = "on (job, instance) lora_exporter_build_info"


def exporter() -> Section:
    """The row about the exporter itself."""
    return Section(
        "Exporter",
        (
            Line(7, ((8, _polls()), (8, _ages()), (8, _times()))),
            Line(7, ((5, _samples()), (5, _process()), (8, _exporters()), (6, _discovery()))),
        ),
    )


def _polls() -> Panel:
    def rate(name: str) -> str:
        return f"60 * sum by (instance) (rate({name}[$__rate_interval]))"

    return graph(
        "Polls and failures",
        "Polls, those that failed, and plannings that failed, per minute and exporter.",
        [
            Query(rate("lora_target_polls_total"), "{{instance}} polls"),
            Query(rate("lora_target_poll_failures_total"), "{{instance}} failures"),
            Query(rate("lora_exporter_plan_failures_total"), "{{instance}} plan failures"),
        ],
        Look(unit="suffix: /min"),
        stepped=False,
        table=False,
    )


def _ages() -> Panel:
    last = q.per_target("lora_target_last_success_timestamp_seconds")
    return graph(
        "Age of each target's data",
        "Since the last adapter table of the ten oldest; of several exporters the freshest. It "
        "should stay below two poll intervals.",
        [
            Query(
                q.most(f"time() - {last}", 10),
                "{{target}} {{instance}}",
            )
        ],
        Look(unit="s"),
        stepped=False,
        fill=0,
        table=False,
    )


def _times() -> Panel:
    return graph(
        "Time for polls, plans and scrapes",
        "The slowest target's last poll, the last planning of all models, and a scrape, which "
        "holds the rendering.",
        [
            Query("max by (instance) (lora_target_poll_duration_seconds)", "{{instance}} poll"),
            Query("lora_exporter_plan_duration_seconds", "{{instance}} plan"),
            Query(f"scrape_duration_seconds and {ONE}", "{{instance}} scrape"),
        ],
        Look(unit="s"),
        stepped=False,
        fill=0,
        table=False,
    )


def _samples() -> Panel:
    return graph(
        "Series and targets",
        "Samples of a scrape, and targets that are polled.",
        [
            Query(f"scrape_samples_scraped and {ONE}", "{{instance}} samples"),
            Query("lora_exporter_targets", "{{instance}} targets"),
        ],
        Look(decimals=0),
        fill=0,
        table=False,
    )


def _process() -> Panel:
    return graph(
        "Memory of the exporter",
        "Resident memory.",
        [Query(f"process_resident_memory_bytes and {ONE}", "{{instance}}")],
        Look(unit="bytes"),
        stepped=False,
        table=False,
    )


def _exporters() -> Panel:
    since = "time() - lora_exporter_config_last_reload_success_timestamp_seconds"
    return table(
        "Exporters",
        "Each exporter, whether its last configuration was good, since when it is in force, and "
        "its share of a core.",
        [
            Query("group by (instance, version, python_version) (lora_exporter_build_info)"),
            Query("max by (instance) (lora_exporter_config_last_reload_successful)"),
            Query(f"max by (instance) ({since})"),
            Query(
                f"max by (instance) (rate(process_cpu_seconds_total[$__rate_interval]) and {ONE})"
            ),
        ],
        [
            Column("instance", "Exporter", width=135),
            Column("version", "Version", width=75),
            Column("python_version", "Python", width=75),
            Column("B", "Reload", width=75, mappings=LOADED, cell=TEXT, left=True),
            Column("C", "In force", "s", 75, decimals=0),
            Column("D", "CPU", "percentunit", 60, decimals=1),
        ],
    )


def _discovery() -> Panel:
    failed = "max by (group) (increase(lora_exporter_discovery_failures_total[$__range]))"
    found = "max by (group) (lora_exporter_discovery_last_success_timestamp_seconds)"
    none = "every target is static"
    return table(
        "Discovery",
        "How long ago the targets of each group were last found, and attempts that failed in the "
        "chosen time; meanwhile its last targets stay.",
        [
            Query(q.otherwise(failed, none, "lora_target_up")),
            Query(q.otherwise(f"time() - {found}", none, "lora_target_up")),
        ],
        [
            Column("group", "Group"),
            Column("A", "Failed", width=65, mappings=BLANK, thresholds=ANY_IS_BAD, decimals=0),
            Column("B", "Last found", "s", 95, BLANK, decimals=0, nothing="never"),
        ],
    )

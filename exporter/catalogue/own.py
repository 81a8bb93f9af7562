"""What the exporter says of itself."""

from __future__ import annotations

from exporter.catalogue.family import Family

EXPORTER_FAMILIES: tuple[Family, ...] = (
    Family(
        "lora_exporter_build_info",
        "gauge",
        ("version", "python_version"),
        "The exporter's version. Always 1.",
    ),
    Family(
        "lora_exporter_config_last_reload_successful",
        "gauge",
        (),
        "1 when the last attempt to load the configuration succeeded, else 0.",
    ),
    Family(
        "lora_exporter_config_last_reload_success_timestamp_seconds",
        "gauge",
        (),
        "Unix time of the last successful load of the configuration.",
    ),
    Family(
        "lora_exporter_poll_failures_total",
        "counter",
        ("engine", "reason"),
        "Polls of all targets that gave no adapter table, by engine (auto: not detected yet) and "
        "reason.",
    ),
    Family(
        "lora_exporter_discovery_failures_total",
        "counter",
        ("group",),
        "Attempts to find the targets of the group that failed. Its last targets stay.",
    ),
    Family(
        "lora_exporter_discovery_last_success_timestamp_seconds",
        "gauge",
        ("group",),
        "Unix time at which the targets of the group were last found.",
    ),
    Family(
        "lora_exporter_inventory_last_success_timestamp_seconds",
        "gauge",
        (),
        "Unix time at which the inventory was last read. A lost inventory stays as it was.",
    ),
    Family(
        "lora_exporter_class_mistakes",
        "gauge",
        ("reason",),
        "Classes whose PriorityClass is not in the cluster (missing), and pairs of classes whose "
        "ranks contradict the order of their PriorityClasses (order). Where classes name them.",
    ),
    Family(
        "lora_exporter_plan_duration_seconds",
        "gauge",
        (),
        "Duration of the last planning of all models.",
    ),
    Family(
        "lora_exporter_plan_failures_total",
        "counter",
        (),
        "Plannings that failed by a mistake of the exporter's own; series of plans are absent "
        "until one succeeds.",
    ),
    Family(
        "lora_exporter_targets",
        "gauge",
        (),
        "Targets that are polled.",
    ),
)
"""What the exporter says of itself; the process_* series of the client library come on top."""

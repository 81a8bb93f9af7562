"""What the exporter says of itself, and of its process."""

from __future__ import annotations

import platform
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from exporter import __version__
from exporter.catalogue import FAMILIES
from exporter.engines import AUTO, ENGINES
from exporter.exposition.text import EOF
from exporter.fleet import Reason, TargetStatus

# A second series for each counter, with the time of its creation, which nobody asked for.
disable_created_metrics()  # type: ignore[no-untyped-call] # the library has no types here


class SelfMetrics:
    """The exporter's own series, in a registry of their own."""

    def __init__(self, targets: Callable[[], int]) -> None:
        """`targets`: how many targets are polled now."""
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        build = self._gauge("lora_exporter_build_info")
        build.labels(__version__, platform.python_version()).set(1)
        self._reload_successful = self._gauge("lora_exporter_config_last_reload_successful")
        self._reload_time = self._gauge(
            "lora_exporter_config_last_reload_success_timestamp_seconds"
        )
        self._gauge("lora_exporter_targets").set_function(targets)
        self._late: dict[str, Gauge] = {}
        failures = FAMILIES["lora_exporter_poll_failures_total"]
        self._failures = Counter(
            failures.name, failures.help, failures.labels, registry=self._registry
        )
        for engine in (AUTO, *ENGINES):
            for reason in Reason:
                self._failures.labels(engine, reason.value)

    def _gauge(self, name: str) -> Gauge:
        family = FAMILIES[name]
        return Gauge(family.name, family.help, family.labels, registry=self._registry)

    def config_loaded(self, now: float) -> None:
        """A configuration came into force at `now` (unix seconds)."""
        self._reload_successful.set(1)
        self._reload_time.set(now)

    def config_refused(self) -> None:
        """A configuration was refused; the last good one stays in force."""
        self._reload_successful.set(0)

    def polled(self, status: TargetStatus) -> None:
        """A target was polled."""
        if status.reason is not None:
            self._failures.labels(status.engine or AUTO, status.reason.value).inc()

    def planned(self, seconds: float, inventory_read: float | None) -> None:
        """All models were planned; `inventory_read`: unix seconds, None without inventory."""
        self._set("lora_exporter_plan_duration_seconds", seconds)
        if inventory_read is not None:
            self._set("lora_exporter_inventory_last_success_timestamp_seconds", inventory_read)

    def _set(self, name: str, value: float) -> None:
        """Sets a gauge that does not exist before it has a value."""
        if name not in self._late:
            self._late[name] = self._gauge(name)
        self._late[name].set(value)

    def text(self, openmetrics: bool) -> bytes:
        """The series' text, without an end mark."""
        text: bytes
        if openmetrics:
            # The library has no types here.
            text = generate_openmetrics(self._registry)  # type: ignore[no-untyped-call]
            return text.removesuffix(EOF)
        text = generate_latest(self._registry)
        return text

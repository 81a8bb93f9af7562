"""What the exporter says of itself, and of its process."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable

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
from exporter.inventory.ranks import Mistakes

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
        self._discovering: set[str] = set()
        self._discovery_success = self._gauge(
            "lora_exporter_discovery_last_success_timestamp_seconds"
        )
        self._discovery_failures = self._counter("lora_exporter_discovery_failures_total")
        self._plan_failures = self._counter("lora_exporter_plan_failures_total")
        self._failures = self._counter("lora_exporter_poll_failures_total")
        for engine in (AUTO, *ENGINES):
            for reason in Reason:
                self._failures.labels(engine, reason.value)

    def _gauge(self, name: str) -> Gauge:
        family = FAMILIES[name]
        return Gauge(family.name, family.help, family.labels, registry=self._registry)

    def _counter(self, name: str) -> Counter:
        family = FAMILIES[name]
        return Counter(family.name, family.help, family.labels, registry=self._registry)

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

    def discovers(self, groups: Iterable[str]) -> None:
        """The groups whose targets come and go, and no others: their series vanish."""
        wanted = set(groups)
        for group in self._discovering - wanted:
            self._discovery_failures.remove(group)
            with contextlib.suppress(KeyError):
                self._discovery_success.remove(group)
        for group in wanted - self._discovering:
            self._discovery_failures.labels(group)
        self._discovering = wanted

    def discovered(self, group: str, now: float | None) -> None:
        """The group's targets were found at `now` (unix seconds); None: that failed."""
        if group not in self._discovering:
            return
        if now is None:
            self._discovery_failures.labels(group).inc()
        else:
            self._discovery_success.labels(group).set(now)

    def planned(
        self, seconds: float | None, inventory_read: float | None, mistakes: Mistakes | None
    ) -> None:
        """All models were planned, or (None) could not be.

        `inventory_read`: unix seconds, None without inventory; `mistakes`: about PriorityClasses,
        None where none are known.
        """
        if seconds is None:
            self._plan_failures.inc()
            return
        self._set("lora_exporter_plan_duration_seconds", seconds)
        if inventory_read is not None:
            self._set("lora_exporter_inventory_last_success_timestamp_seconds", inventory_read)
        if mistakes is not None:
            self._set("lora_exporter_class_mistakes", len(mistakes.missing), "missing")
            self._set("lora_exporter_class_mistakes", len(mistakes.order), "order")
        elif "lora_exporter_class_mistakes" in self._late:
            self._late["lora_exporter_class_mistakes"].clear()

    def _set(self, name: str, value: float, *labels: str) -> None:
        """Sets a gauge that does not exist before it has a value."""
        if name not in self._late:
            self._late[name] = self._gauge(name)
        gauge = self._late[name]
        (gauge.labels(*labels) if labels else gauge).set(value)

    def text(self, openmetrics: bool) -> bytes:
        """The series' text, without an end mark."""
        text: bytes
        if openmetrics:
            # The library has no types here.
            text = generate_openmetrics(self._registry)  # type: ignore[no-untyped-call]
            return text.removesuffix(EOF)
        text = generate_latest(self._registry)
        return text

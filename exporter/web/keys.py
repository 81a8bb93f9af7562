"""What the handlers work on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from exporter.current import CurrentFleet
from exporter.discovery.finding import Finding
from exporter.fetching.http import HttpClient
from exporter.live import LivePlans
from exporter.self_metrics import SelfMetrics
from exporter.settings import Settings


@dataclass(slots=True)
class WebState:
    """The parts of the running service that the handlers need."""

    fleet: CurrentFleet
    self_metrics: SelfMetrics
    http: HttpClient
    settings: Callable[[], Settings]
    """The settings in force."""
    telemetry_path: str
    reload: Callable[[], Awaitable[None]]
    """Loads the configuration anew; raises ConfigError."""
    clock: Callable[[], float]
    """Unix seconds."""
    this_host: str
    live: LivePlans
    finding: Finding
    stopping: bool = False
    was_ready: bool = False
    """Whether it was ready once; targets that come later do not change that."""
    probing: int = 0
    """Probes under way."""

    def lifecycle(self) -> bool:
        """Whether the configuration may be reloaded over HTTP."""
        return self.settings().web.enable_lifecycle


STATE: web.AppKey[WebState] = web.AppKey("state", WebState)

"""The running service: polls, serves, reloads, and ends when told to."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from aiohttp import web

from exporter import __version__
from exporter.current import CurrentFleet
from exporter.discovery.base import DiscoveryError
from exporter.discovery.finding import Finding, Prepared, prepare
from exporter.documents import ConfigError, Problem
from exporter.exposition.fleet import Exposition
from exporter.fetching.http import HttpClient, TlsError
from exporter.fleet import TargetStatus
from exporter.kubernetes.client import KubernetesError, require
from exporter.live import LivePlans
from exporter.naming import here
from exporter.poller import Plan, Poller, make_plan
from exporter.self_metrics import SelfMetrics
from exporter.settings import Settings
from exporter.web.app import make_app
from exporter.web.keys import WebState

LOG = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 1.0
"""For answers under way when the end comes."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a reload works on."""

    fleet: CurrentFleet
    poller: Poller
    http: HttpClient
    metrics: SelfMetrics
    live: LivePlans
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Prepared:
    """All of a configuration that may be impossible, before any of it comes into force."""

    plan: Plan
    discoveries: Prepared


async def _follow(changed: asyncio.Event, parts: _Parts) -> None:
    """Polls what is found, as it comes and goes."""
    while True:
        await changed.wait()
        changed.clear()
        parts.fleet.undiscovered = parts.finding.undiscovered
        parts.poller.retarget(parts.finding.targets())
        parts.live.again()


class Service:
    """One exporter. `run` returns after SIGTERM or SIGINT, or `stop`."""

    def __init__(
        self,
        settings: Settings,
        load: Callable[[], Settings],
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`load` reads the configuration anew and raises ConfigError; `wall`: unix seconds."""
        self.settings = settings
        self.address = ""
        """Where the page is, once the service listens."""
        self._load = load
        self._wall = wall
        self._stop = asyncio.Event()
        self._reloading = asyncio.Lock()

    async def run(self, on_ready: Callable[[str], None] | None = None) -> None:
        """Serves until the end. `on_ready` is told the page's address.

        Raises OSError when the address cannot be listened on, ConfigError for certificate files
        that cannot be used.
        """
        settings = self.settings
        LOG.info("lora-exporter starts", extra={"version": __version__})
        if not any(group.static or group.discovered for group in settings.targets):
            LOG.warning("no targets; give --target or --config.file")
        async with HttpClient(settings.poll.max_body) as http:
            exposition = Exposition(settings.poll.max_adapters)
            fleet = CurrentFleet(exposition, settings.poll.stale_after, here(), self._wall)
            metrics = SelfMetrics(lambda: len(fleet))
            live = LivePlans(fleet, lambda: self.settings, metrics.planned, self._wall)

            def on_poll(status: TargetStatus) -> None:
                metrics.polled(status)
                live.polled()

            poller = Poller(fleet, on_poll)
            changed = asyncio.Event()
            finding = Finding(changed.set, metrics.discovered, self._wall)
            prepared = self._prepared(http, settings)
            parts = _Parts(fleet, poller, http, metrics, live, finding)
            state = WebState(
                fleet=fleet,
                self_metrics=metrics,
                http=http,
                settings=lambda: self.settings,
                telemetry_path=settings.web.telemetry_path,
                reload=lambda: self._reload(parts),
                clock=time.monotonic,
                wall=self._wall,
                this_host=here(),
                live=live,
                finding=finding,
            )
            runner = web.AppRunner(
                make_app(state), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
            )
            await runner.setup()
            tasks: list[asyncio.Task[None]] = []
            try:
                self.address = await self._listen(runner, settings.web.listen_address)
                LOG.info("listening", extra={"address": self.address})
                metrics.config_loaded(self._wall())
                self._handle_signals(state)
                await self._apply(parts, settings, prepared)
                tasks = [
                    asyncio.create_task(live.run(), name="plans"),
                    asyncio.create_task(_follow(changed, parts), name="targets"),
                ]
                if on_ready is not None:
                    on_ready(self.address)
                await self._stop.wait()
                state.stopping = True
                LOG.info("lora-exporter stops")
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await live.close()
                await finding.stop()
                await poller.stop()
                await runner.cleanup()

    def stop(self) -> None:
        """Begins the end."""
        self._stop.set()

    def _handle_signals(self, state: WebState) -> None:
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()

        def reload() -> None:
            task = loop.create_task(_quietly(state))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, reload)

    async def _listen(self, runner: web.AppRunner, address: str) -> str:
        host, _, port = address.rpartition(":")
        site = web.TCPSite(runner, host.strip("[]") or None, int(port))
        await site.start()
        name, bound = runner.addresses[0][:2]
        if name in ("0.0.0.0", "::"):  # noqa: S104 - told apart, not bound
            name = "localhost"
        return f"http://[{name}]:{bound}" if ":" in name else f"http://{name}:{bound}"

    def _prepared(self, http: HttpClient, settings: Settings) -> _Prepared:
        """Raises ConfigError for what cannot be used."""
        if settings.inventory.kubernetes is not None:
            try:
                require()
            except KubernetesError as error:
                problem = Problem("inventory", "kubernetes", "what cannot be used", str(error))
                raise ConfigError([problem]) from None
        try:
            plan = make_plan(http, settings.poll, settings.targets)
            return _Prepared(plan, prepare(settings.targets, http))
        except TlsError as error:
            wanted = "certificates and keys in PEM form"
            raise ConfigError([Problem("targets", "tls", str(error), wanted)]) from None
        except DiscoveryError as error:
            problem = Problem("targets", "discovery", "what cannot be used", str(error))
            raise ConfigError([problem]) from None

    async def _apply(self, parts: _Parts, settings: Settings, prepared: _Prepared) -> None:
        parts.metrics.discovers(group.name for group in settings.targets if group.discovered)
        await parts.finding.apply(settings.targets, prepared.discoveries)
        parts.fleet.undiscovered = parts.finding.undiscovered
        await parts.poller.apply(replace(prepared.plan, targets=parts.finding.targets()))

    async def _reload(self, parts: _Parts) -> None:
        """All of a new configuration comes into force, or nothing of it."""
        async with self._reloading:
            try:
                settings = await asyncio.to_thread(self._load)
                _refuse_what_needs_a_restart(self.settings, settings)
                prepared = self._prepared(parts.http, settings)
            except Exception as error:  # noqa: BLE001 - whatever it is, the last good one stays
                parts.metrics.config_refused()
                refused = error
                if not isinstance(refused, ConfigError):
                    # A mistake of ours; its text may quote a value.
                    problem = Problem("settings", "", type(error).__name__, "settings")
                    refused = ConfigError([problem])
                for problem in refused.problems:
                    LOG.error("configuration refused", extra={"problem": str(problem)})
                raise refused from None
            self.settings = settings
            parts.http.max_body = settings.poll.max_body
            parts.fleet.set_limits(settings.poll.stale_after, settings.poll.max_adapters)
            await self._apply(parts, settings, prepared)
            parts.live.again()
            parts.metrics.config_loaded(self._wall())
            LOG.info("configuration reloaded")


def _refuse_what_needs_a_restart(before: Settings, after: Settings) -> None:
    """A configuration comes into force whole or not at all, and these cannot while we run.

    Raises ConfigError.
    """
    problems = [
        Problem("settings", f"{section}.{key}", "another value than at the start", "a restart")
        for section, key in (
            ("web", "listen_address"),
            ("web", "telemetry_path"),
            ("log", "level"),
            ("log", "format"),
        )
        if getattr(getattr(before, section), key) != getattr(getattr(after, section), key)
    ]
    if problems:
        raise ConfigError(problems)


async def _quietly(state: WebState) -> None:
    try:
        await state.reload()
    except ConfigError:
        # Each problem is in the log already, and the last good configuration stays in force.
        return

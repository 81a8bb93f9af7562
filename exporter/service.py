"""The running service: polls, serves, reloads, and ends when told to."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable

from aiohttp import web

from exporter import __version__
from exporter.current import CurrentFleet
from exporter.discovery import static
from exporter.documents import ConfigError, Problem
from exporter.exposition.fleet import Exposition
from exporter.fetching.http import HttpClient, TlsError
from exporter.fleet import TargetStatus
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


class Service:
    """One exporter. `run` returns after SIGTERM or SIGINT, or `stop`."""

    def __init__(
        self,
        settings: Settings,
        load: Callable[[], Settings],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`load` reads the configuration anew and raises ConfigError; `clock`: unix seconds."""
        self.settings = settings
        self.address = ""
        """Where the page is, once the service listens."""
        self._load = load
        self._clock = clock
        self._stop = asyncio.Event()
        self._reloading = asyncio.Lock()

    async def run(self, on_ready: Callable[[str], None] | None = None) -> None:
        """Serves until the end. `on_ready` is told the page's address.

        Raises OSError when the address cannot be listened on, ConfigError for certificate files
        that cannot be used.
        """
        settings = self.settings
        LOG.info("lora-exporter starts", extra={"version": __version__})
        if not any(group.static for group in settings.targets):
            LOG.warning("no targets; give --target or --config.file")
        async with HttpClient(settings.poll.max_body) as http:
            exposition = Exposition(settings.poll.max_adapters)
            fleet = CurrentFleet(exposition, settings.poll.stale_after, here())
            metrics = SelfMetrics(lambda: len(fleet))
            live = LivePlans(fleet, lambda: self.settings, metrics.planned, self._clock)

            def on_poll(status: TargetStatus) -> None:
                metrics.polled(status)
                live.polled()

            poller = Poller(fleet, on_poll, self._clock)
            plan = self._plan(http, settings)
            state = WebState(
                fleet=fleet,
                self_metrics=metrics,
                http=http,
                settings=lambda: self.settings,
                telemetry_path=settings.web.telemetry_path,
                reload=lambda: self._reload(fleet, poller, http, metrics, live),
                clock=self._clock,
                this_host=here(),
                live=live,
            )
            runner = web.AppRunner(
                make_app(state), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
            )
            await runner.setup()
            planning: asyncio.Task[None] | None = None
            try:
                self.address = await self._listen(runner, settings.web.listen_address)
                LOG.info("listening", extra={"address": self.address})
                metrics.config_loaded(self._clock())
                self._handle_signals(state)
                await poller.apply(plan)
                planning = asyncio.create_task(live.run(), name="plans")
                if on_ready is not None:
                    on_ready(self.address)
                await self._stop.wait()
                state.stopping = True
                LOG.info("lora-exporter stops")
            finally:
                if planning is not None:
                    planning.cancel()
                live.close()
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

    def _plan(self, http: HttpClient, settings: Settings) -> Plan:
        try:
            return make_plan(http, settings.poll, settings.targets, static.targets(settings))
        except TlsError as error:
            wanted = "certificates and keys in PEM form"
            raise ConfigError([Problem("targets", "tls", str(error), wanted)]) from None

    async def _reload(
        self,
        fleet: CurrentFleet,
        poller: Poller,
        http: HttpClient,
        metrics: SelfMetrics,
        live: LivePlans,
    ) -> None:
        """All of a new configuration comes into force, or nothing of it."""
        async with self._reloading:
            try:
                settings = await asyncio.to_thread(self._load)
                _refuse_what_needs_a_restart(self.settings, settings)
                plan = self._plan(http, settings)
            except Exception as error:  # noqa: BLE001 - whatever it is, the last good one stays
                metrics.config_refused()
                refused = error
                if not isinstance(refused, ConfigError):
                    # A mistake of ours; its text may quote a value.
                    problem = Problem("settings", "", type(error).__name__, "settings")
                    refused = ConfigError([problem])
                for problem in refused.problems:
                    LOG.error("configuration refused", extra={"problem": str(problem)})
                raise refused from None
            self.settings = settings
            http.max_body = settings.poll.max_body
            fleet.set_limits(settings.poll.stale_after, settings.poll.max_adapters)
            await poller.apply(plan)
            live.again()
            metrics.config_loaded(self._clock())
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

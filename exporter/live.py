"""Plans again and again over what is known now, off the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from exporter.cluster import Inventory
from exporter.current import CurrentFleet
from exporter.exposition.plans import render
from exporter.fleet import Fleet
from exporter.inventory import source_of
from exporter.inventory.kept import KeptInventory
from exporter.inventory.ranks import Mistakes, mistakes
from exporter.inventory.static import declared
from exporter.measuring import MeasurementFile, all_in_force
from exporter.naming import is_loopback
from exporter.planning.demand import Watch
from exporter.planning.overall import Planning, plan_all
from exporter.planning.situation import Situation, with_seen
from exporter.settings import InventorySettings, Settings

LOG = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Planned:
    planning: Planning
    text: dict[bool, bytes]
    seconds: float


class LivePlans:
    """The plans of the running service. All calls come from one event loop."""

    def __init__(
        self,
        fleet: CurrentFleet,
        settings: Callable[[], Settings],
        on_plan: Callable[[float | None, float | None, Mistakes | None], None],
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_plan` is told how long each planning took (seconds; None: it failed), when the
        inventory was last read (unix seconds), and mistakes about PriorityClasses. `wall`: unix
        seconds; `clock`: the fleet's."""
        self._fleet = fleet
        self._settings = settings
        self._on_plan = on_plan
        self._wall = wall
        self._clock = clock
        self._measured = MeasurementFile()
        self._watch = Watch()
        self._inventory: KeptInventory | None = None
        self._inventory_of: InventorySettings | None = None
        self._mistakes: Mistakes | None = None
        self._planned: _Planned | None = None
        self._failed = False
        self._all_polled = False
        self._first = asyncio.Lock()
        self._again = asyncio.Event()
        self._stepping = asyncio.Lock()
        # Threads of their own, as the loop's may all wait for name servers.
        self._thread = ThreadPoolExecutor(1, "planning")
        self._askers = ThreadPoolExecutor(2, "asking")

    async def run(self) -> None:
        """Plans until it is cancelled: first when all targets were polled once."""
        if not self._fleet.all_polled:
            await self._wait()
        while True:
            self._again.clear()
            try:
                await self.step()
            except Exception:
                # A mistake of ours with one fleet must not end the plans of the next.
                LOG.exception("planning failed")
                self._failed = True
                self._on_plan(None, None, None)
            await self._wait()

    async def _wait(self) -> None:
        """Until it is time to plan, or there is a reason to plan sooner."""
        try:
            async with asyncio.timeout(self._settings().planning.interval):
                await self._again.wait()
        except TimeoutError:
            return

    def polled(self) -> None:
        """A target was polled: once all were that there are, the next plan need not wait."""
        all_polled = self._fleet.all_polled
        if all_polled and not self._all_polled:
            self._again.set()
        self._all_polled = all_polled

    def again(self) -> None:
        """Plans soon, as the settings or the targets changed."""
        self._all_polled = self._fleet.all_polled
        self._again.set()

    async def close(self) -> None:
        """Ends the inventory, and lets the threads end."""
        inventory, self._inventory = self._inventory, None
        if inventory is not None:
            await inventory.close()
        for threads in (self._thread, self._askers):
            threads.shutdown(wait=False, cancel_futures=True)

    async def step(self) -> Planning:
        """Plans once, over the fleet as it is now."""
        async with self._stepping:
            now = self._wall()
            settings = self._settings()
            inventory = await self._read_inventory(settings, now)
            fleet = self._fleet.snapshot(self._clock())
            read = inventory.last if inventory is not None else None
            cluster = declared(settings, read)
            self._tell_mistakes(settings, read)

            def plan() -> _Planned:
                began = time.perf_counter()
                measured = self._measured.read(settings.measurements.file)
                known = Situation(cluster, all_in_force(measured, settings.models))
                seen = self._watch.step(fleet, settings.planning.demand_window, settings.models)
                planning = plan_all(with_seen(known, seen, now))
                text = render(planning, sees_whole_fleet(settings, fleet))
                return _Planned(planning, text, time.perf_counter() - began)

            loop = asyncio.get_running_loop()
            self._planned = await loop.run_in_executor(self._thread, plan)
            self._failed = False
            last_success = inventory.last_success if inventory is not None else None
            self._on_plan(self._planned.seconds, last_success, self._mistakes)
            return self._planned.planning

    async def latest(self) -> Planning:
        """The last planning; before the first, one that is made now."""
        if self._planned is None:
            async with self._first:
                if self._planned is None:
                    return await self.step()
        return self._planned.planning

    async def in_thread(self, ask: Callable[[Planning], _T]) -> _T:
        """Asks the latest planning something, off the event loop; plans do not wait for it."""
        planning = await self.latest()
        return await asyncio.get_running_loop().run_in_executor(self._askers, ask, planning)

    def text(self, openmetrics: bool) -> bytes:
        """The text of the last plans; nothing after a failure: missing is never "as before"."""
        if self._planned is None or self._failed:
            return b""
        return self._planned.text[openmetrics]

    async def _read_inventory(self, settings: Settings, now: float) -> KeptInventory | None:
        if settings.inventory != self._inventory_of:
            source, before = source_of(settings.inventory), self._inventory
            self._inventory_of = settings.inventory
            if before is None or source is None:
                self._inventory = KeptInventory(source) if source is not None else None
                if before is not None:
                    await before.close()
            else:
                await before.change(source)
        if self._inventory is not None:
            await self._inventory.refresh(now, settings)
        return self._inventory

    def _tell_mistakes(self, settings: Settings, read: Inventory | None) -> None:
        """Logs what is wrong about PriorityClasses, once."""
        priorities = read.priorities if read is not None else None
        before, self._mistakes = self._mistakes, mistakes(settings.classes, priorities)
        if self._mistakes is None or self._mistakes == before:
            return
        for name in self._mistakes.missing:
            LOG.warning("the PriorityClass of a class is not there", extra={"class": name})
        for one, other in self._mistakes.order:
            fields = {"class": one, "other": other}
            LOG.warning("ranks contradict the order of PriorityClasses", extra=fields)


def sees_whole_fleet(settings: Settings, fleet: Fleet) -> bool:
    """Whether the exporter may speak of whole models.

    Beside one replica of many (all targets on loopback addresses, nothing declared of models or
    nodes) what it knows of a model is only a part.
    """
    if settings.models or settings.inventory.known:
        return True
    return not _all_loopback(status.target.url for status in fleet.targets)


def _all_loopback(urls: Iterable[str]) -> bool:
    hosts = [urlsplit(url).hostname or "" for url in urls]
    return bool(hosts) and all(map(is_loopback, hosts))

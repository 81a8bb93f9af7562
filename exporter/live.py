"""Plans again and again over what is known now, off the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
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
        on_plan: Callable[[float, float | None, Mistakes | None], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`on_plan` is told how long each planning took (seconds), when the inventory was last
        read (unix seconds), and mistakes about PriorityClasses; `clock`: unix seconds."""
        self._fleet = fleet
        self._settings = settings
        self._on_plan = on_plan
        self._clock = clock
        self._measured = MeasurementFile()
        self._watch = Watch()
        self._inventory: KeptInventory | None = None
        self._inventory_of: InventorySettings | None = None
        self._mistakes: Mistakes | None = None
        self._planned: _Planned | None = None
        self._again = asyncio.Event()
        self._stepping = asyncio.Lock()
        # A thread of its own, as the loop's may all wait for name servers.
        self._thread = ThreadPoolExecutor(1, "planning")

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
            await self._wait()

    async def _wait(self) -> None:
        """Until it is time to plan, or there is a reason to plan sooner."""
        try:
            async with asyncio.timeout(self._settings().planning.interval):
                await self._again.wait()
        except TimeoutError:
            return

    def polled(self) -> None:
        """A target was polled: once all were, the first plan need not wait."""
        if self._planned is None and self._fleet.all_polled:
            self._again.set()

    def again(self) -> None:
        """Plans soon, as the settings changed."""
        self._again.set()

    async def close(self) -> None:
        """Ends the inventory, and lets the thread end."""
        inventory, self._inventory = self._inventory, None
        if inventory is not None:
            await inventory.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def step(self) -> Planning:
        """Plans once, over the fleet as it is now."""
        async with self._stepping:
            now = self._clock()
            settings = self._settings()
            inventory = await self._read_inventory(settings, now)
            fleet = self._fleet.snapshot(now)
            read = inventory.last if inventory is not None else None
            cluster = declared(settings, read)
            self._tell_mistakes(settings, read)

            def plan() -> _Planned:
                began = time.perf_counter()
                measured = self._measured.read(settings.measurements.file)
                known = Situation(cluster, all_in_force(measured, settings.models))
                seen = self._watch.step(fleet, settings.planning.demand_window)
                planning = plan_all(with_seen(known, seen, now))
                text = render(planning, sees_whole_fleet(settings, fleet))
                return _Planned(planning, text, time.perf_counter() - began)

            loop = asyncio.get_running_loop()
            self._planned = await loop.run_in_executor(self._thread, plan)
            last_success = inventory.last_success if inventory is not None else None
            self._on_plan(self._planned.seconds, last_success, self._mistakes)
            return self._planned.planning

    async def latest(self) -> Planning:
        """The last planning; before the first, one that is made now."""
        return self._planned.planning if self._planned is not None else await self.step()

    async def in_thread(self, ask: Callable[[Planning], _T]) -> _T:
        """Asks the latest planning something, off the event loop."""
        planning = await self.latest()
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask, planning)

    def text(self, openmetrics: bool) -> bytes:
        """The text of the last plans."""
        return self._planned.text[openmetrics] if self._planned is not None else b""

    async def _read_inventory(self, settings: Settings, now: float) -> KeptInventory | None:
        if settings.inventory != self._inventory_of:
            before, self._inventory = self._inventory, None
            if before is not None:
                await before.close()
            source = source_of(settings.inventory)
            self._inventory = KeptInventory(source) if source is not None else None
            self._inventory_of = settings.inventory
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
    return bool(hosts) and all(map(_is_loopback, hosts))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""The service in the test's own process, on a free port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp

from exporter.service import Service
from exporter.settings import Poll, Probe, Settings, TargetGroup, Web
from tests.support.programs import until

QUICK = Poll(interval="200ms", timeout="200ms", stale_after="1s")


def settings(
    *urls: str, poll: Poll = QUICK, lifecycle: bool = False, allow: tuple[str, ...] = ()
) -> Settings:
    """Settings of a service on a free port."""
    return Settings(
        web=Web(listen_address="127.0.0.1:0", enable_lifecycle=lifecycle),
        poll=poll,
        probe=Probe(allow=allow),
        targets=(TargetGroup(name="g", static=urls),) if urls else (),
    )


@dataclass(frozen=True, slots=True)
class Client:
    """Asks the service."""

    session: aiohttp.ClientSession
    address: str

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.get(self.address + path, headers=sent) as response:
            return response.status, await response.text()

    async def post(self, path: str) -> tuple[int, str]:
        async with self.session.post(self.address + path) as response:
            return response.status, await response.text()

    async def ready(self) -> None:
        """Waits until each target was polled."""

        async def is_ready() -> bool:
            return (await self.get("/-/ready"))[0] == 200

        await until(is_ready)

    async def sample(self, series: str) -> str | None:
        """The value of a series, as it stands in the metrics."""
        _, text = await self.get("/metrics")
        for line in text.splitlines():
            if line.startswith(series + " "):
                return line.rpartition(" ")[2]
        return None


@contextlib.asynccontextmanager
async def serving(
    first: Settings, load: Callable[[], Settings] | None = None
) -> AsyncIterator[Client]:
    """A service that runs until the block ends."""
    service = Service(first, load or (lambda: first))
    listening = asyncio.Event()
    task = asyncio.create_task(service.run(lambda _: listening.set()))
    waiting = asyncio.create_task(listening.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        async with aiohttp.ClientSession() as session:
            yield Client(session, service.address)
    finally:
        waiting.cancel()
        service.stop()
        await task

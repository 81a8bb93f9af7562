"""The exporter as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.programs import until


@dataclass(slots=True)
class Process:
    """A process whose log is JSON on standard error."""

    process: asyncio.subprocess.Process
    session: aiohttp.ClientSession
    log: list[dict[str, Any]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    """What is on standard error and is no JSON."""

    async def logged(self, message: str) -> dict[str, Any]:
        """Waits for a line of the log."""

        async def is_there() -> bool:
            return any(line["msg"] == message for line in self.log)

        await until(is_there)
        return next(line for line in self.log if line["msg"] == message)

    async def address(self) -> str:
        address: str = (await self.logged("listening"))["address"]
        return address

    async def text(self, path: str) -> str:
        async with self.session.get(await self.address() + path) as response:
            return await response.text()

    async def sample(self, series: str) -> str | None:
        for line in (await self.text("/metrics")).splitlines():
            if line.startswith(series + " "):
                return line.rpartition(" ")[2]
        return None

    async def sample_is(self, series: str, value: str | None) -> None:
        """Waits for a series to have a value."""

        async def is_so() -> bool:
            return await self.sample(series) == value

        await until(is_so)

    async def ends(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Sends the signal; the exit status, and the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(number)
        status = await self.process.wait()
        return status, time.monotonic() - started


@contextlib.asynccontextmanager
async def started(
    command: Path, *arguments: str, log: bool = True, **environment: str
) -> AsyncIterator[Process]:
    """The command with a log in JSON, ended with the block."""
    process = await asyncio.create_subprocess_exec(
        str(command),
        *arguments,
        *(("--log.format", "json") if log else ()),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
        cwd="/",
    )
    async with aiohttp.ClientSession() as session:
        it = Process(process, session)
        reading = asyncio.create_task(_read(it))
        try:
            yield it
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await reading


async def _read(it: Process) -> None:
    assert it.process.stderr is not None
    async for line in it.process.stderr:
        try:
            it.log.append(json.loads(line))
        except ValueError:
            it.other.append(line.decode())

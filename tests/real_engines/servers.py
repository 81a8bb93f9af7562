"""Servers of engines: started in a process group of their own, with a log that failures show."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.support.programs import until

_SHOWN = 4000
"""Characters of the log's end in a failure."""


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves, and its log."""

    url: str
    process: asyncio.subprocess.Process
    log: Path

    async def answers(self, path: str, seconds: float) -> None:
        """Waits until the page answers 200. Fails with the log's end if it does not."""
        url = self.url + path

        async def is_so() -> bool:
            ended = self.process.returncode
            assert ended is None, f"ended with status {ended}:\n{self.tail()}"
            return await ok(url)

        try:
            await until(is_so, seconds)
        except TimeoutError:
            raise AssertionError(f"{url} gave no 200:\n{self.tail()}") from None

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-_SHOWN:]

    async def killed(self) -> None:
        """Ends the server and all that it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()


@contextlib.asynccontextmanager
async def serving(
    url: str, folder: Path, *command: str | Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    """The command that serves the address, until the block ends; its log is in the folder."""
    log = folder / f"{Path(command[0]).name}-{url.rpartition(':')[2]}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(str(part) for part in command),
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(url, process, log)
    try:
        yield server
    except BaseException:
        print(f"{log.name} ends with:\n{server.tail()}")
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 20)
        await server.killed()


async def ok(url: str) -> bool:
    """Whether the page answers 200 within two seconds."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session,
            session.get(url) as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False

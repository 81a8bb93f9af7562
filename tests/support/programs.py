"""Real programs that tests start: found on PATH, on free ports, ended with the test."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path


def program(name: str) -> str:
    """The program's path. A missing one fails the test: `make test` installs it."""
    path = shutil.which(name)
    assert path is not None, f"{name} is missing; make packages installs it"
    return path


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Waits for a condition that another process or task brings about."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - no event tells what a process does
            await asyncio.sleep(0.02)


async def listens(port: int) -> bool:
    """Whether somebody accepts connections."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


@contextlib.asynccontextmanager
async def running(
    *command: str, cwd: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that runs until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def redis_server(folder: Path, *options: str) -> AsyncIterator[int]:
    """A Redis server; gives its port."""
    port = free_port()
    command = [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1"]
    async with running(*command, "--save", "", "--dir", str(folder), *options):
        await until(lambda: listens(port))
        yield port

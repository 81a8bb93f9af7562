"""Serves an application on a free port of the loopback address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate

from aiohttp import hdrs, web

SHUTDOWN_SECONDS = 1.0
"""For answers under way when the end comes."""


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    """Serves until the context ends. Gives the address, such as `http://127.0.0.1:43210`."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def uvicorn_headers(now: float) -> dict[str, str]:
    """What engines behind uvicorn send along with every answer. `now`: unix seconds."""
    return {hdrs.DATE: formatdate(now, usegmt=True), hdrs.SERVER: "uvicorn"}

"""A simulated Twinkle server: its gateway over HTTP, its state file and its Ray dashboard."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from exporter.demo.http_server import serving, uvicorn_headers
from exporter.demo.ray_dashboard import dashboard_app
from exporter.demo.scenario import TwinkleMoment, TwinkleServer
from exporter.demo.twinkle_store import StateFile

PREFIX = "/api/v1"
"""Path of the gateway."""

_REQUEST_ID = "x-request-id"
_FUTURES_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class RunningTwinkle:
    """Where a simulated Twinkle server is found."""

    gateway: str
    """Address with its prefix."""
    dashboard: str
    state: StateFile


@asynccontextmanager
async def twinkle_server(
    server: TwinkleServer, clock: Callable[[], float], started: float
) -> AsyncIterator[RunningTwinkle]:
    """Runs the server until the context ends. `clock` and `started`: unix seconds."""
    with tempfile.TemporaryDirectory(prefix="lora-exporter-demo-") as folder:
        path = Path(folder) / "twinkle_state.json"
        state = StateFile(path, server, clock, started)
        state.write()
        async with (
            serving(gateway_app(server, clock, started)) as gateway,
            serving(dashboard_app(server, PREFIX, path, started)) as dashboard,
        ):
            writer = asyncio.create_task(state.keep_writing(), name="twinkle state file")
            try:
                yield RunningTwinkle(gateway + PREFIX, dashboard, state)
            finally:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)


def gateway_app(
    server: TwinkleServer, clock: Callable[[], float], started: float
) -> web.Application:
    """The gateway's server. `clock` and `started` (the demo's start): unix seconds."""

    def answer(request: web.Request, document: object, status: int = 200) -> web.Response:
        request_id = request.headers.get(_REQUEST_ID, str(uuid.uuid4()))
        if not request_id:
            document = {"detail": "Missing x-request-id header, required for sticky session"}
            status = 400
        headers = uvicorn_headers(clock()) | {_REQUEST_ID: request_id}
        return web.json_response(document, status=status, headers=headers)

    def moment() -> TwinkleMoment:
        return server.at(max(clock() - started, 0.0))

    async def capacity_info(request: web.Request) -> web.Response:
        # The real one, too, adds up every row of its store, those of killed replicas included.
        now = moment()
        limit, used = len(now.registered) * server.max_loras, len(now.holdings)
        total = {"max_loras": limit, "used_loras": used, "free_loras": max(limit - used, 0)}
        return answer(request, total)

    async def healthz(request: web.Request) -> web.Response:
        return answer(request, {"status": "ok"})

    async def status(request: web.Request) -> web.Response:
        now = moment()
        resources = {
            "sessions": len(now.sessions),
            "models": len(now.holdings),
            "sampling_sessions": 0,
            "futures": len(now.holdings),
        }
        cleanup = {"running": True, "expiration_timeout": _FUTURES_SECONDS}
        return answer(request, {"resources": resources, "cleanup": cleanup})

    async def capabilities(request: web.Request) -> web.Response:
        return answer(request, {"supported_models": [{"model_name": server.model}]})

    async def routes(request: web.Request) -> web.Response:
        names = {
            PREFIX: "server",
            f"{PREFIX}/model/{server.model}": f"models-{server.model}",
            f"{PREFIX}/sampler/{server.model}": f"sampler-{server.model}",
        }
        return answer(request, names)

    async def unknown(request: web.Request) -> web.Response:
        return answer(request, {"detail": "Not Found"}, status=404)

    app = web.Application()
    app.router.add_get(f"{PREFIX}/twinkle/capacity_info", capacity_info)
    app.router.add_get(f"{PREFIX}/twinkle/healthz", healthz)
    app.router.add_get(f"{PREFIX}/twinkle/status", status)
    app.router.add_get(f"{PREFIX}/twinkle/get_server_capabilities", capabilities)
    app.router.add_get("/-/routes", routes)
    app.router.add_get("/{path:.*}", unknown)
    return app

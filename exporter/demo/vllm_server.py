"""A simulated vLLM replica over HTTP: `/metrics`, `/v1/models`, `/version`, `/health`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from aiohttp import hdrs, web

from exporter.demo.http_server import uvicorn_headers
from exporter.demo.prometheus import render
from exporter.demo.scenario import ServingReplica
from exporter.demo.vllm_metrics import RELEASES, families

_CONTENT_TYPE = "text/plain; version={}; charset=utf-8"


def vllm_app(
    replica: ServingReplica, clock: Callable[[], float], started: float
) -> web.Application:
    """The replica's server. `clock` and `started` (the demo's start): unix seconds."""
    release = RELEASES[replica.version]

    def headers() -> dict[str, str]:
        return uvicorn_headers(clock()) | dict(release.headers)

    def exposition(names: frozenset[str] | None = None) -> bytes:
        seconds = max(clock() - started, 0.0)
        return render(families(replica, seconds, started), names).encode()

    async def metrics(request: web.Request) -> web.Response:
        del request
        content_type = {hdrs.CONTENT_TYPE: _CONTENT_TYPE.format("1.0.0")}
        return web.Response(body=exposition(), headers=headers() | content_type)

    async def filtered_metrics(request: web.Request) -> web.Response:
        # Only this path knows the filter.
        names = frozenset(request.query.getall("name[]", ()))
        content_type = {hdrs.CONTENT_TYPE: _CONTENT_TYPE.format("0.0.4")}
        response = web.Response(body=exposition(names or None), headers=headers() | content_type)
        response.enable_chunked_encoding()
        return response

    async def models(request: web.Request) -> web.Response:
        del request
        document = models_document(replica, int(clock()))
        return web.json_response(document, headers=headers())

    async def version(request: web.Request) -> web.Response:
        del request
        return web.json_response({"version": replica.version}, headers=headers())

    async def health(request: web.Request) -> web.Response:
        del request
        return web.Response(headers=headers())

    async def unknown(request: web.Request) -> web.Response:
        del request
        return web.json_response({"detail": "Not Found"}, status=404, headers=headers())

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/metrics/", filtered_metrics)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/version", version)
    app.router.add_get("/health", health)
    app.router.add_get("/{path:.*}", unknown)
    return app


def models_document(replica: ServingReplica, now: int) -> dict[str, Any]:
    """What `/v1/models` answers: the base model and the adapters. `now`: unix seconds."""
    permission_digits = RELEASES[replica.version].permission_digits

    def row(name: str, root: str, parent: str | None, max_model_len: int | None) -> dict[str, Any]:
        permission = {
            "id": f"modelperm-{uuid.uuid4().hex[:permission_digits]}",
            "object": "model_permission",
            "created": now,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        return {
            "id": name,
            "object": "model",
            "created": now,
            "owned_by": "vllm",
            "root": root,
            "parent": parent,
            "max_model_len": max_model_len,
            "permission": [permission],
        }

    base = row(replica.model, f"/models/{replica.model}", None, 32_768)
    adapters = [row(name, f"/adapters/{name}", replica.model, None) for name in replica.registered]
    return {"object": "list", "data": [base, *adapters]}

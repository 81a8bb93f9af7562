"""The aiohttp application: routes, and headers that every answer has."""

from __future__ import annotations

from aiohttp import hdrs, web

from exporter.documents import ConfigError
from exporter.web import health, metrics, page, probe, sd
from exporter.web.api import openapi
from exporter.web.keys import STATE, WebState

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; form-action 'none'"
)


def make_app(state: WebState) -> web.Application:
    """The application over this state."""
    app = web.Application()
    app.on_response_prepare.append(_set_headers)
    app[STATE] = state
    app.router.add_get("/", page.handle)
    app.router.add_get(state.telemetry_path, metrics.handle)
    app.router.add_get("/probe", probe.handle)
    app.router.add_get("/sd", sd.handle)
    app.router.add_get("/-/healthy", health.healthy)
    app.router.add_get("/-/ready", health.ready)
    app.router.add_post("/-/reload", _reload)
    app.router.add_get(openapi.DOCUMENT_PATH, openapi.handle)
    for operation in openapi.OPERATIONS:
        app.router.add_get(operation.path, operation.handler)
    return app


async def _set_headers(request: web.Request, response: web.StreamResponse) -> None:
    del request
    response.headers.update(_security_headers())


def _security_headers() -> dict[str, str]:
    return {
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        hdrs.CACHE_CONTROL: "no-store",
    }


async def _reload(request: web.Request) -> web.Response:
    state = request.app[STATE]
    if not state.lifecycle():
        text = "Reloading is off; switch it on with web.enable_lifecycle.\n"
        return web.Response(status=403, text=text)
    try:
        await state.reload()
    except ConfigError as error:
        return web.Response(status=400, text=f"{error}\n")
    return web.Response(text="Reloaded.\n")

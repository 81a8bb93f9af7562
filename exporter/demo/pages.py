"""A simulated engine as the pages that it serves: functions of time, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import hdrs, web

from exporter.demo.http_server import uvicorn_headers

Page = Callable[[float], object]
"""What a page shows so many seconds after the start: an exposition (text), else a document that is
sent as JSON."""
Pages = Mapping[str, Page]
"""By path."""

_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


def pages_app(pages: Pages, clock: Callable[[], float], started: float) -> web.Application:
    """Serves the pages; each other path is a 404. `clock` and `started`: unix seconds."""

    async def handle(request: web.Request) -> web.Response:
        now = clock()
        headers = uvicorn_headers(now)
        page = pages.get(request.path)
        if page is None:
            return web.json_response({"detail": "Not Found"}, status=404, headers=headers)
        shown = page(max(now - started, 0.0))
        if isinstance(shown, str):
            return web.Response(
                body=shown.encode(), headers=headers | {hdrs.CONTENT_TYPE: _EXPOSITION}
            )
        return web.json_response(shown, headers=headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    return app

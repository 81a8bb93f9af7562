"""Is the process alive, and is it ready for scrapes."""

from __future__ import annotations

from aiohttp import web

from exporter.web.keys import STATE


async def healthy(request: web.Request) -> web.Response:
    """Alive: nothing that targets do changes this."""
    del request
    return web.Response(text="lora-exporter is healthy.\n")


async def ready(request: web.Request) -> web.Response:
    """Ready once each target was polled, whatever came of it, and until the end begins."""
    state = request.app[STATE]
    if state.stopping:
        return web.Response(status=503, text="lora-exporter is stopping.\n")
    if not state.was_ready:
        if not (state.finding.all_tried and state.fleet.all_polled):
            return web.Response(status=503, text="lora-exporter waits for the first polls.\n")
        state.was_ready = True
    return web.Response(text="lora-exporter is ready.\n")

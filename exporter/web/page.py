"""The landing page: what this is, links, and tables of models, quotas and the fleet."""

from __future__ import annotations

import jinja2
from aiohttp import web

from exporter import __version__
from exporter.table import model_rows, quota_rows, rows
from exporter.web.keys import STATE

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("exporter.web"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


async def handle(request: web.Request) -> web.Response:
    """The page."""
    state = request.app[STATE]
    planning = await state.live.latest()
    fleet = state.fleet.snapshot(state.clock())
    up = sum(bool(status.up) for status in fleet.targets)
    text = _TEMPLATES.get_template("page.html").render(
        version=__version__,
        telemetry_path=state.telemetry_path,
        rows=rows(fleet),
        models=model_rows(planning),
        quotas=quota_rows(planning),
        targets=len(fleet.targets),
        up=up,
    )
    return web.Response(text=text, content_type="text/html")

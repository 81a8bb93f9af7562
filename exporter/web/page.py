"""The landing page: what this is, links, and tables of models, quotas and the fleet."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import jinja2
from aiohttp import web

from exporter import __version__
from exporter.fleet import Fleet
from exporter.planning.overall import Planning
from exporter.table import model_rows, quota_rows, rows
from exporter.web.keys import STATE, WORKERS

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("exporter.web"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_TEMPLATES.filters["as_segment"] = lambda text: quote(text, safe="")
MOST_ROWS = 500
"""Rows of a table, which is loaded every ten seconds."""


async def handle(request: web.Request) -> web.Response:
    """The page."""
    state = request.app[STATE]
    planning = await state.live.latest()
    fleet = state.fleet.snapshot(state.clock())
    loop = asyncio.get_running_loop()
    text = await loop.run_in_executor(WORKERS, _page, fleet, planning, state.telemetry_path)
    return web.Response(text=text, content_type="text/html")


def _page(fleet: Fleet, planning: Planning, telemetry_path: str) -> str:
    all_rows, models = rows(fleet), model_rows(planning)
    if len(all_rows) > MOST_ROWS:
        # What is wrong goes first, as the rest is cut off.
        all_rows.sort(key=lambda row: (row.up and not row.full, row.model, row.replica))
    return _TEMPLATES.get_template("page.html").render(
        version=__version__,
        telemetry_path=telemetry_path,
        rows=all_rows[:MOST_ROWS],
        more_rows=max(len(all_rows) - MOST_ROWS, 0),
        models=models[:MOST_ROWS],
        more_models=max(len(models) - MOST_ROWS, 0),
        quotas=quota_rows(planning),
        targets=len(fleet.targets),
        up=sum(bool(status.up) for status in fleet.targets),
    )

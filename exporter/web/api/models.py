"""`/api/v1/models/{name}/headroom` and `…/target`: the same functions as the command line's."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from aiohttp import web

from exporter.cluster import Unplanned
from exporter.inventory import static
from exporter.inventory.discovered import with_discovered
from exporter.measuring import in_force
from exporter.planning.headroom import Planner
from exporter.planning.plans import TargetError, target_view
from exporter.web.api.answers import answer, refuse
from exporter.web.api.schema import Headroom, Target
from exporter.web.keys import STATE


async def headroom(request: web.Request) -> web.Response:
    """How many more replicas fit, counted up to `?limit=`."""
    planner = _planner(request)
    model = request.match_info["name"]
    if model not in planner.cluster.cards:
        return refuse(404, _unknown(planner, model))
    text = request.query.get("limit")
    if text is not None and not (text.isdecimal() and 0 < int(text) < 2**31):
        return refuse(400, "limit: wanted a positive whole number")
    room = await asyncio.to_thread(planner.headroom, model, int(text) if text else None)
    if isinstance(room, Unplanned):
        return answer(
            Headroom(model=model, free=None, preempting=None, room=None, limited=False, reason=room)
        )
    return answer(
        Headroom(
            model=model,
            free=room.free,
            preempting=room.preempting,
            room=room.room,
            limited=room.limited,
            reason=None,
        )
    )


async def target(request: web.Request) -> web.Response:
    """What it takes to serve `?tokens_per_sec=`."""
    state = request.app[STATE]
    planner = _planner(request)
    model = request.match_info["name"]
    try:
        tokens = float(request.query.get("tokens_per_sec", "nan"))
    except ValueError:
        tokens = float("nan")
    card = planner.cluster.cards.get(model)
    measured = await asyncio.to_thread(state.measurements)
    measurement = in_force(measured, model, card.profile if card is not None else None)
    try:
        view = await asyncio.to_thread(target_view, planner, model, tokens, measurement)
    except TargetError as error:
        return refuse(error.status, str(error))
    return answer(Target.model_validate(asdict(view)))


def _planner(request: web.Request) -> Planner:
    state = request.app[STATE]
    fleet = state.fleet.snapshot(state.clock())
    return Planner(with_discovered(static.cluster(state.settings()), fleet))


def _unknown(planner: Planner, model: str) -> str:
    return f"no model {model!r}; known: {', '.join(sorted(planner.cluster.cards))}"

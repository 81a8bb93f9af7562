"""`/api/v1/models…` and `/api/v1/owners`: the same functions as the command line's."""

from __future__ import annotations

from aiohttp import web

from exporter.planning.plans import TargetError, target_view, unknown_model
from exporter.snapshot import take
from exporter.web.api.answers import answer, refuse
from exporter.web.api.plan_schema import (
    Models,
    headroom_of,
    model_of,
    owners_of,
    target_of,
)
from exporter.web.keys import STATE


async def models(request: web.Request) -> web.Response:
    """All models."""
    live = request.app[STATE].live
    return answer(
        await live.in_thread(
            lambda planning: Models(
                at=planning.situation.at,
                models={model: model_of(planning, model) for model in planning.models},
            )
        )
    )


async def model(request: web.Request) -> web.Response:
    """One model."""
    planning = await request.app[STATE].live.latest()
    name = request.match_info["name"]
    if name not in planning.models:
        return refuse(404, unknown_model(planning.situation, name))
    return answer(model_of(planning, name))


async def headroom(request: web.Request) -> web.Response:
    """How many more replicas fit, counted up to `?limit=`."""
    live = request.app[STATE].live
    planning = await live.latest()
    name = request.match_info["name"]
    if name not in planning.models:
        return refuse(404, unknown_model(planning.situation, name))
    text = request.query.get("limit")
    if text is not None and not (text.isdecimal() and 0 < int(text) < 2**31):
        return refuse(400, "limit: wanted a positive whole number")
    limit = int(text) if text else None
    room = await live.in_thread(lambda planning: planning.planner.headroom(name, limit))
    return answer(headroom_of(name, room))


async def target(request: web.Request) -> web.Response:
    """What it takes to serve `?tokens_per_sec=`."""
    name = request.match_info["name"]
    try:
        tokens = float(request.query.get("tokens_per_sec", "nan"))
    except ValueError:
        tokens = float("nan")
    try:
        view = await request.app[STATE].live.in_thread(
            lambda planning: target_view(planning.planner, planning.situation, name, tokens)
        )
    except TargetError as error:
        return refuse(error.status, str(error))
    return answer(target_of(view))


async def owners(request: web.Request) -> web.Response:
    """All owners."""
    return answer(owners_of(await request.app[STATE].live.latest()))


async def snapshot(request: web.Request) -> web.Response:
    """All that plans are made of, for `lora-exporter plan`."""
    state = request.app[STATE]
    planning = await state.live.latest()
    return answer(take(state.settings(), planning.situation))

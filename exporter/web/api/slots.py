"""`/api/v1/replicas` and `/api/v1/capacity_info`."""

from __future__ import annotations

import asyncio

from aiohttp import web

from exporter.fleet import Fleet, ReplicaStatus, SlotKind, TargetStatus
from exporter.web.api.answers import answer, refuse
from exporter.web.api.schema import CapacityInfo, DownTarget, Replica, Replicas
from exporter.web.keys import STATE, WORKERS


async def replicas(request: web.Request) -> web.Response:
    """All replicas, or those of `?model=`."""
    state = request.app[STATE]
    fleet = state.fleet.snapshot(state.clock())
    model = request.query.get("model")
    return await asyncio.get_running_loop().run_in_executor(WORKERS, _replicas, fleet, model)


def _replicas(fleet: Fleet, model: str | None) -> web.Response:
    found = [
        _replica(status, replica)
        for status, replica in fleet.replicas()
        if model is None or replica.table.model == model
    ]
    if model is not None and not found:
        return refuse(404, f"no model {model!r}; known: {', '.join(_models(fleet))}")
    down = [
        DownTarget(
            target=status.target.url,
            group=status.target.group,
            reason=status.reason,
            detail=status.detail or None,
        )
        for status in fleet.targets
        if not status.up
    ]
    return answer(Replicas(replicas=found, down=down))


async def capacity_info(request: web.Request) -> web.Response:
    """Totals of the fleet, of `?model=`, of `?slot_kind=`."""
    found = _totals(request)
    return found if isinstance(found, web.Response) else answer(found)


async def twinkle_capacity_info(request: web.Request) -> web.Response:
    """The same for Twinkle's own client, which wants three integers: 503 where they are unknown."""
    found = _totals(request)
    if isinstance(found, web.Response):
        return found
    if found.max_loras is None:
        return refuse(503, "the slots of no replica are known")
    return answer(found)


def _totals(request: web.Request) -> CapacityInfo | web.Response:
    state = request.app[STATE]
    fleet = state.fleet.snapshot(state.clock())
    model, kind = request.query.get("model"), request.query.get("slot_kind")
    if kind is not None and kind not in list(SlotKind):
        return refuse(400, f"slot_kind: wanted one of {', '.join(SlotKind)}")
    if model is not None and model not in _models(fleet):
        return refuse(404, f"no model {model!r}; known: {', '.join(_models(fleet))}")
    chosen = [
        replica
        for _, replica in fleet.replicas()
        if (model is None or replica.table.model == model)
        and (kind is None or replica.table.slot_kind == kind)
    ]
    if len({replica.table.slot_kind for replica in chosen}) > 1:
        text = "slot_kind: wanted exclusive or evictable, which are never added up together"
        return refuse(400, text)
    return _sum(fleet, chosen, model)


def _sum(fleet: Fleet, chosen: list[ReplicaStatus], model: str | None) -> CapacityInfo:
    known = [replica.table for replica in chosen if replica.table.free is not None]
    unknown = len(chosen) - len(known)
    if model is None:
        # Of which model a target is that was never read, nobody knows.
        unknown += sum(not status.replicas and not status.up for status in fleet.targets)
    return CapacityInfo(
        max_loras=sum(table.max or 0 for table in known) if known else None,
        used_loras=sum(table.used or 0 for table in known) if known else None,
        free_loras=sum(table.free or 0 for table in known) if known else None,
        complete=unknown == 0,
        unknown_replicas=unknown,
    )


def _models(fleet: Fleet) -> list[str]:
    return sorted({replica.table.model for _, replica in fleet.replicas()})


def _replica(status: TargetStatus, replica: ReplicaStatus) -> Replica:
    table = replica.table
    return Replica(
        model=table.model,
        replica=replica.replica_id,
        target=status.target.url,
        group=status.target.group,
        engine=table.engine,
        version=table.version,
        slot_kind=table.slot_kind,
        source=table.source,
        node=table.node,
        max=table.max,
        used=table.used,
        free=table.free,
        resident=table.resident,
        waiting=table.waiting,
        registered=table.registered,
        up=bool(status.up),
    )

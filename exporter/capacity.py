"""`lora-exporter capacity`: every target read once, as a table or as JSON."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from exporter.current import CurrentFleet
from exporter.discovery.base import DiscoveryError
from exporter.discovery.finding import find_once
from exporter.exposition.fleet import Exposition
from exporter.fetching.ask import Memory
from exporter.fetching.http import HttpClient
from exporter.fleet import Fleet, ReplicaStatus, Target, TargetStatus
from exporter.naming import here
from exporter.poller import make_plan
from exporter.settings import Settings
from exporter.table import Row, rows

_BAR_WIDTH = 10
_SHORT_STATE = 8
_NARROW = 60
_WIDE = 100
"""Columns from which on there is room for all; Model, Replica and Free are never left out."""


async def read_once(settings: Settings) -> Fleet:
    """Asks each target once.

    Raises TlsError for certificate files that cannot be used, DiscoveryError where an optional
    package is missing or targets cannot be found.
    """
    fleet = CurrentFleet(Exposition(0), settings.poll.stale_after, here())
    places = asyncio.Semaphore(settings.poll.concurrency)
    async with HttpClient(settings.poll.max_body) as http:
        found, wrong = await find_once(settings.targets, http)
        if wrong:
            # What is shown would look like all that there is.
            raise DiscoveryError("; ".join(wrong))
        plan = make_plan(http, settings.poll, settings.targets)

        async def ask(target: Target) -> None:
            fleet.add(target)
            async with places:
                asked = await plan.askers[target.group].ask(target, Memory(), settings.poll.timeout)
            fleet.record(target.url, asked, time.time())

        try:
            await asyncio.gather(*(ask(target) for target in found))
        finally:
            for asker in plan.askers.values():
                await asker.close()
    return fleet.snapshot(time.time())


def as_json(fleet: Fleet) -> bytes:
    """The targets and their replicas; what is not known is null."""
    document = {"targets": [_target(status) for status in fleet.targets]}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _target(status: TargetStatus) -> dict[str, Any]:
    return {
        "target": status.target.url,
        "group": status.target.group,
        "engine": status.engine,
        "up": status.up,
        "reason": status.reason,
        "detail": status.detail or None,
        "ghosts": status.ghosts,
        "replicas": [_replica(replica) for replica in status.replicas],
    }


def _replica(replica: ReplicaStatus) -> dict[str, Any]:
    table = replica.table
    return {
        "model": table.model,
        "replica": replica.replica_id,
        "version": table.version,
        "slot_kind": table.slot_kind,
        "source": table.source,
        "max": table.max,
        "used": table.used,
        "free": table.free,
        "resident": table.resident,
        "waiting": table.waiting,
        "registered": table.registered,
        "adapters": [{"name": name, "state": state} for name, state in table.adapters],
    }


def plain_table() -> Table:
    """A table without lines, which suits a terminal and grep."""
    return Table(box=None, header_style="bold", pad_edge=False)


def print_table(fleet: Fleet, console: Console) -> None:
    """The table of the page, with as many columns as the width has room for."""
    wide = console.width >= _WIDE
    table = plain_table()
    table.add_column("Model", overflow="fold", min_width=10)
    table.add_column("Replica", overflow="fold", min_width=10)
    if wide:
        table.add_column("Engine", no_wrap=True)
        table.add_column("Slot kind", no_wrap=True)
    narrow = console.width < _NARROW
    table.add_column("State", overflow="fold", width=_SHORT_STATE if narrow else None)
    for name in ("Free",) if narrow else ("Max", "Used", "Free"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    if wide:
        table.add_column("In use", width=_BAR_WIDTH)
        for name in ("Waiting", "Age"):
            table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    lines = rows(fleet)
    for row in lines:
        cells = _cells(row, wide, console.is_terminal)
        table.add_row(*(cells[:3] + cells[5:] if narrow else cells))
    console.print(table)
    for row in lines:
        if row.detail:
            console.print(f"{row.replica}: {row.detail}", markup=False, highlight=False)


def _cells(row: Row, wide: bool, terminal: bool) -> list[Any]:
    state = escape(row.state) if row.up else f"[red]{escape(row.state)}[/]"
    free = f"[red]{row.free}[/]" if row.full else row.free
    names = [escape(row.model), escape(row.replica)]
    if not wide:
        return [*names, state, row.max, row.used, free]
    names += [escape(row.engine), escape(row.kind)]
    return [*names, state, row.max, row.used, free, _share(row, terminal), row.waiting, row.age]


def _share(row: Row, terminal: bool) -> Any:
    if row.share is None:
        return row.unshared
    if not terminal:
        return f"{row.share} %"
    style = "red" if row.full else "green"
    return ProgressBar(100, row.share, width=_BAR_WIDTH, complete_style=style, finished_style="red")

"""`lora-exporter plan` and `target`: over a file, a running exporter, or the replicas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape

from exporter import capacity
from exporter.cluster import Inventory, Node, Resources
from exporter.documents import read_document
from exporter.engines.base import Request
from exporter.fetching.http import GroupClient, HttpClient
from exporter.fleet import Fleet
from exporter.inventory import source_of, static
from exporter.loading import load
from exporter.measuring import all_in_force, read_measurements
from exporter.planning.demand import Watch
from exporter.planning.needed import Measurement
from exporter.planning.overall import Planning, plan_all
from exporter.planning.plans import TargetView, target_view
from exporter.planning.situation import Situation, with_seen
from exporter.planning.whatif import (
    helping_nodes,
    node_of,
    with_adapters,
    with_demand,
    with_nodes,
    without_node,
)
from exporter.settings import Settings, TargetGroup, normalise_url
from exporter.snapshot import MARK, Snapshot, situation_of, validated
from exporter.table import UNKNOWN, model_rows, shown, yes_or_no
from exporter.web.api.plan_schema import plans_of, target_of

SNAPSHOT_PATH = "/api/v1/snapshot"
_SNAPSHOT_SECONDS = 30
_LARGEST_SNAPSHOT = 256 * 2**20
_INVENTORY_SECONDS = 30.0


class SnapshotError(Exception):
    """No running exporter gave a snapshot."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A question about another situation than the one that is."""

    demand_factor: float = 1.0
    adapters_factor: float = 1.0
    add_nodes: Sequence[tuple[str, Resources | None, int]] = ()
    """Names, shapes (None: that of the node of this name), and how many more of each."""
    remove_nodes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan of each model, and what would make all of them fit."""

    planning: Planning
    nodes: Mapping[str, int | None]
    """How many more nodes like each of these; None: no number does."""


def situation(file: Path) -> Situation:
    """What a configuration or a snapshot tells, asking no replica. Raises ConfigError."""
    document = read_document(file)
    if MARK in document.data:
        return situation_of(validated(document))
    settings = load(file)
    return Situation(static.cluster(settings), _measurements(settings))


def situation_now(settings: Settings) -> Situation:
    """What a configuration tells, and which replicas there are now: each is asked once.

    Raises TlsError for certificate files that cannot be used, ConfigError for bad measurements,
    InventoryError for an inventory that cannot be read.
    """
    fleet, inventory = asyncio.run(_now(settings))
    known = Situation(static.declared(settings, inventory), _measurements(settings))
    # What one look shows of the load is not the load.
    seen = Watch().step(fleet, settings.planning.demand_window)
    return with_seen(known, seen, time.time())


async def _now(settings: Settings) -> tuple[Fleet, Inventory | None]:
    source = source_of(settings.inventory, _INVENTORY_SECONDS)
    if source is None:
        return await capacity.read_once(settings), None
    try:
        return await capacity.read_once(settings), await source.read(settings)
    finally:
        await source.close()


def _measurements(settings: Settings) -> dict[str, Measurement]:
    file = settings.measurements.file
    return all_in_force(read_measurements(file), settings.models) if file is not None else {}


async def fetch_snapshot(address: str) -> Snapshot:
    """Asks a running exporter for what it knows. Raises SnapshotError."""
    try:
        url = normalise_url(address)
    except ValueError as error:
        raise SnapshotError(f"--url: wanted {error}") from None
    loop = asyncio.get_running_loop()
    async with HttpClient(_LARGEST_SNAPSHOT) as http:
        request = Request("snapshot", url + SNAPSHOT_PATH)
        client = GroupClient(TargetGroup(name="exporter"))
        answer = await http.get(request, client, loop.time() + _SNAPSHOT_SECONDS)
    wanted = "wanted a running exporter, say where with --url"
    if answer.reason is not None:
        raise SnapshotError(f"{url}: {answer.detail}; {wanted}")
    try:
        return Snapshot.model_validate_json(answer.body)
    except ValueError:
        raise SnapshotError(f"{url}: no snapshot; {wanted}") from None


def plans(before: Situation, what_if: WhatIf | None = None) -> Plans:
    """Plans for what is, or for what would be.

    Raises WhatIfError for a node that is not there, or a factor over what is not known.
    """
    question = what_if or WhatIf()
    after = with_demand(before, question.demand_factor)
    if question.adapters_factor != 1.0:
        after = with_adapters(after, question.adapters_factor)
    for name in question.remove_nodes:
        after = without_node(after, name)
    for name, shape, count in question.add_nodes:
        like = Node(name, shape) if shape is not None else node_of(after, name)
        after = with_nodes(after, like, count)
    planning = plan_all(after)
    return Plans(planning, helping_nodes(planning))


def view(known: Situation, model: str, tokens_per_second: float) -> TargetView:
    """The view of one target. Raises TargetError."""
    return target_view(plan_all(known).planner, known, model, tokens_per_second)


def plans_json(found: Plans) -> bytes:
    """Plans by model and together; what is not known is null."""
    return _json(plans_of(found.planning, found.nodes))


def view_json(one: TargetView) -> bytes:
    """The view with the field names of the API."""
    return _json(target_of(one))


def _json(body: BaseModel) -> bytes:
    return body.model_dump_json(indent=2, by_alias=True).encode() + b"\n"


def print_plans(found: Plans, console: Console) -> None:
    """A line for each model, then what all of them together lack."""
    table = capacity.plain_table()
    table.add_column("Model", overflow="fold")
    for name in ("Current", "Needed", "Free", "Preempting"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("Fits", "Would stop", "Blocked", "Unplanned"):
        table.add_column(name, overflow="fold")
    for row in model_rows(found.planning):
        table.add_row(
            escape(row.model),
            row.current,
            row.needed,
            row.free,
            row.preempting,
            row.fits,
            escape(row.would_stop),
            row.blocked,
            row.unplanned,
        )
    console.print(table)
    for model, count in found.planning.unplaced.items():
        if count:
            text = f"Placed together, {count} of {model} find no room."
            console.print(text, markup=False, highlight=False)
    for name, number in found.nodes.items():
        text = f"No number of nodes like {name} makes all fit."
        if number is not None:
            text = f"{number} more node{'s' if number > 1 else ''} like {name} would make all fit."
        console.print(text, markup=False, highlight=False)


def print_view(one: TargetView, console: Console) -> None:
    """The view, a line for each thing that it says."""
    stopped = ", ".join(f"{n} {model}" for model, n in one.preempted.items()) or "nothing"
    unknown = f" ({', '.join(one.unplanned)})" if one.unplanned else ""
    lines = (
        ("Model", one.model),
        ("Target", f"{one.tok_per_sec:g} tokens per second"),
        ("One replica serves", f"{one.per_replica_tok_per_sec:g} tokens per second"),
        ("Needed", f"{one.needed} replicas, {one.current} current, {one.more} more"),
        ("Room", shown(one.room) + unknown + (" or more" if one.limited else "")),
        ("Fits", yes_or_no(one.fits)),
        ("Would stop", UNKNOWN if one.room is None else stopped),
        ("Blocked", UNKNOWN if one.room is None else ", ".join(one.blocked) or "by nothing"),
    )
    for name, text in lines:
        console.print(f"{name + ':':<20}{text}", markup=False, highlight=False)

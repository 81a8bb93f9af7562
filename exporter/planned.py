"""`lora-exporter plan` and `target`: plans from the configuration alone, as tables or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from exporter.inventory import static
from exporter.measuring import in_force, read_measurements
from exporter.planning.headroom import Planner
from exporter.planning.needed import Measurement
from exporter.planning.plans import Plan, TargetView, plan, target_view
from exporter.planning.whatif import Together, together, with_demand, with_nodes, without_node
from exporter.settings import Settings
from exporter.table import UNKNOWN


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A question about another cluster than the one that is."""

    demand_factor: float = 1.0
    add_nodes: Sequence[tuple[str, int]] = ()
    """Names of nodes, and how many more like each."""
    remove_nodes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan of each model that has a card, and of all together."""

    models: Mapping[str, Plan]
    together: Together


def plans(settings: Settings, what_if: WhatIf | None = None) -> Plans:
    """Plans for what is, or for what would be.

    Raises WhatIfError for a node that is not there, ConfigError for a bad measurement file.
    """
    cluster = static.cluster(settings)
    what_if = what_if or WhatIf()
    cluster = with_demand(cluster, what_if.demand_factor)
    for name in what_if.remove_nodes:
        cluster = without_node(cluster, name)
    for like, count in what_if.add_nodes:
        cluster = with_nodes(cluster, like, count)
    measured = _measurements(settings)
    planner = Planner(cluster)
    found = {
        model: plan(planner, card, in_force(measured, model, card.profile))
        for model, card in sorted(cluster.cards.items())
    }
    more = {model: one.more for model, one in found.items() if one.more and one.headroom}
    return Plans(found, together(cluster, more))


def view(settings: Settings, model: str, tokens_per_second: float) -> TargetView:
    """The view of one target. Raises TargetError, and ConfigError for a bad measurement file."""
    cluster = static.cluster(settings)
    card = cluster.cards.get(model)
    profile = card.profile if card is not None else None
    measurement = in_force(_measurements(settings), model, profile)
    return target_view(Planner(cluster), model, tokens_per_second, measurement)


def _measurements(settings: Settings) -> dict[str, tuple[Measurement, ...]]:
    file = settings.measurements.file
    return read_measurements(file) if file is not None else {}


def plans_json(found: Plans) -> bytes:
    """Plans by model and together; what is not known is null."""
    return _json(
        {
            "models": {model: _plan(one) for model, one in found.models.items()},
            "together": asdict(found.together),
        }
    )


def view_json(one: TargetView) -> bytes:
    """The view with the field names of the API."""
    return _json(asdict(one))


def _plan(one: Plan) -> dict[str, Any]:
    room = one.headroom
    return {
        "current": one.current,
        "needed": one.needed,
        "needed_by": dict(one.needed_by),
        "headroom": {
            "free": room.free if room is not None else None,
            "preempting": room.preempting if room is not None else None,
        },
        "room": room.room if room is not None else None,
        "more": one.more,
        "fits": one.fits,
        "blocked": list(one.blocked),
        "nearest": asdict(one.nearest) if one.nearest is not None else None,
        "preempts": sorted(one.preempted),
        "preempted": dict(one.preempted),
        "stops": [asdict(stop) for stop in one.stops],
        "unplanned": list(one.unplanned),
    }


def _json(document: dict[str, Any]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def print_plans(found: Plans, console: Console) -> None:
    """A line for each model, then what all of them together lack."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Model", overflow="fold")
    for name in ("Current", "Needed", "Free", "Preempting"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("Fits", "Would stop", "Blocked", "Unplanned"):
        table.add_column(name, overflow="fold")
    for model, one in found.models.items():
        room = one.headroom
        table.add_row(
            model,
            str(one.current),
            _shown(one.needed),
            _shown(room.free if room is not None else None),
            _shown(room.preempting if room is not None else None),
            UNKNOWN if one.fits is None else "yes" if one.fits else "no",
            ", ".join(f"{count} {victim}" for victim, count in one.preempted.items()),
            ", ".join(one.blocked),
            ", ".join(one.unplanned),
        )
    console.print(table)
    for model, count in found.together.unplaced.items():
        text = f"Placed together, {count} of {model} find no room."
        console.print(text, markup=False, highlight=False)
    for name, number in found.together.nodes.items():
        text = f"No number of nodes like {name} makes all fit."
        if number is not None:
            text = f"{number} more node{'s' if number > 1 else ''} like {name} would make all fit."
        console.print(text, markup=False, highlight=False)


def print_view(one: TargetView, console: Console) -> None:
    """The view, a line for each thing that it says."""
    lines = (
        ("Model", one.model),
        ("Target", f"{one.tok_per_sec:g} tokens per second"),
        ("One replica serves", f"{one.per_replica_tok_per_sec:g} tokens per second"),
        ("Needed", f"{one.needed} replicas, {one.current} current, {one.more} more"),
        ("Room", _shown(one.room) + (" or more" if one.limited else "")),
        ("Fits", UNKNOWN if one.fits is None else "yes" if one.fits else "no"),
        (
            "Would stop",
            ", ".join(f"{n} {model}" for model, n in one.preempted.items()) or "nothing",
        ),
        ("Blocked", ", ".join(one.blocked) or "by nothing"),
    )
    for name, text in lines:
        console.print(f"{name + ':':<20}{text}", markup=False, highlight=False)


def _shown(number: int | None) -> str:
    return UNKNOWN if number is None else str(number)

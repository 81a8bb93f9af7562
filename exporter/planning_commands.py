"""The commands `plan`, `target` and `measured`."""

from __future__ import annotations

import argparse
import asyncio
import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from exporter import planned, snapshot
from exporter.cluster import RESOURCES, Resources
from exporter.discovery.base import DiscoveryError
from exporter.fetching.http import TlsError
from exporter.inventory.kept import InventoryError
from exporter.loading import load
from exporter.measuring import Entry, add_measurement
from exporter.planning.needed import LEAST_RATE, MOST_RATE
from exporter.planning.plans import TargetError
from exporter.planning.whatif import MOST_NODES, WhatIfError
from exporter.quantities import parse_memory, parse_thousandths

MOST_FACTOR = 1e6
_Added = tuple[str, Resources | None, int]


def add(commands: Any, console: Callable[[], Console]) -> None:
    """Adds the commands to the parser's."""
    _add_plan(commands, console)
    _add_target(commands, console)
    _add_measured(commands)


def _add_plan(commands: Any, console: Callable[[], Console]) -> None:
    parser = commands.add_parser(
        "plan", help="tell for each model what it needs, what fits and what blocks"
    )
    parser.add_argument(
        "config", metavar="CONFIG", type=Path, help="the configuration, or a snapshot"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--demand-factor",
        metavar="F",
        type=_factor,
        default=1.0,
        help="multiply each target, and the demand that was observed",
    )
    parser.add_argument(
        "--adapters-factor",
        metavar="F",
        type=_factor,
        default=1.0,
        help="multiply the adapters that hold or want a slot",
    )
    parser.add_argument(
        "--add-nodes",
        metavar="SHAPE=N",
        type=_added,
        action="append",
        default=[],
        help="add N empty nodes like a node of this name, or such as gpus:8,memory:1TiB; "
        "may be repeated",
    )
    parser.add_argument(
        "--remove-node",
        metavar="NAME",
        action="append",
        default=[],
        help="leave this node out, and what is on it; may be repeated",
    )
    parser.add_argument(
        "--snapshot",
        metavar="FILE",
        type=Path,
        help="plan what a running exporter knows (nodes, demand, adapters), and write that to "
        "FILE, which this command reads later in place of CONFIG",
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help="where that exporter is (default: this machine, port as CONFIG says)",
    )

    def run(parsed: argparse.Namespace) -> int:
        question = planned.WhatIf(
            parsed.demand_factor, parsed.adapters_factor, parsed.add_nodes, parsed.remove_node
        )
        try:
            if parsed.snapshot is not None:
                url = parsed.url or _local(load(parsed.config).web.listen_address)
                taken = asyncio.run(planned.fetch_snapshot(url))
                found = planned.plans(snapshot.situation_of(taken), question)
                snapshot.write(parsed.snapshot, taken)
            else:
                found = planned.plans(planned.situation(parsed.config), question)
        except (WhatIfError, planned.SnapshotError) as error:
            return _fail(error)
        if parsed.json:
            sys.stdout.buffer.write(planned.plans_json(found))
        else:
            planned.print_plans(found, console())
        return 0

    parser.set_defaults(run=run)


def _add_target(commands: Any, console: Callable[[], Console]) -> None:
    parser = commands.add_parser(
        "target", help="tell what it takes to serve so many tokens per second"
    )
    parser.add_argument("model", metavar="MODEL", help="the model")
    parser.add_argument(
        "--tokens-per-sec", metavar="N", type=float, required=True, help="the target"
    )
    parser.add_argument(
        "--offline",
        action="store_true",
        help="compute from the file (a configuration, or a snapshot) alone, asking no replica",
    )
    _add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def run(parsed: argparse.Namespace) -> int:
        try:
            if parsed.offline:
                known = planned.situation(parsed.config_file)
            else:
                known = planned.situation_now(load(parsed.config_file))
            one = planned.view(known, parsed.model, parsed.tokens_per_sec)
        except (TargetError, TlsError, DiscoveryError, InventoryError) as error:
            return _fail(error)
        if parsed.json:
            sys.stdout.buffer.write(planned.view_json(one))
        else:
            planned.print_view(one, console())
        return 0

    parser.set_defaults(run=run)


def _add_measured(commands: Any) -> None:
    parser = commands.add_parser(
        "measured", help="note what one replica of a model was measured to serve"
    )
    parser.add_argument("model", metavar="MODEL", help="the model")
    parser.add_argument(
        "--tokens-per-sec",
        metavar="N",
        type=_rate,
        required=True,
        help="what one replica served while it kept its service level",
    )
    parser.add_argument(
        "--tokens",
        choices=("generation", "total"),
        default="generation",
        help="which tokens: generated ones, or prompt and generated ones (default: %(default)s)",
    )
    parser.add_argument(
        "--profile", metavar="NAME", default="", help="hardware, engine and workload, in a word"
    )
    parser.add_argument("--how", metavar="TEXT", default="", help="how it was measured")
    _add_config(parser)

    def run(parsed: argparse.Namespace) -> int:
        file = load(parsed.config_file).measurements.file
        if file is None:
            text = "wanted measurements.file, the file that they go to"
            return _fail(f"{parsed.config_file}: {text}")
        entry = Entry(
            tokens_per_second=parsed.tokens_per_sec,
            tokens=parsed.tokens,
            profile=parsed.profile,
            measured_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
            how=parsed.how,
        )
        add_measurement(file, parsed.model, entry)
        print(f"{file}: {parsed.model} serves {parsed.tokens_per_sec:g} tokens per second")
        return 0

    parser.set_defaults(run=run)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config.file", dest="config_file", metavar="FILE", type=Path, required=True
    )


def _fail(error: Exception | str) -> int:
    print(f"lora-exporter: {error}", file=sys.stderr)
    return 1


def _local(listen_address: str) -> str:
    """Where an exporter that listens so is found on this machine."""
    host, _, port = listen_address.rpartition(":")
    if host.strip("[]") in ("", "0.0.0.0", "::"):  # noqa: S104 - told apart, not bound
        host = "localhost"
    return f"http://{host}:{port}"


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not LEAST_RATE <= factor <= MOST_FACTOR:
        wanted = f"wanted a number from {LEAST_RATE:g} to {MOST_FACTOR:g}, such as 1.33"
        raise argparse.ArgumentTypeError(wanted)
    return factor


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not LEAST_RATE <= rate <= MOST_RATE:
        wanted = f"wanted tokens per second, from {LEAST_RATE:g} to {MOST_RATE:g}"
        raise argparse.ArgumentTypeError(wanted)
    return rate


def _added(text: str) -> _Added:
    name, _, count = text.rpartition("=")
    if not name or not count.isdecimal() or int(count) > MOST_NODES:
        raise argparse.ArgumentTypeError(
            "wanted SHAPE=N, such as a=2 for nodes like a, or gpus:8,memory:1TiB=2, "
            f"and N at most {MOST_NODES}"
        )
    return name, _shape(name), int(count)


def _shape(text: str) -> Resources | None:
    """Amounts such as `gpus:8,memory:1TiB`; None for what is the name of a node."""
    amounts = {}
    for part in text.split(","):
        resource, colon, amount = part.partition(":")
        if not colon or resource not in RESOURCES:
            return None
        parse = parse_memory if resource == "memory" else parse_thousandths
        try:
            amounts[resource] = parse(amount)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{resource}: wanted {error}") from None
    return Resources(**amounts)

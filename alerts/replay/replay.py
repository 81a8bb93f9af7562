"""From a made-up fleet to the figures: backfill, record, evaluate, judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from alerts.generator import product
from alerts.generator.inputs import Inputs, seconds
from alerts.generator.recordings import recordings
from alerts.generator.rules import Alert
from alerts.replay import evictable, exclusive, load
from alerts.replay.firing import Firing, firing
from alerts.replay.judge import RULES
from alerts.replay.openmetrics import Writer
from alerts.replay.prometheus import Labels, Server, levels
from alerts.replay.report import Report
from alerts.replay.world import STEP, Fleet, Pool

LATER = 10.0
"""Seconds between the recording rules and the alerts, which are groups of their own."""


def made_up(pools: Sequence[Pool], steps: int, seed: int) -> Fleet:
    """A fleet's history. Each pool's depends on the seed and its name only."""
    fleet = Fleet(steps)
    for pool in pools:
        module = exclusive if pool.kind == "exclusive" else evictable
        random = Random(f"{seed} {pool.name}")
        fleet.histories[pool.name] = module.simulate(pool, random, steps)
    fleet.exporter_down = load.exporter_outages(Random(f"{seed} exporter"), steps)
    return fleet


def record(server: Server, inputs: Inputs, alerts: Sequence[Alert], steps: int) -> None:
    """Evaluates the recording rules that the alerts need, those first that others read."""
    for level in levels(recordings(inputs), [alert.expr() for alert in alerts]):
        server.record(level, steps)


def evaluate(
    server: Server, alerts: Sequence[Alert], steps: int, later: float = LATER
) -> dict[str, dict[Labels, list[Firing]]]:
    """When each alert fires. Prometheus must be running."""
    offset = server.phase("model:lora_max:sum") + later

    def one(alert: Alert) -> dict[Labels, list[Firing]]:
        for_, keep = (-(-seconds(text) // STEP) for text in (alert.for_, alert.keep_firing_for))
        active = server.active(alert.expr(), steps, offset)
        found = {labels: firing(at, for_, keep, steps) for labels, at in active.items()}
        return {labels: some for labels, some in found.items() if some}

    with ThreadPoolExecutor(2) as pool:
        return dict(zip([a.name for a in alerts], pool.map(one, alerts), strict=True))


def replay(
    fleet: Fleet, inputs: Inputs, folder: Path, tell: Callable[[str], None] = lambda text: None
) -> Report:
    """The figures of one fleet. A folder that was filled before is taken as it is."""
    every = [alert for group in product.alerts(inputs).values() for alert in group]
    alerts = [alert for alert in every if alert.name in RULES]
    server = Server(folder)
    if server.empty:
        server.backfill(Writer(fleet))
        tell("series written")
        record(server, inputs, alerts, fleet.steps)
        tell("recording rules evaluated")
    with server.running():
        firings = evaluate(server, alerts, fleet.steps)
        tell("alerts evaluated")
    return Report(fleet, firings, [alert.name for alert in every if alert.name not in RULES])

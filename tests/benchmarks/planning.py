"""Planning a large cluster in one pass, and how the time grows with it."""

from __future__ import annotations

import asyncio
import random

from exporter.cluster import Card, Cluster, Inventory, Node, Resources
from exporter.planning.needed import Measurement
from exporter.planning.overall import plan_all
from exporter.planning.situation import Situation
from tests.benchmarks.measure import cpu_seconds, ratio, shown, stall

HEADER = (
    "Nodes",
    "Replicas",
    "Models",
    "All plans (CPU)",
    "Times the row above",
    "Longest stall of the loop",
)
_GIB = 2**30


def cluster(nodes: int, models: int = 200) -> Cluster:
    """Nodes of four shapes, five replicas on each, and models of four ranks and eight sizes."""
    chance = random.Random(1)  # noqa: S311 - the same cluster each time, no secret
    cards = {}
    for number in range(models):
        gpus = chance.choice((1, 1, 2))
        cards[f"model-{number:03}"] = Card(
            f"model-{number:03}",
            rank=chance.choice((0, 10, 50, 100)),
            request=Resources(gpus * chance.choice((20, 40, 60)) * _GIB, gpus * 4000, gpus * 1000),
            target=chance.uniform(0.8, 1.2) * nodes * 5 / models * 1000,
        )
    names = sorted(cards)
    placed = []
    for number in range(nodes):
        gpus = chance.choice((8, 8, 8, 16))
        replicas: dict[str, int] = {}
        for _ in range(5):
            name = chance.choice(names)
            replicas[name] = replicas.get(name, 0) + 1
        shape = Resources(gpus * 100 * _GIB, gpus * 12000, gpus * 1000)
        placed.append(Node(f"node-{number:05}", shape, replicas))
    inventory = Inventory(tuple(placed), frozenset({"memory", "cores", "gpus"}))
    return Cluster(cards, inventory)


def situation(of: Cluster) -> Situation:
    """The cluster, with each model measured."""
    return Situation(of, {model: Measurement(model, 1000.0) for model in of.cards})


def all_plans(of: Situation) -> int:
    """Plans every model; how many replicas more they need."""
    planning = plan_all(of)
    assert all(one.headroom for one in planning.models.values())
    return sum(one.more or 0 for one in planning.models.values())


def rows() -> list[tuple[str, ...]]:
    """One line for each size, each twice the one before."""
    found: list[tuple[str, ...]] = []
    before = 0.0
    for nodes in (1000, 2000, 4000):
        of = situation(cluster(nodes))
        assert all_plans(of)
        seconds = cpu_seconds(lambda of=of: all_plans(of), 3)  # type: ignore[misc]
        growth = ratio(seconds, before) if before else ""
        late = asyncio.run(stall(lambda of=of: all_plans(of)))  # type: ignore[misc]
        found.append((f"{nodes:,}", f"{nodes * 5:,}", "200", shown(seconds), growth, shown(late)))
        before = seconds
    return found

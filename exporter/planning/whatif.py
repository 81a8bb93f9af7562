"""Other clusters than the one that is: other nodes, other demand; and all models together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from exporter.cluster import Cluster, Inventory, Node
from exporter.planning.headroom import Planner

MOST_NODES = 10_000
"""Most nodes that are tried, to find how many make all fit."""


class WhatIfError(Exception):
    """A node that is not there, or no inventory to change."""


@dataclass(frozen=True, slots=True)
class Together:
    """The `more` of all models, placed together, highest rank first."""

    unplaced: Mapping[str, int]
    """What of each model stays out, where some does."""
    nodes: Mapping[str, int | None]
    """How many more nodes like each of these make all fit; None: no number does."""


def with_nodes(cluster: Cluster, like: str, count: int) -> Cluster:
    """The cluster with `count` more nodes like the one of this name, and nothing on them.

    Raises WhatIfError for a node that is not there.
    """
    inventory, shape = _node(cluster, like)
    taken = {node.name for node in inventory.nodes}
    added: list[Node] = []
    number = 0
    while len(added) < count:
        number += 1
        name = f"{like}+{number}"
        if name not in taken:
            added.append(Node(name, shape.allocatable))
    return replace(cluster, inventory=replace(inventory, nodes=(*inventory.nodes, *added)))


def without_node(cluster: Cluster, name: str) -> Cluster:
    """The cluster without a node and what is on it. Raises WhatIfError if it is not there."""
    inventory, _ = _node(cluster, name)
    nodes = tuple(node for node in inventory.nodes if node.name != name)
    return replace(cluster, inventory=replace(inventory, nodes=nodes))


def with_demand(cluster: Cluster, factor: float) -> Cluster:
    """The cluster with each card's target multiplied."""
    cards = {
        model: card if card.target is None else replace(card, target=card.target * factor)
        for model, card in cluster.cards.items()
    }
    return replace(cluster, cards=cards)


def together(cluster: Cluster, more: Mapping[str, int]) -> Together:
    """What stays out when all of it is placed, and how many nodes of each shape would help."""
    unplaced = _unplaced(cluster, more)
    nodes: dict[str, int | None] = {}
    if unplaced and cluster.inventory is not None:
        shapes: dict[object, str] = {}
        for node in cluster.inventory.nodes:
            shapes.setdefault(node.allocatable, node.name)
        nodes = {name: _smallest(cluster, more, name) for name in shapes.values()}
    return Together(unplaced, nodes)


def _smallest(cluster: Cluster, more: Mapping[str, int], like: str) -> int | None:
    """The smallest number of nodes with which nothing stays out: doubled, then halved."""
    # Each replica alone on a node needs no more nodes than this.
    most = min(
        sum(count * cluster.cards[model].nodes_per_replica for model, count in more.items()),
        MOST_NODES,
    )
    if _unplaced(with_nodes(cluster, like, most), more):
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if _unplaced(with_nodes(cluster, like, middle), more):
            low = middle + 1
        else:
            high = middle
    return low


def _unplaced(cluster: Cluster, more: Mapping[str, int]) -> dict[str, int]:
    return {model: count for model, count in Planner(cluster).place_together(more).items() if count}


def _node(cluster: Cluster, name: str) -> tuple[Inventory, Node]:
    if cluster.inventory is None:
        raise WhatIfError("inventory: wanted nodes")
    for node in cluster.inventory.nodes:
        if node.name == name:
            return cluster.inventory, node
    known = ", ".join(node.name for node in cluster.inventory.nodes)
    raise WhatIfError(f"no node {name!r}; known: {known}")

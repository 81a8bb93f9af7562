"""Other situations than the one that is: other nodes, more demand, more adapters. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from exporter.cluster import RESOURCES, Cluster, Inventory, Node, Resources, placed
from exporter.planning.demand import Seen, Tokens
from exporter.planning.headroom import Planner
from exporter.planning.load import Pool
from exporter.planning.overall import Planning
from exporter.planning.situation import Situation

MOST_NODES = 10_000
"""Most nodes that are tried, to find how many make all fit."""


MOST_SHAPES = 12
"""Most shapes of nodes for which that is found out."""


class WhatIfError(Exception):
    """A node that is not there, or nothing known that could be changed."""


def with_nodes(situation: Situation, like: Node, count: int) -> Situation:
    """The situation with `count` more nodes like this one, named after it, and empty."""
    return replace(situation, cluster=_with_nodes(situation.cluster, like, count))


def node_of(situation: Situation, name: str) -> Node:
    """The node of this name. Raises WhatIfError if it is not there."""
    return _node(situation.cluster, name)[1]


def without_node(situation: Situation, name: str) -> Situation:
    """The situation without a node and what is on it. Raises WhatIfError if it is not there."""
    before = situation.cluster
    inventory, _ = _node(before, name)
    nodes = tuple(node for node in inventory.nodes if node.name != name)
    after = replace(before, inventory=replace(inventory, nodes=nodes))
    current = {
        model: max(count - placed(before, model) + placed(after, model), 0)
        for model, count in before.current.items()
    }
    return replace(situation, cluster=replace(after, current=current))


def with_demand(situation: Situation, factor: float) -> Situation:
    """The situation with each card's target, and what was observed, multiplied."""
    cluster = situation.cluster
    cards = {
        model: card if card.target is None else replace(card, target=card.target * factor)
        for model, card in cluster.cards.items()
    }
    seen = {
        model: replace(
            one, observed=_times(one.observed, factor), highest=_times(one.highest, factor)
        )
        for model, one in situation.seen.items()
    }
    return replace(situation, cluster=replace(cluster, cards=cards), seen=seen)


def with_adapters(situation: Situation, factor: float) -> Situation:
    """The situation with the adapters of each model that hold or want a slot multiplied.

    Raises WhatIfError where no adapters are known.
    """
    if not any(one.load.pools for one in situation.seen.values()):
        raise WhatIfError("no adapters are known; plan a snapshot, which has those that were seen")
    seen = {model: _with_adapters(one, factor) for model, one in situation.seen.items()}
    return replace(situation, seen=seen)


def helping_nodes(planning: Planning) -> dict[str, int | None]:
    """How many more nodes like each of these make all models fit together, where not all do.

    One node for each shape; None: no number does.
    """
    cluster = planning.situation.cluster
    if cluster.inventory is None or not any(planning.unplaced.values()):
        return {}
    more = {model: planning.models[model].more or 0 for model in planning.unplaced}
    selected = {key for card in cluster.cards.values() for key, _ in card.where.selector}
    shapes: dict[tuple[object, ...], Node] = {}
    for node in cluster.inventory.nodes:
        labels = frozenset(item for item in node.labels.items() if item[0] in selected)
        shapes.setdefault((*_size(node.allocatable), labels, frozenset(node.taints)), node)
    first = list(shapes.values())[:MOST_SHAPES]
    return {node.name: _smallest(cluster, more, node) for node in first}


def _size(shape: Resources) -> tuple[object, ...]:
    """Three digits of memory and cores: no two machines of one kind have the same to the byte."""
    return f"{shape.memory:.2e}", f"{shape.cores:.2e}", shape.gpus


def _times(tokens: Tokens, factor: float) -> Tokens:
    return Tokens(
        None if tokens.generation is None else tokens.generation * factor,
        None if tokens.total is None else tokens.total * factor,
    )


def _with_adapters(seen: Seen, factor: float) -> Seen:
    pools = tuple(
        Pool(
            pool.slot_kind,
            math.ceil(pool.used * factor),
            math.ceil(pool.waiting * factor),
            pool.per_replica,
        )
        for pool in seen.load.pools
    )
    distinct = seen.load.distinct
    more = None if distinct is None else math.ceil(distinct * factor)
    return replace(seen, load=replace(seen.load, pools=pools, distinct=more))


def _with_nodes(cluster: Cluster, like: Node, count: int) -> Cluster:
    inventory = cluster.inventory
    if inventory is None:
        named = frozenset(resource for resource in RESOURCES if like.allocatable.of(resource))
        inventory = Inventory((), named)
    taken = {node.name for node in inventory.nodes}
    added: list[Node] = []
    number = 0
    while len(added) < count:
        number += 1
        its_name = f"{like.name}+{number}"
        if its_name not in taken:
            added.append(Node(its_name, like.allocatable, labels=like.labels, taints=like.taints))
    return replace(cluster, inventory=replace(inventory, nodes=(*inventory.nodes, *added)))


def _smallest(cluster: Cluster, more: Mapping[str, int], like: Node) -> int | None:
    """The smallest number of nodes with which nothing stays out: halved again and again."""
    # Each replica alone on a node needs no more nodes than this.
    most = min(
        sum(count * cluster.cards[model].nodes_per_replica for model, count in more.items()),
        MOST_NODES,
    )
    if not _all_fit(_with_nodes(cluster, like, most), more):
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if _all_fit(_with_nodes(cluster, like, middle), more):
            high = middle
        else:
            low = middle + 1
    return low


def _all_fit(cluster: Cluster, more: Mapping[str, int]) -> bool:
    return not any(Planner(cluster).place_together(more).values())


def _node(cluster: Cluster, name: str) -> tuple[Inventory, Node]:
    if cluster.inventory is None:
        raise WhatIfError("inventory: wanted nodes")
    for node in cluster.inventory.nodes:
        if node.name == name:
            return cluster.inventory, node
    known = ", ".join(node.name for node in cluster.inventory.nodes)
    raise WhatIfError(f"no node {name!r}; known: {known}")

"""Clusters as a person would jot them down, and answers told in the same way.

    nodes    a 4g 8c other=1g+2c: batch=2 chat=1
    cards    chat gold 1g 2c owner=search min=1 max=3 nodes=2
    quotas   search 4g replicas=3

`g`, `c` and `m` are gpus, cores and GiB of memory. A class of `-` is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from exporter.cluster import Card, Cluster, Inventory, Node, Quota, Resources, Unplanned
from exporter.planning.headroom import Headroom, Planner
from exporter.planning.placing import Placement

RANKS = {"gold": 100, "standard": 50, "batch": 0, "-": None}
_UNITS = {"g": ("gpus", 1000), "c": ("cores", 1000), "m": ("memory", 2**30)}


def cluster(
    nodes: str, cards: str, quotas: str = "", current: Mapping[str, int] | None = None
) -> Cluster:
    """The cluster that the lines describe."""
    parsed = [_card(line) for line in _lines(cards)]
    named: set[str] = set()
    return Cluster(
        cards={card.model: card for card in parsed},
        inventory=Inventory(
            tuple(_node(line, named) for line in _lines(nodes)), named=frozenset(named)
        ),
        current=current or {},
        quotas=dict(_quota(line) for line in _lines(quotas)),
    )


def first_model(cards: str) -> str:
    """The model of the first line."""
    return _lines(cards)[0].split()[0]


def told(room: Headroom) -> str:
    """`free/preempting`, with a `+` where counting stopped at the limit."""
    preempting = "-" if room.preempting is None else str(room.preempting)
    return f"{room.free}/{preempting}{'+' if room.limited else ''}"


def stops(placement: Placement) -> str:
    """`1 batch on a (2 left), 1 embed on b (0 left, below min)`."""
    return ", ".join(
        f"{stop.count} {stop.model} on {stop.node} "
        f"({stop.keeps} left{', below min' if stop.below_min else ''})"
        for stop in placement.stops
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _amounts(words: list[str]) -> dict[str, int]:
    found = {}
    for word in words:
        name, scale = _UNITS[word[-1]]
        found[name] = round(float(word[:-1]) * scale)
    return found


def _node(line: str, named: set[str]) -> Node:
    head, _, tail = line.partition(":")
    name, *words = head.split()
    other: dict[str, int] = {}
    if words and words[-1].startswith("other="):
        other = _amounts(words.pop().removeprefix("other=").split("+"))
    allocatable = _amounts(words)
    named.update(allocatable)
    pairs = (word.split("=") for word in tail.split())
    replicas = {model: int(count) for model, count in pairs}
    return Node(name, Resources(**allocatable), replicas, Resources(**other))


def _card(line: str) -> Card:
    model, class_name, *words = line.split()
    amounts = [word for word in words if "=" not in word]
    settings = dict(word.split("=") for word in words if "=" in word)
    return Card(
        model=model,
        rank=RANKS[class_name],
        class_name="" if class_name == "-" else class_name,
        owner=settings.get("owner", ""),
        request=Resources(**_amounts(amounts)),
        nodes_per_replica=int(settings.get("nodes", "1")),
        min_replicas=int(settings.get("min", "0")),
        max_replicas=int(settings["max"]) if "max" in settings else None,
    )


def _quota(line: str) -> tuple[str, Quota]:
    owner, *words = line.split()
    replicas = None
    if words[-1].startswith("replicas="):
        replicas = int(words.pop().removeprefix("replicas="))
    return owner, Quota(replicas=replicas, **_amounts(words))


def headroom(cluster: Cluster, model: str, limit: int | None = None) -> Headroom | Unplanned:
    """The headroom of one model."""
    return Planner(cluster).headroom(model, limit)


def place(cluster: Cluster, model: str, more: int) -> Placement:
    """More replicas of one model."""
    return Planner(cluster).place(model, more)


def place_together(cluster: Cluster, more: Mapping[str, int]) -> dict[str, int]:
    """More replicas of several models."""
    return Planner(cluster).place_together(more)

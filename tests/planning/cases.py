"""One case of headroom: a cluster, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from exporter.cluster import Cluster
from tests.planning.notation import cluster


@dataclass(frozen=True)
class Case:
    """A cluster, and the answers about the model of its first card."""

    title: str
    nodes: str
    cards: str
    room: str
    """`free/preempting`, or why it is not told."""
    more: int = 0
    """Replicas to place, the stops being those for them."""
    stops: str = ""
    blocked: str = ""
    """What stops the last of `more`; all before it fit."""
    quotas: str = ""
    current: dict[str, int] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        return cluster(self.nodes, self.cards, self.quotas, self.current)

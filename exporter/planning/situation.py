"""All that plans are made of, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from exporter.cluster import Card, Cluster, placed
from exporter.planning.demand import Seen
from exporter.planning.needed import Measurement


@dataclass(frozen=True, slots=True)
class Situation:
    """The cluster, what replicas were measured to serve, and what was seen of the load."""

    cluster: Cluster
    measurements: Mapping[str, Measurement] = field(default_factory=dict)
    """In force, by model."""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    """By model; nothing of models that no target serves."""
    at: float = 0.0
    """Unix time, seconds."""

    @property
    def models(self) -> tuple[str, ...]:
        """All models that have a card or a target, in order."""
        return tuple(sorted(self.cluster.cards.keys() | self.seen.keys()))

    def card(self, model: str) -> Card:
        """The model's card, or one that declares nothing."""
        return self.cluster.cards.get(model) or Card(model)


def with_seen(situation: Situation, seen: Mapping[str, Seen], at: float) -> Situation:
    """The situation with what was seen of the fleet.

    Of each model as many replicas are current as are placed or were discovered, if more: one that
    does not answer still holds its capacity. Where the inventory tells states it knows better: a
    replica that drains may answer still, and is not current.
    """
    cluster = situation.cluster
    states = cluster.inventory.states if cluster.inventory is not None else None
    current = {
        model: max(
            placed(cluster, model),
            seen[model].load.ready + seen[model].load.unread
            if model in seen and (states is None or model not in states)
            else 0,
        )
        for model in cluster.cards.keys() | seen.keys()
    }
    return replace(situation, cluster=replace(cluster, current=current), seen=seen, at=at)

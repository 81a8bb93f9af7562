"""The plans of all models at one moment, and what owners and nodes have left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from exporter.cluster import RESOURCES, Cluster, Resources
from exporter.planning.headroom import NodeRoom, Planner
from exporter.planning.plans import Plan, plan
from exporter.planning.situation import Situation


@dataclass(frozen=True, slots=True)
class Share:
    """One resource of an owner's quota. `resource` may also be `replicas`."""

    owner: str
    resource: str
    quota: int
    """Bytes, thousandths of a core or GPU, or replicas."""
    used: int
    """What the owner's current replicas hold, in the same unit."""


@dataclass(frozen=True, slots=True)
class Planning:
    """All plans, over one situation."""

    situation: Situation
    models: Mapping[str, Plan]
    unplaced: Mapping[str, int]
    """What of each model's `more` finds no room when all are placed together; of models whose
    `more` and headroom are known."""
    shares: tuple[Share, ...]
    nodes: tuple[NodeRoom, ...]
    named: tuple[str, ...]
    """The resources that some node names."""
    planner: Planner = field(repr=False, compare=False)


def plan_all(situation: Situation) -> Planning:
    """Plans every model of the situation."""
    cluster = situation.cluster
    planner = Planner(cluster)
    models = {model: plan(planner, situation, model) for model in situation.models}
    more = {
        model: one.more
        for model, one in models.items()
        if one.more is not None and one.headroom is not None
    }
    inventory = cluster.inventory
    return Planning(
        situation=situation,
        models=models,
        unplaced=planner.place_together(more),
        shares=tuple(_shares(cluster)),
        nodes=planner.rooms(),
        named=tuple(
            name for name in RESOURCES if inventory is not None and name in inventory.named
        ),
        planner=planner,
    )


def _shares(cluster: Cluster) -> Iterable[Share]:
    for owner, quota in sorted(cluster.quotas.items()):
        held, count = Resources(), 0
        for model, card in cluster.cards.items():
            if card.owner == owner:
                current = cluster.current_of(model)
                held, count = held + card.request.times(current), count + current
        for name in RESOURCES:
            limit = quota.of(name)
            if limit is not None:
                yield Share(owner, name, limit, held.of(name))
        if quota.replicas is not None:
            yield Share(owner, "replicas", quota.replicas, count)


def base(resource: str, amount: int) -> float:
    """An amount in base units: bytes, cores, GPUs or replicas."""
    return amount / 1000 if resource in ("cores", "gpus") else amount

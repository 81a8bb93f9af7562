"""The cluster as it stands in the settings: cards, quotas, nodes and what is placed on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from exporter.cluster import RESOURCES, Card, Cluster, Inventory, Node, Priority, Quota, Resources
from exporter.inventory.ranks import rank_of
from exporter.settings import CardSettings, ClassRank, NodeSettings, QuotaSettings, Settings


class Declared(Protocol):
    """What operators declare, wherever it stands."""

    @property
    def classes(self) -> Mapping[str, ClassRank]:
        """Ranks by class."""

    @property
    def owners(self) -> Mapping[str, QuotaSettings]:
        """Quotas by owner."""

    @property
    def models(self) -> Mapping[str, CardSettings]:
        """Cards by model."""


def cluster(settings: Settings) -> Cluster:
    """Cards, quotas and nodes. Without nodes there is no inventory, rather than an empty one."""
    return declared(settings, inventory(settings.inventory.nodes))


def declared(settings: Declared, inventory: Inventory | None) -> Cluster:
    """The cards and quotas that are declared, over this inventory."""
    priorities = inventory.priorities if inventory is not None else None
    return Cluster(
        cards={
            model: _card(settings, model, card, priorities)
            for model, card in settings.models.items()
        },
        inventory=inventory,
        quotas={
            owner: Quota(quota.memory, quota.cores, quota.gpus, quota.replicas)
            for owner, quota in settings.owners.items()
        },
    )


class StaticInventory:
    """The nodes of the settings, which are always known."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    async def read(self, declared: Declared) -> Inventory:
        """What the settings say."""
        del declared
        return self._inventory

    async def close(self) -> None:
        """Nothing is held open."""


def request_of(model: str, card: CardSettings) -> Card:
    """A card that says no more than what a replica asks for."""
    return Card(
        model,
        request=Resources(card.memory, card.cores, card.gpus),
        nodes_per_replica=card.nodes_per_replica,
    )


def _card(
    settings: Declared,
    model: str,
    card: CardSettings,
    priorities: Mapping[str, Priority] | None,
) -> Card:
    rank, preempts = None, True
    if card.class_name is not None:
        rank, preempts = rank_of(settings.classes[card.class_name], priorities)
    return replace(
        request_of(model, card),
        rank=rank,
        preempts=preempts,
        class_name=card.class_name or "",
        owner=card.owner or "",
        min_replicas=card.min_replicas,
        max_replicas=card.max_replicas,
        spare_replicas=card.spare_replicas,
        utilization=card.utilization,
        target=card.target_tokens_per_second,
        profile=card.profile,
        reserve=card.reserve,
        where=card.where,
    )


def inventory(nodes: Mapping[str, NodeSettings]) -> Inventory | None:
    """The nodes and what is placed on them; None without nodes."""
    if not nodes:
        return None
    named = frozenset(
        name
        for name in RESOURCES
        if any(getattr(node, name) is not None for node in nodes.values())
    )
    return Inventory(
        tuple(
            Node(
                name,
                Resources(node.memory or 0, node.cores or 0, node.gpus or 0),
                dict(node.replicas),
                labels=node.labels,
                taints=node.kept_taints,
            )
            for name, node in sorted(nodes.items())
        ),
        named,
    )

"""The cluster as it stands in the settings: cards, quotas, nodes and what is placed on them."""

from __future__ import annotations

from exporter.cluster import RESOURCES, Card, Cluster, Inventory, Node, Quota, Resources
from exporter.settings import CardSettings, NodeSettings, Settings


def cluster(settings: Settings) -> Cluster:
    """Cards, quotas and nodes. Without nodes there is no inventory, rather than an empty one."""
    nodes = settings.inventory.nodes
    return Cluster(
        cards={model: _card(settings, model, card) for model, card in settings.models.items()},
        inventory=_inventory(nodes) if nodes else None,
        quotas={
            owner: Quota(quota.memory, quota.cores, quota.gpus, quota.replicas)
            for owner, quota in settings.owners.items()
        },
    )


def _card(settings: Settings, model: str, card: CardSettings) -> Card:
    return Card(
        model=model,
        rank=settings.classes[card.class_name] if card.class_name is not None else None,
        class_name=card.class_name or "",
        owner=card.owner or "",
        request=Resources(card.memory, card.cores, card.gpus),
        nodes_per_replica=card.nodes_per_replica,
        min_replicas=card.min_replicas,
        max_replicas=card.max_replicas,
        spare_replicas=card.spare_replicas,
        utilization=card.utilization,
        target=card.target_tokens_per_second,
        profile=card.profile,
    )


def _inventory(nodes: dict[str, NodeSettings]) -> Inventory:
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
            )
            for name, node in sorted(nodes.items())
        ),
        named,
    )

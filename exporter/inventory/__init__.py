"""Ways to know the cluster, one file each, and which of them the settings ask for."""

from __future__ import annotations

from exporter.inventory.kept import InventorySource
from exporter.inventory.kubernetes import KubernetesSource
from exporter.inventory.static import StaticInventory, inventory
from exporter.settings import InventorySettings


def source_of(settings: InventorySettings) -> InventorySource | None:
    """The source that the settings ask for; None where they ask for none.

    Raises InventoryError where an optional package is missing.
    """
    if settings.kubernetes is not None:
        return KubernetesSource(settings.kubernetes)
    found = inventory(settings.nodes)
    return StaticInventory(found) if found is not None else None

"""Ways to know the cluster, one file each, and which of them the settings ask for."""

from __future__ import annotations

from exporter.inventory.kept import InventorySource
from exporter.inventory.kubernetes import PATIENCE_SECONDS, KubernetesSource
from exporter.inventory.static import StaticInventory, inventory
from exporter.settings import InventorySettings


def source_of(
    settings: InventorySettings, patience: float = PATIENCE_SECONDS
) -> InventorySource | None:
    """The source that the settings ask for; None where they ask for none.

    `patience`: seconds for which a reading waits for a first answer. Raises InventoryError where an
    optional package is missing.
    """
    if settings.kubernetes is not None:
        return KubernetesSource(settings.kubernetes, patience=patience)
    found = inventory(settings.nodes)
    return StaticInventory(found) if found is not None else None

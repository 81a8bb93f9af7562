"""An inventory that stays as it was while it cannot be read."""

from __future__ import annotations

import logging
from typing import Protocol

from exporter.cluster import Inventory
from exporter.inventory.static import Declared

LOG = logging.getLogger(__name__)


class InventoryError(Exception):
    """The inventory could not be read. The text says why, without anything confidential."""


class InventorySource(Protocol):
    """A way to know the cluster."""

    async def read(self, declared: Declared) -> Inventory:
        """All nodes, and everything placed on them, for what is declared of models.

        Raises InventoryError.
        """
        ...

    async def close(self) -> None:
        """Ends what it holds open."""
        ...


class KeptInventory:
    """What a source last told. Losing the source never empties the cluster."""

    def __init__(self, source: InventorySource) -> None:
        self._source = source
        self._failing = False
        self.last: Inventory | None = None
        """None until the first success."""
        self.last_success: float | None = None
        """Unix time, seconds."""

    async def close(self) -> None:
        """Ends the source."""
        await self._source.close()

    async def change(self, source: InventorySource) -> None:
        """Reads another source from now on. What the one before told holds until then."""
        await self._source.close()
        self._source = source

    async def refresh(self, now: float, declared: Declared) -> Inventory | None:
        """Reads the source at `now` (unix seconds). Gives what was last told."""
        try:
            self.last = await self._source.read(declared)
        except InventoryError as error:
            if not self._failing:
                LOG.warning("inventory cannot be read", extra={"detail": str(error)})
            self._failing = True
            return self.last
        if self._failing:
            LOG.info("inventory is read again")
        self._failing = False
        self.last_success = now
        return self.last

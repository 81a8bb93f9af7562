"""An inventory whose source comes and goes."""

from __future__ import annotations

import pytest

from exporter.cluster import Inventory, Node, Resources
from exporter.inventory.kept import InventoryError, KeptInventory
from exporter.inventory.static import Declared
from exporter.settings import Settings

NOTHING = Settings()


class Source:
    """Tells what it is given, or fails."""

    def __init__(self) -> None:
        self.found: Inventory | None = None
        self.closed = False

    async def close(self) -> None:
        self.closed = True

    async def read(self, declared: Declared) -> Inventory:
        del declared
        if self.found is None:
            raise InventoryError("nobody answers")
        return self.found


def nodes(*names: str) -> Inventory:
    return Inventory(tuple(Node(name, Resources()) for name in names), frozenset())


async def test_what_is_lost_stays_as_it_was_and_tells_its_age(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    source = Source()
    kept = KeptInventory(source)
    assert await kept.refresh(10.0, NOTHING) is None
    assert (kept.last, kept.last_success) == (None, None)
    source.found = nodes("a", "b")
    assert await kept.refresh(20.0, NOTHING) == nodes("a", "b")
    source.found = None
    for now in (30.0, 40.0):
        assert await kept.refresh(now, NOTHING) == nodes("a", "b")
    assert kept.last_success == 20.0
    source.found = nodes()
    assert await kept.refresh(50.0, NOTHING) == nodes()
    assert kept.last_success == 50.0
    told = [record.message for record in caplog.records]
    assert told == [
        "inventory cannot be read",
        "inventory is read again",
        "inventory cannot be read",
        "inventory is read again",
    ]


async def test_another_source_takes_over_when_it_tells_something() -> None:
    old, new = Source(), Source()
    old.found = nodes("a")
    kept = KeptInventory(old)
    await kept.refresh(10.0, NOTHING)
    await kept.change(new)
    assert (old.closed, new.closed) == (True, False)
    assert await kept.refresh(20.0, NOTHING) == nodes("a")
    assert kept.last_success == 10.0
    new.found = nodes("b")
    assert await kept.refresh(30.0, NOTHING) == nodes("b")
    assert kept.last_success == 30.0

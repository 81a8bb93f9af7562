"""Classes that contradict the cluster are told of, and inventories end when they are replaced."""

from __future__ import annotations

from typing import Any

import pytest

from exporter import live as live_module
from exporter.cluster import Inventory, Node, Priority, Resources
from exporter.current import CurrentFleet
from exporter.exposition.fleet import Exposition
from exporter.inventory.ranks import Mistakes
from exporter.inventory.static import Declared
from exporter.live import LivePlans
from exporter.self_metrics import SelfMetrics
from exporter.settings import InventorySettings, Settings

CLASSES = {
    "gold": {"priority_class": "high", "rank": 1},
    "batch": {"priority_class": "low", "rank": 2},
    "lost": {"priority_class": "nowhere"},
}


class Source:
    """A cluster whose priority classes are given."""

    def __init__(self, priorities: dict[str, Priority]) -> None:
        self.priorities = priorities
        self.closed = False

    async def read(self, declared: Declared) -> Inventory:
        del declared
        node = Node("a", Resources(gpus=4000))
        return Inventory((node,), frozenset({"gpus"}), states={}, priorities=self.priorities)

    async def close(self) -> None:
        self.closed = True


async def test_mistakes_are_logged_once_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sources: list[Source] = []

    def source_of(settings: InventorySettings) -> Source | None:
        if settings.kubernetes is None:
            return None
        sources.append(Source({"high": Priority(1000), "low": Priority(10)}))
        return sources[-1]

    monkeypatch.setattr(live_module, "source_of", source_of)
    configured: dict[str, Any] = {
        "classes": CLASSES,
        "models": {"chat": {"class": "gold", "gpus": 1}, "lost": {"class": "lost", "gpus": 1}},
        "inventory": {"kubernetes": {}},
    }
    metrics = SelfMetrics(lambda: 0)
    told: list[Mistakes | None] = []

    def on_plan(seconds: float | None, read: float | None, mistakes: Mistakes | None) -> None:
        told.append(mistakes)
        metrics.planned(seconds, read, mistakes)

    fleet = CurrentFleet(Exposition(0), 30.0, "here")
    plans = LivePlans(fleet, lambda: Settings(**configured), on_plan)
    for _ in range(3):
        planning = await plans.step()
    assert told[-1] == Mistakes(("lost",), (("gold", "batch"),))
    assert planning.models["chat"].card.rank == 1000
    assert planning.models["lost"].card.rank is None
    assert [record.message for record in caplog.records] == [
        "the PriorityClass of a class is not there",
        "ranks contradict the order of PriorityClasses",
    ]
    text = metrics.text(False).decode()
    assert 'lora_exporter_class_mistakes{reason="missing"} 1.0' in text
    assert 'lora_exporter_class_mistakes{reason="order"} 1.0' in text

    configured["inventory"] = {"kubernetes": {"gpu_resource": "amd.com/gpu"}}
    await plans.step()
    assert [source.closed for source in sources] == [True, False]
    configured["inventory"] = {"nodes": {"a": {"gpus": 1}}}
    await plans.step()
    assert told[-1:] == [None]
    assert [source.closed for source in sources] == [True, True]
    assert "class_mistakes{" not in metrics.text(False).decode()
    await plans.close()

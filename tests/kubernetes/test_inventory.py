"""A cluster as an inventory, read from a fake API server by the real client."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from exporter.cluster import Cluster, Inventory, Resources, States, Taint
from exporter.documents import ConfigError
from exporter.inventory import source_of
from exporter.inventory.kept import InventoryError, KeptInventory
from exporter.inventory.kubernetes import KubernetesSource
from exporter.inventory.ranks import mistakes
from exporter.inventory.static import declared
from exporter.kubernetes.mirror import Pace
from exporter.planning.headroom import Headroom, Planner
from exporter.planning.situation import Situation
from exporter.service import Service
from exporter.settings import InventorySettings, Settings
from exporter.settings.cluster import KubernetesInventory
from exporter.snapshot import Snapshot, situation_of, take
from tests.kubernetes.fake import FakeApi, failure, kubeconfig, kubernetes
from tests.kubernetes.objects import container, daemon, mirror_pod, node, pod, priority_class
from tests.support.programs import until

QUICK = Pace(answer=2.0, first_delay=0.01, longest_delay=0.05, steady=0.2)
LABEL = "lora-exporter/model"
CARDS: dict[str, Any] = {
    "classes": {"gold": {"priority_class": "high"}, "batch": {"priority_class": "low"}},
    "models": {
        "chat": {"class": "gold", "gpus": 1, "memory": "40GiB", "cores": 4},
        "batch-llm": {"class": "batch", "gpus": 2, "memory": "80GiB", "cores": 8},
        "wide": {"gpus": 16, "nodes_per_replica": 2},
    },
}
GiB = 2**30


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with kubernetes() as running:
        running.put("priorityclasses", priority_class("high", 1000))
        running.put("priorityclasses", priority_class("low", 10))
        yield running


Read = Callable[..., Awaitable[Inventory]]


@pytest.fixture
async def source(api: FakeApi, tmp_path: Path) -> AsyncIterator[KubernetesSource]:
    access = KubernetesInventory(kubeconfig_file=kubeconfig(tmp_path, api))
    one = KubernetesSource(access, QUICK)
    yield one
    await one.close()


@pytest.fixture
def read(source: KubernetesSource) -> Read:
    async def now(**configured: Any) -> Inventory:
        return await source.read(Settings(**{**CARDS, **configured}))

    return now


def replica(name: str, model: str, on: str | None, gpus: str = "1", **keys: Any) -> dict[str, Any]:
    asked = container(gpu=gpus, memory="40Gi", cpu="4")
    return pod(name, asked, node=on, labels={LABEL: model}, **keys)


def cluster_of(inventory: Inventory, **configured: Any) -> Cluster:
    return declared(Settings(**{**CARDS, **configured}), inventory)


def room(inventory: Inventory, model: str, **configured: Any) -> tuple[int, int | None]:
    found = Planner(cluster_of(inventory, **configured)).headroom(model)
    assert isinstance(found, Headroom)
    return found.free, found.preempting


async def test_what_nodes_have_and_what_others_hold_of_it(api: FakeApi, read: Read) -> None:
    api.put("nodes", node("a"))
    api.put("nodes", node("b", gpu="none", cpu="4", memory="16Gi"))
    api.put("pods", replica("chat-0", "chat", "a", priority=1000))
    api.put("pods", daemon("node-exporter", "a", container(cpu="100m", memory="180Mi")))
    api.put("pods", mirror_pod("kube-apiserver", container(cpu="250m"), node="b"))
    api.put("pods", pod("job", container(gpu="2"), node="a", phase="Pending", ready=False))
    api.put("pods", pod("done", container(gpu="4"), node="a", phase="Succeeded", ready=False))
    api.put("pods", pod("failed", container(gpu="4"), node="a", phase="Failed", ready=False))
    api.put("pods", pod("unbound", container(gpu="4"), node=None, phase="Pending", ready=False))
    found = await read()
    a, b = found.nodes
    assert a.allocatable == Resources(1056 * GiB, 95890, 8000)
    assert b.allocatable == Resources(16 * GiB, 4000, 0)
    assert a.replicas == {"chat": 1}
    assert a.other == Resources(180 * 2**20, 100, 2000)
    assert b.other == Resources(0, 250, 0)
    assert room(found, "chat") == (5, 0)
    # what no node has there is none of
    assert found.named == {"memory", "cores", "gpus"}


async def test_pods_that_end_hold_what_they_hold_until_they_are_gone(
    api: FakeApi, read: Read
) -> None:
    api.put("nodes", node("a"))
    api.put("pods", replica("chat-0", "chat", "a", priority=1000))
    api.put("pods", replica("chat-1", "chat", "a", priority=1000, ready=False, phase="Pending"))
    api.put("pods", replica("chat-2", "chat", "a", priority=1000, ready=False, restarts=3))
    api.put("pods", replica("chat-3", "chat", "a", priority=1000, terminating=True))
    api.put("pods", replica("chat-4", "chat", None, ready=False, phase="Pending"))
    found = await read()
    assert found.states == {"chat": States(ready=1, starting=1, draining=1)}
    assert cluster_of(found).current_of("chat") == 3
    assert room(found, "chat") == (4, 0)
    api.delete("pods", "chat-3", "prod")

    async def gone() -> bool:
        return room(await read(), "chat") == (5, 0)

    await until(gone)


async def test_nodes_that_take_no_more(api: FakeApi, read: Read) -> None:
    for name, keys in (
        ("cordoned", {"cordoned": True}),
        ("lost", {"ready": "Unknown"}),
        ("broken", {"ready": "False"}),
        ("new", {"ready": None}),
        ("open", {}),
    ):
        api.put("nodes", node(name, **keys))
        api.put("pods", replica(f"chat-{name}", "chat", name, priority=1000))
    api.put("pods", replica("chat-nowhere", "chat", "removed", priority=1000))
    found = await read()
    assert [one.name for one in found.nodes] == ["open"]
    # their replicas hold capacity all the same
    assert cluster_of(found).current_of("chat") == 6
    assert room(found, "chat") == (7, 0)


async def test_taints_and_selectors(api: FakeApi, read: Read) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    soft = {"key": "spot", "effect": "PreferNoSchedule"}
    api.put("nodes", node("a", labels={"gpu": "h100"}, taints=[taint]))
    api.put("nodes", node("b", labels={"gpu": "l4"}, taints=[taint], gpu="4"))
    api.put("nodes", node("c", taints=[soft], gpu="1"))
    tolerant = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    picky = {"node_selector": {"gpu": "h100"}, "tolerations": tolerant}
    models = {
        "anywhere": {"gpus": 1},
        "tolerant": {"gpus": 1, "tolerations": tolerant},
        "picky": {"gpus": 1, **picky},
    }
    found = await read(models=models)
    assert room(found, "anywhere", models=models) == (1, 0)
    assert room(found, "tolerant", models=models) == (13, 0)
    assert room(found, "picky", models=models) == (8, 0)
    # only labels that a card selects by are kept
    assert [dict(one.labels) for one in found.nodes] == [{"gpu": "h100"}, {"gpu": "l4"}, {}]
    assert found.nodes[0].taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)
    assert found.nodes[2].taints == ()


async def test_ranks_are_the_values_of_priority_classes(api: FakeApi, read: Read) -> None:
    api.put("nodes", node("a", gpu="4"))
    api.put("pods", replica("batch-0", "batch-llm", "a", "2", priority=10))
    api.put("pods", replica("stranger", "batch-llm", "a", "2", priority=5000))
    found = await read()
    cards = cluster_of(found).cards
    assert (cards["chat"].rank, cards["batch-llm"].rank, cards["wide"].rank) == (1000, 10, None)
    # the second has another priority than its class, so it is current, and never stopped
    assert cluster_of(found).current_of("batch-llm") == 2
    assert room(found, "chat") == (0, 2)


async def test_pods_without_a_class_of_ours_are_never_stopped(api: FakeApi, read: Read) -> None:
    api.put("nodes", node("a", gpu="4"))
    api.put("pods", pod("other", container(gpu="2"), node="a", priority=-5))
    api.put("pods", replica("unknown-0", "no-card", "a", "2", priority=-5))
    found = await read()
    assert room(found, "chat") == (0, 0)
    assert found.nodes[0].replicas == {"no-card": 1}
    assert cluster_of(found).current_of("no-card") == 1


async def test_a_class_that_never_preempts(api: FakeApi, read: Read) -> None:
    api.put("nodes", node("a", gpu="2"))
    api.put("pods", replica("batch-0", "batch-llm", "a", "2", priority=10))
    assert room(await read(), "chat") == (0, 2)
    api.put("priorityclasses", {**priority_class("high", 1000), "preemptionPolicy": "Never"})

    async def never() -> bool:
        return room(await read(), "chat") == (0, 0)

    await until(never)


async def test_a_priority_class_that_is_not_there_and_an_order_that_contradicts(
    api: FakeApi, read: Read
) -> None:
    classes = {
        "gold": {"priority_class": "high", "rank": 1},
        "batch": {"priority_class": "low", "rank": 2},
        "lost": {"priority_class": "nowhere", "rank": 3},
    }
    models = {"chat": {"class": "gold", "gpus": 1}, "x": {"class": "lost", "gpus": 1}}
    found = await read(classes=classes, models=models)
    cards = cluster_of(found, classes=classes, models=models).cards
    assert (cards["chat"].rank, cards["x"].rank) == (1000, None)
    told = mistakes(Settings(classes=classes).classes, found.priorities)
    assert told is not None
    assert told.missing == ("lost",)
    assert told.order == (("gold", "batch"),)


async def test_priority_classes_are_only_asked_for_where_classes_name_them(
    api: FakeApi, read: Read
) -> None:
    plain = {"classes": {"gold": 100, "batch": 0}}
    api.put("nodes", node("a"))
    assert (await read(**plain)).priorities is None
    assert not any("priorityclasses" in path for _, path, _ in api.requests)


async def test_a_replica_over_nodes_is_ready_when_all_its_parts_are(
    api: FakeApi, read: Read
) -> None:
    for name in "ab":
        api.put("nodes", node(name))
    for number, (on, ready) in enumerate((("a", True), ("b", False))):
        api.put("pods", replica(f"wide-{number}", "wide", on, "8", ready=ready))
    found = await read()
    assert found.states == {"wide": States(ready=0, starting=1)}
    assert cluster_of(found).current_of("wide") == 1
    assert room(found, "wide") == (0, None)


async def test_a_pod_that_asks_for_more_than_its_card_says(api: FakeApi, read: Read) -> None:
    api.put("nodes", node("a"))
    api.put("pods", replica("chat-0", "chat", "a", "3", priority=1000))
    api.put("pods", replica("batch-0", "batch-llm", "a", "1", priority=10))
    found = await read()
    # 3 by the pod, 2 by the card
    assert room(found, "chat")[0] == 3


async def test_what_is_lost_stays_and_its_age_grows(api: FakeApi, source: KubernetesSource) -> None:
    async def refused(request: object) -> Any:
        del request
        return failure(503, "ServiceUnavailable")

    settings = Settings(**CARDS)
    kept = KeptInventory(source)
    api.put("nodes", node("a"))
    before = await kept.refresh(10.0, settings)
    assert before is not None
    api.always = {"list": refused, "watch": refused}
    api.cut()

    now = 10.0

    async def lost() -> bool:
        nonlocal now
        now += 1
        await kept.refresh(now, settings)
        return kept.last_success != now

    await until(lost)
    last, success = kept.last, kept.last_success
    assert last == before
    assert await kept.refresh(1000.0, settings) is last
    assert kept.last_success == success
    api.always = {}

    async def found() -> bool:
        await kept.refresh(2000.0, settings)
        return kept.last_success == 2000.0

    await until(found)


async def test_without_rights_the_error_says_which(api: FakeApi, read: Read) -> None:
    async def refused(request: Any) -> Any:
        return failure(403, "Forbidden") if "nodes" in request.path else await api.serve(request)

    api.always["list"] = refused
    with pytest.raises(InventoryError, match="nodes: status 403; wanted the right to list"):
        await read()


async def test_a_snapshot_keeps_all_of_it(api: FakeApi, read: Read) -> None:
    selecting = {
        **CARDS["models"],
        "picky": {"gpus": 1, "node_selector": {"zone": "x"}},
    }
    taint = {"key": "t", "value": "v", "effect": "NoExecute"}
    api.put("nodes", node("a", labels={"zone": "x"}, taints=[taint]))
    api.put("nodes", node("b", cordoned=True))
    api.put("pods", replica("chat-0", "chat", "b", priority=1000))
    api.put("pods", replica("chat-1", "chat", "a", priority=1000))
    found = await read(models=selecting)
    settings = Settings(**{**CARDS, "models": selecting})
    before = Situation(declared(settings, found), at=1000.0)
    wire = take(settings, before).model_dump_json(by_alias=True)
    assert situation_of(Snapshot.model_validate_json(wire)).cluster.inventory == found


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InventoryError, match="needs the extra kubernetes: pip install"):
        source_of(InventorySettings(kubernetes=KubernetesInventory()))


async def test_the_service_does_not_start_without_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    settings = Settings(
        web={"listen_address": "127.0.0.1:0"}, inventory={"kubernetes": KubernetesInventory()}
    )
    with pytest.raises(ConfigError, match="needs the extra kubernetes: pip install"):
        await Service(settings, lambda: settings).run()

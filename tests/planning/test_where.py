"""Nodes that a model's replicas may be placed on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.cluster import (
    Blocked,
    Card,
    Cluster,
    Inventory,
    Node,
    Resources,
    Taint,
    Toleration,
    Where,
)
from exporter.planning.headroom import Headroom, Planner
from exporter.planning.needed import Measurement
from exporter.planning.overall import plan_all
from exporter.planning.situation import Situation
from exporter.planning.whatif import helping_nodes, node_of, with_nodes
from tests.planning.notation import headroom, place

GPU = Resources(gpus=1000)
EVERYTHING = Toleration(None, None, None)


def node(name: str, gpus: int, *taints: Taint, **labels: str) -> Node:
    return Node(name, Resources(gpus=gpus * 1000), labels=labels, taints=taints)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key, value, effect)


def cluster(*nodes: Node, **cards: Card) -> Cluster:
    return Cluster(cards, Inventory(nodes, frozenset({"gpus"})))


def where(*tolerations: Toleration, **selector: str) -> Where:
    return Where(frozenset(selector.items()), frozenset(tolerations))


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration("k", "v", "NoSchedule"), True),
        (Toleration("k", "v", None), True),
        (Toleration("k", None, "NoSchedule"), True),
        (EVERYTHING, True),
        (Toleration(None, None, "NoSchedule"), True),
        (Toleration("other", None, None), False),
        (Toleration("k", "w", None), False),
        (Toleration("k", "", None), False),
        (Toleration("k", "v", "NoExecute"), False),
    ],
)
def test_what_a_toleration_covers(toleration: Toleration, covered: bool) -> None:
    assert toleration.covers(taint("k", "v")) is covered


def test_only_nodes_that_a_model_may_use_count() -> None:
    of = cluster(
        node("a", 4, zone="x"),
        node("b", 2, taint("gpu"), zone="x"),
        node("c", 1, taint("gpu"), taint("spot", effect="NoExecute")),
        node("d", 8, taint("slow", effect="PreferNoSchedule"), zone="y"),
        plain=Card("plain", request=GPU),
        zonal=Card("zonal", request=GPU, where=where(zone="x")),
        gpu=Card("gpu", request=GPU, where=where(Toleration("gpu", None, None))),
        zonal_gpu=Card("zonal_gpu", request=GPU, where=where(EVERYTHING, zone="x")),
        anywhere=Card("anywhere", request=GPU, where=where(EVERYTHING)),
        nowhere=Card("nowhere", request=GPU, where=where(zone="z")),
    )
    planner = Planner(of)

    def free(model: str) -> int:
        found = planner.headroom(model)
        assert isinstance(found, Headroom)
        return found.free

    assert {model: free(model) for model in of.cards} == {
        "plain": 12,
        "zonal": 4,
        "gpu": 14,
        "zonal_gpu": 6,
        "anywhere": 15,
        "nowhere": 0,
    }
    assert planner.place("nowhere", 1).blocked == (Blocked.NO_NODE,)


def test_the_nearest_node_is_one_that_may_be_used() -> None:
    of = cluster(
        node("a", 1, taint("gpu")),
        replace(node("b", 4), other=Resources(gpus=4000)),
        chat=Card("chat", request=Resources(gpus=2000)),
    )
    found = place(of, "chat", 1)
    assert found.nearest is not None
    assert (found.nearest.node, found.blocked) == ("b", (Blocked.GPUS,))


def test_victims_are_looked_for_where_the_model_may_run() -> None:
    low = Card("low", rank=0, request=GPU, where=where(EVERYTHING))
    of = cluster(
        replace(node("a", 1, taint("gpu")), replicas={"low": 1}),
        replace(node("b", 1), replicas={"low": 1}),
        low=low,
        chat=Card("chat", rank=1, request=GPU),
    )
    assert headroom(of, "chat") == Headroom(0, 1)
    (stop,) = place(of, "chat", 1).stops
    assert stop.node == "b"


def test_a_model_that_stops_none_is_stopped_all_the_same() -> None:
    of = cluster(
        replace(node("a", 2), replicas={"low": 1, "polite": 1}),
        low=Card("low", rank=0, request=GPU),
        polite=Card("polite", rank=1, request=GPU, preempts=False),
        chat=Card("chat", rank=1, request=GPU),
        gold=Card("gold", rank=2, request=GPU),
    )
    found = {model: headroom(of, model) for model in of.cards}
    assert found["polite"] == Headroom(0, 0)
    assert found["chat"] == Headroom(0, 1)
    assert found["gold"] == Headroom(0, 2)


def test_replicas_elsewhere_count_as_current_and_are_left_alone() -> None:
    of = cluster(
        node("a", 2),
        chat=Card("chat", rank=1, request=GPU, max_replicas=4),
        low=Card("low", rank=0, request=GPU),
    )
    assert of.inventory is not None
    of = replace(of, inventory=replace(of.inventory, elsewhere={"chat": 3, "low": 5}))
    assert of.current_of("chat") == 3
    assert headroom(of, "chat") == Headroom(1, 0)


def test_more_nodes_are_like_those_that_there_are() -> None:
    full = Resources(gpus=2000)
    of = cluster(
        replace(node("a", 2, taint("gpu"), zone="x", rack="a"), other=full),
        replace(node("b", 2, taint("gpu"), zone="x", rack="b"), other=full),
        replace(node("c", 2, zone="x", rack="c"), other=full),
        chat=Card(
            "chat",
            request=GPU,
            target=3.0,
            where=where(Toleration("gpu", None, None), zone="x"),
        ),
    )
    known = Situation(of, {"chat": Measurement("p", 1.0)})
    # of nodes that differ in nothing that a card looks at, one stands for all
    assert helping_nodes(plan_all(known)) == {"a": 2, "c": 2}
    more = plan_all(with_nodes(known, node_of(known, "a"), 1))
    assert more.unplaced == {"chat": 1}
    empty = plan_all(with_nodes(known, Node("new", Resources(gpus=8000)), 1))
    assert empty.unplaced == {"chat": 3}


def test_machines_of_one_kind_are_one_shape() -> None:
    def machine(name: str, memory: int) -> Node:
        return Node(name, Resources(memory, 95_890, 1000), other=Resources(gpus=1000))

    of = cluster(
        *(machine(f"big-{n}", 1_082_130_432_000 + n * 4096) for n in range(20)),
        machine("small", 541_065_216_000),
        chat=Card("chat", request=GPU, target=3.0),
    )
    known = Situation(of, {"chat": Measurement("p", 1.0)})
    assert helping_nodes(plan_all(known)) == {"big-0": 3, "small": 3}

"""Headroom, who is stopped and what blocks: the worked example, and a table of cases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from exporter.cluster import Blocked, Cluster, Quota, Resources, Unplanned
from exporter.planning.headroom import Headroom, cannot_tell
from exporter.planning.placing import Nearest, Stop
from tests.planning.notation import (
    cluster,
    first_model,
    headroom,
    place,
    place_together,
    stops,
    told,
)

EXAMPLE = cluster(
    nodes="""
        a 4g: batch-llm=2 chat=1
        b 2g: embed=1 batch-llm=1
        c 1g
    """,
    cards="""
        chat gold 1g
        embed standard 1g
        batch-llm batch 1g
        big gold 2g
    """,
)


def room_of(of: Cluster, model: str, limit: int | None = None) -> str:
    room = headroom(of, model, limit)
    return told(room) if isinstance(room, Headroom) else room.value


@pytest.mark.parametrize(
    ("model", "expected"),
    [("chat", "2/4"), ("embed", "2/3"), ("batch-llm", "2/0"), ("big", "0/2")],
)
def test_worked_example_headroom(model: str, expected: str) -> None:
    assert room_of(EXAMPLE, model) == expected


@pytest.mark.parametrize(
    ("model", "more", "preempted"),
    [
        ("chat", 2, {}),
        ("chat", 3, {"batch-llm": 1}),
        ("chat", 6, {"batch-llm": 3, "embed": 1}),
        ("embed", 5, {"batch-llm": 3}),
        ("batch-llm", 2, {}),
        ("big", 1, {"batch-llm": 1}),
        ("big", 2, {"batch-llm": 2, "embed": 1}),
    ],
)
def test_worked_example_stops(model: str, more: int, preempted: dict[str, int]) -> None:
    placement = place(EXAMPLE, model, more)
    assert (placement.placed, placement.blocked, placement.nearest) == (more, (), None)
    assert placement.preempted == preempted


def test_worked_example_stops_on_the_first_of_two_equal_nodes() -> None:
    placement = place(EXAMPLE, "chat", 3)
    assert placement.stops == (Stop("batch-llm", "a", count=1, keeps=2, below_min=False),)


@pytest.mark.parametrize(
    ("model", "more", "placed"),
    [("chat", 7, 6), ("embed", 6, 5), ("batch-llm", 3, 2), ("big", 3, 2)],
)
def test_worked_example_blocked(model: str, more: int, placed: int) -> None:
    placement = place(EXAMPLE, model, more)
    assert (placement.placed, placement.blocked) == (placed, (Blocked.GPUS,))


@dataclass(frozen=True)
class Case:
    """A cluster, and the answers about the model of its first card."""

    title: str
    nodes: str
    cards: str
    room: str
    """`free/preempting`, or why it is not told."""
    more: int = 0
    """Replicas to place, the stops being those for them."""
    stops: str = ""
    blocked: str = ""
    """What stops the last of `more`; all before it fit."""
    quotas: str = ""
    current: dict[str, int] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        return cluster(self.nodes, self.cards, self.quotas, self.current)


FRAGMENTS = [
    Case(
        "two halves are no whole",
        nodes="""
            a 1g other=0.5g
            b 1g other=0.5g
        """,
        cards="chat gold 1g",
        room="0/0",
        more=1,
        blocked="gpus",
    ),
    Case(
        "a half on each node is given up for a whole",
        nodes="""
            a 1g: half=1
            b 1g: half=1
        """,
        cards="""
            chat gold 1g
            half batch 0.5g
        """,
        room="0/2",
        more=1,
        stops="1 half on a (1 left)",
    ),
    Case(
        "what is over on each node is lost",
        nodes="""
            a 3g
            b 3g
        """,
        cards="big gold 2g",
        room="2/0",
        more=3,
        blocked="gpus",
    ),
    Case(
        "gpus on one node and memory on the other hold none",
        nodes="""
            a 4g 64m other=63m
            b 4g 64m other=4g
        """,
        cards="chat gold 1g 16m",
        room="0/0",
        more=1,
        blocked="memory",
    ),
    Case("quarters of a gpu", nodes="a 1g", cards="chat gold 0.25g", room="4/0"),
    Case("0.3 of a gpu", nodes="a 1g", cards="chat gold 0.3g", room="3/0"),
    Case("tenths of a core are exact", nodes="a 0.3c", cards="chat gold 0.1c", room="3/0"),
    Case(
        "hundredths of a core",
        nodes="a 1c: tiny=10",
        cards="""
            chat gold 0.25c
            tiny batch 0.07c
        """,
        room="1/3",
        more=2,
        stops="3 tiny on a (7 left)",
    ),
    Case("the scarcest resource counts", nodes="a 8g 5c", cards="chat gold 1g 2c", room="2/0"),
]

TIES = [
    Case(
        "nodes by name",
        nodes="""
            b 1g: bulk=1
            a 1g: bulk=1
        """,
        cards="""
            chat gold 1g
            bulk batch 1g
        """,
        room="0/2",
        more=1,
        stops="1 bulk on a (1 left)",
    ),
    Case(
        "of equal replicas the first by name is given back",
        nodes="a 2g: q=1 p=1",
        cards="""
            chat gold 1g
            p batch 1g
            q batch 1g
        """,
        room="0/2",
        more=1,
        stops="1 q on a (0 left)",
    ),
    Case(
        "of one rank the smaller is given back first, so the one that is stopped may be too large",
        nodes="a 4g: large=1 small=1",
        cards="""
            chat gold 1g
            large batch 3g
            small batch 1g
        """,
        room="0/4",
        more=1,
        stops="1 large on a (0 left)",
    ),
    Case(
        "small is a replica's largest share of the node",
        nodes="a 4g 4c: p=1 q=1",
        cards="""
            chat gold 1g 2c
            p batch 1g 3c
            q batch 2g 1c
        """,
        room="0/2",
        more=1,
        stops="1 p on a (0 left)",
    ),
    Case(
        "the higher rank is given back first, however large",
        nodes="a 4g: embed=1 bulk=1",
        cards="""
            chat gold 1g
            embed standard 3g
            bulk batch 1g
        """,
        room="0/4",
        more=1,
        stops="1 bulk on a (0 left)",
    ),
    Case(
        "only what the lower rank lacks is taken from the higher",
        nodes="a 4g: embed=2 bulk=2",
        cards="""
            chat gold 3g
            embed standard 1g
            bulk batch 1g
        """,
        room="0/1",
        more=1,
        stops="2 bulk on a (0 left), 1 embed on a (1 left)",
    ),
    Case(
        "two of a lower rank rather than one of a higher",
        nodes="""
            a 2g: embed=1
            b 2g: bulk=2
        """,
        cards="""
            chat gold 2g
            embed standard 2g
            bulk batch 1g
        """,
        room="0/2",
        more=1,
        stops="2 bulk on b (0 left)",
    ),
    Case(
        "of one highest rank the lower sum",
        nodes="""
            a 2g: embed=2
            b 2g: embed=1 bulk=1
        """,
        cards="""
            chat gold 2g
            embed standard 1g
            bulk batch 1g
        """,
        room="0/2",
        more=1,
        stops="1 bulk on b (0 left), 1 embed on b (2 left)",
    ),
    Case(
        "of one sum the fewest",
        nodes="""
            a 2g: bulk=2
            b 2g: wide=1
        """,
        cards="""
            chat gold 2g
            bulk batch 1g
            wide batch 2g
        """,
        room="0/2",
        more=1,
        stops="1 wide on b (0 left)",
    ),
    Case(
        "what is free is filled first, also on a later node",
        nodes="""
            a 1g: bulk=1
            b 1g
        """,
        cards="""
            chat gold 1g
            bulk batch 1g
        """,
        room="1/1",
        more=1,
    ),
    Case(
        "one large replica makes room for several",
        nodes="a 4g: wide=1",
        cards="""
            chat gold 1g
            wide batch 4g
        """,
        room="0/4",
        more=4,
        stops="1 wide on a (0 left)",
    ),
    Case(
        "who asks for nothing is not stopped",
        nodes="a 1g: bulk=1 idle=5",
        cards="""
            chat gold 1g
            bulk batch 1g
            idle batch
        """,
        room="0/1",
        more=1,
        stops="1 bulk on a (0 left)",
    ),
]

RANKS = [
    Case(
        "equal rank is not stopped",
        nodes="a 1g: peer=1",
        cards="""
            chat standard 1g
            peer standard 1g
        """,
        room="0/0",
        more=1,
        blocked="gpus",
    ),
    Case(
        "higher rank is not stopped",
        nodes="a 2g: peer=1 bulk=1",
        cards="""
            chat standard 1g
            peer gold 1g
            bulk batch 1g
        """,
        room="0/1",
        more=2,
        stops="1 bulk on a (0 left)",
        blocked="gpus",
    ),
    Case(
        "a model does not stop itself",
        nodes="a 1g: chat=1",
        cards="chat gold 1g",
        room="0/0",
        more=1,
        blocked="gpus",
    ),
    Case(
        "without a class a model stops nobody",
        nodes="a 2g: bulk=1",
        cards="""
            chat - 1g
            bulk batch 1g
        """,
        room="1/0",
        more=2,
        blocked="gpus",
    ),
    Case(
        "without a class a model is not stopped",
        nodes="a 2g: plain=1",
        cards="""
            chat gold 1g
            plain - 1g
        """,
        room="1/0",
        more=2,
        blocked="gpus",
    ),
    Case(
        "what is no replica of ours is not stopped",
        nodes="a 4g other=3g: bulk=1",
        cards="""
            chat gold 1g
            bulk batch 1g
        """,
        room="0/1",
        more=2,
        stops="1 bulk on a (0 left)",
        blocked="gpus",
    ),
]

RESOURCES = [
    Case("who asks for nothing fits without end", "a 4g", "chat gold", room="no_requests"),
    Case("asking for nothing, but at most 3", "a 4g: chat=1", "chat gold max=3", room="2/0"),
    Case(
        "asking for nothing, with a quota of replicas",
        nodes="a 4g: chat=1",
        cards="chat gold owner=search",
        quotas="search replicas=3",
        room="2/0",
        more=3,
        blocked="quota",
    ),
    Case(
        "a quota of what is not asked for is no bound",
        nodes="a 4g",
        cards="chat gold owner=search",
        quotas="search 2g",
        room="no_requests",
    ),
    Case(
        "what nobody asks for does not count, even where there is too little",
        nodes="a 2g 4c other=8c",
        cards="chat gold 1g",
        room="2/0",
    ),
    Case("what no node names is not limited", "a 2g", "chat gold 1g 64c 512m", room="2/0"),
    Case(
        "what some node names is 0 on the others",
        nodes="""
            a 2g 8c
            b 2g
        """,
        cards="chat gold 1g 1c",
        room="2/0",
        more=3,
        blocked="gpus",
    ),
    Case("asking only for what no node names", "a 2g", "chat gold 8c", room="no_requests"),
    Case("the same, but at most 2", "a 2g", "chat gold 8c max=2", room="2/0"),
    Case(
        "the same, with a quota of it",
        nodes="a 2g",
        cards="chat gold 8c owner=search",
        quotas="search 20c",
        room="2/0",
        more=3,
        blocked="quota",
    ),
    Case("no nodes", "", "chat gold 1g", room="0/0", more=1, blocked="no_node"),
    Case(
        "every node too small",
        nodes="""
            a 2g: bulk=2
            b 3g
        """,
        cards="""
            chat gold 4g
            bulk batch 1g
        """,
        room="0/0",
        more=1,
        blocked="gpus no_node",
    ),
    Case(
        "two resources lack at once",
        nodes="a 1g 8m other=1g+8m",
        cards="chat gold 1g 4m",
        room="0/0",
        more=1,
        blocked="memory gpus",
    ),
    Case(
        "more placed than there is: the others do not pay for it",
        nodes="""
            a 2g: peer=4
            b 1g
        """,
        cards="""
            chat gold 1g
            peer gold 1g
        """,
        room="1/0",
        more=2,
        blocked="gpus",
    ),
    Case(
        "more placed than there is: the debt is paid first",
        nodes="a 2g: bulk=3",
        cards="""
            chat gold 1g
            bulk batch 1g
        """,
        room="0/2",
        more=1,
        stops="2 bulk on a (1 left)",
    ),
    Case(
        "more placed than there is, and stopping does not pay the debt",
        nodes="a 2g: peer=2 bulk=1",
        cards="""
            chat gold 1g
            peer gold 1g
            bulk batch 1g
        """,
        room="0/0",
        more=1,
        blocked="gpus",
    ),
]

BOUNDS = [
    Case(
        "max_replicas cuts what is free",
        nodes="a 8g: chat=1",
        cards="chat gold 1g max=3",
        room="2/0",
        more=3,
        blocked="max_replicas",
    ),
    Case(
        "max_replicas cuts what can be reached",
        nodes="a 4g: chat=1 bulk=3",
        cards="""
            chat gold 1g max=3
            bulk batch 1g
        """,
        room="0/2",
        more=3,
        stops="2 bulk on a (1 left)",
        blocked="max_replicas",
    ),
    Case(
        "max_replicas below current",
        nodes="a 8g: chat=3",
        cards="chat gold 1g max=2",
        room="0/0",
        more=1,
        blocked="max_replicas",
    ),
    Case(
        "current above what is placed counts for max_replicas",
        nodes="a 8g: chat=1",
        cards="chat gold 1g max=4",
        current={"chat": 3},
        room="1/0",
        more=2,
        blocked="max_replicas",
    ),
    Case(
        "current above what is placed counts for what a victim keeps",
        nodes="a 1g: bulk=1",
        cards="""
            chat gold 1g
            bulk batch 1g min=4
        """,
        current={"bulk": 5},
        room="0/1",
        more=1,
        stops="1 bulk on a (4 left)",
    ),
    Case(
        "a victim may fall below its min_replicas, and that is told",
        nodes="""
            a 1g: bulk=1
            b 1g: bulk=1
        """,
        cards="""
            chat gold 1g
            bulk batch 1g min=1
        """,
        room="0/2",
        more=2,
        stops="1 bulk on a (0 left, below min), 1 bulk on b (0 left, below min)",
    ),
]

QUOTAS = [
    Case(
        "of replicas",
        nodes="a 8g: chat=1",
        cards="chat gold 1g owner=search",
        quotas="search replicas=2",
        room="1/0",
        more=2,
        blocked="quota",
    ),
    Case(
        "of gpus",
        nodes="a 8g: chat=1",
        cards="chat gold 2g owner=search",
        quotas="search 5g",
        room="1/0",
        more=2,
        blocked="quota",
    ),
    Case(
        "of cores",
        nodes="a 8g 64c: chat=1",
        cards="chat gold 1g 4c owner=search",
        quotas="search 12c",
        room="2/0",
        more=3,
        blocked="quota",
    ),
    Case(
        "of memory",
        nodes="a 8g 64m: chat=1",
        cards="chat gold 1g 4m owner=search",
        quotas="search 12m",
        room="2/0",
        more=3,
        blocked="quota",
    ),
    Case(
        "the tightest of several",
        nodes="a 8g 64c",
        cards="chat gold 1g 4c owner=search",
        quotas="search 6g 8c replicas=5",
        room="2/0",
    ),
    Case(
        "all models of the owner count, wherever they are",
        nodes="""
            a 4g
            b 4g: embed=2
        """,
        cards="""
            chat gold 1g owner=search
            embed gold 1g owner=search
        """,
        quotas="search 3g",
        room="1/0",
        more=2,
        blocked="quota",
    ),
    Case(
        "other owners, and models without one, do not count",
        nodes="a 8g: ads=2 plain=2",
        cards="""
            chat gold 1g owner=search
            ads batch 1g owner=ads
            plain batch 1g
        """,
        quotas="""
            search 2g
            ads 1g
        """,
        room="2/0",
        more=3,
        blocked="quota",
    ),
    Case(
        "used up by what is not asked for",
        nodes="a 4g 8c: embed=1",
        cards="""
            chat gold 1g owner=search
            embed gold 8c owner=search
        """,
        quotas="search 4c 2g",
        room="2/0",
    ),
    Case(
        "of nothing",
        nodes="a 4g",
        cards="chat gold 1g owner=search",
        quotas="search 0g",
        room="0/0",
        more=1,
        blocked="quota",
    ),
    Case(
        "overdrawn",
        nodes="a 8g: chat=3",
        cards="chat gold 1g owner=search",
        quotas="search 2g",
        room="0/0",
        more=1,
        blocked="quota",
    ),
    Case(
        "the node fits: the owner's own lower-ranked replicas are given back",
        nodes="a 4g: bulk=2",
        cards="""
            chat gold 1g owner=search
            bulk batch 1g owner=search
        """,
        quotas="search 2g",
        room="0/2",
        more=1,
        stops="1 bulk on a (1 left)",
    ),
    Case(
        "the node fits: all of them may be given back",
        nodes="""
            a 4g: bulk=2
            b 4g: bulk=1
        """,
        cards="""
            chat gold 1g owner=search
            bulk batch 1g owner=search
        """,
        quotas="search replicas=3",
        room="0/3",
        more=4,
        stops="2 bulk on a (0 left), 1 bulk on b (0 left)",
        blocked="quota",
    ),
    Case(
        "the node fits: other owners' replicas are not given back",
        nodes="a 4g: chat=2 bulk=1",
        cards="""
            chat gold 1g owner=search
            bulk batch 1g owner=ads
        """,
        quotas="search 2g",
        room="0/0",
        more=1,
        blocked="quota",
    ),
    Case(
        "the node fits: the owner's replicas of equal rank are not given back",
        nodes="a 4g: peer=2",
        cards="""
            chat gold 1g owner=search
            peer gold 1g owner=search
        """,
        quotas="search 2g",
        room="0/0",
        more=1,
        blocked="quota",
    ),
    Case(
        "the node fits: what is current but placed nowhere counts, and cannot be stopped",
        nodes="a 4g: bulk=1",
        cards="""
            chat gold 1g owner=search
            bulk batch 1g owner=search
        """,
        quotas="search replicas=2",
        current={"bulk": 2},
        room="0/1",
        more=2,
        stops="1 bulk on a (1 left)",
        blocked="quota",
    ),
    Case(
        "the node fits: the lowest rank is stopped",
        nodes="a 8g: embed=1 bulk=1",
        cards="""
            chat gold 1g owner=search
            embed standard 1g owner=search
            bulk batch 1g owner=search
        """,
        quotas="search 2g",
        room="0/2",
        more=1,
        stops="1 bulk on a (0 left)",
    ),
    Case(
        "the node fits: the fewest are stopped",
        nodes="a 8g: narrow=2 wide=1",
        cards="""
            chat gold 2g owner=search
            narrow batch 1g owner=search
            wide batch 2g owner=search
        """,
        quotas="search 4g",
        room="0/2",
        more=1,
        stops="1 wide on a (0 left)",
    ),
    Case(
        "the node fits: the fewest are stopped, counted in what the quota lacks",
        nodes="a 8g 64c: hungry=2 cpu=1",
        cards="""
            chat gold 1g 4c owner=search
            hungry batch 2g 2c owner=search
            cpu batch 1g 4c owner=search
        """,
        quotas="search 8c 64g",
        room="0/2",
        more=1,
        stops="1 cpu on a (0 left)",
    ),
    Case(
        "the node fits: the first by name is stopped",
        nodes="""
            a 4g: q=1
            b 4g: p=1
        """,
        cards="""
            chat gold 1g owner=search
            q batch 1g owner=search
            p batch 1g owner=search
        """,
        quotas="search replicas=2",
        room="0/2",
        more=1,
        stops="1 p on b (0 left)",
    ),
    Case(
        "the node fits: of one model the first node by name",
        nodes="""
            b 2g: bulk=1
            a 2g: bulk=1
        """,
        cards="""
            chat gold 1g owner=search
            bulk batch 1g owner=search
        """,
        quotas="search replicas=2",
        room="0/2",
        more=1,
        stops="1 bulk on a (1 left)",
    ),
    Case(
        "the quota fits: other owners' replicas are stopped",
        nodes="a 2g: bulk=2",
        cards="""
            chat gold 1g owner=search
            bulk batch 1g owner=ads
        """,
        quotas="search 1g",
        room="0/1",
        more=2,
        stops="1 bulk on a (1 left)",
        blocked="quota",
    ),
    Case(
        "neither fits: one stop may serve both",
        nodes="a 2g: theirs=1 ours=1",
        cards="""
            chat gold 1g owner=search
            ours batch 1g owner=search
            theirs batch 1g owner=ads
        """,
        quotas="search 1g",
        room="0/1",
        more=1,
        stops="1 ours on a (0 left)",
    ),
    Case(
        "neither fits: one stop may serve both, on another node",
        nodes="""
            a 1g: theirs=1
            b 1g: ours=1
        """,
        cards="""
            chat gold 1g owner=search
            ours batch 1g owner=search
            theirs batch 1g owner=ads
        """,
        quotas="search 1g",
        room="0/1",
        more=1,
        stops="1 ours on b (0 left)",
    ),
    Case(
        "neither fits: what the node needs may be all that the quota needs",
        nodes="""
            a 1g: near=1
            b 2g: ours=1
        """,
        cards="""
            chat gold 2g owner=search
            near batch 1g owner=search
            ours batch 2g owner=search
        """,
        quotas="search replicas=2",
        room="0/1",
        more=1,
        stops="1 ours on b (0 left)",
    ),
    Case(
        "neither fits: both are stopped where it takes both",
        nodes="""
            a 1g 1m: ours=1
            b 4g: theirs=1
        """,
        cards="""
            chat gold 4g owner=search
            ours batch 1g owner=search
            theirs batch 4g owner=ads
        """,
        quotas="search 4g",
        room="0/1",
        more=1,
        stops="1 ours on a (0 left), 1 theirs on b (0 left)",
    ),
    Case(
        "neither fits, whoever is stopped",
        nodes="a 2g: chat=2",
        cards="chat gold 1g owner=search",
        quotas="search 2g",
        room="0/0",
        more=1,
        blocked="gpus quota",
    ),
    Case(
        "node, quota and max_replicas all stop one more",
        nodes="a 2g: chat=2",
        cards="chat gold 1g owner=search max=2",
        quotas="search replicas=2",
        room="0/0",
        more=1,
        blocked="gpus quota max_replicas",
    ),
]

GROUPS = [
    Case(
        "over two nodes",
        nodes="""
            a 4g
            b 2g
            c 1g
        """,
        cards="wide gold 2g nodes=2",
        room="3/-",
        more=4,
        blocked="gpus",
    ),
    Case(
        "over three nodes: the parts of one are on different nodes",
        nodes="""
            a 5g
            b 1g
            c 1g
        """,
        cards="wide gold 3g nodes=3",
        room="1/-",
        more=2,
        blocked="gpus",
    ),
    Case(
        "over three of four nodes",
        nodes="""
            a 2g
            b 2g
            c 1g
            d 1g
        """,
        cards="wide gold 3g nodes=3",
        room="2/-",
        more=3,
        blocked="gpus",
    ),
    Case(
        "nobody is stopped for them",
        nodes="""
            a 1g: bulk=1
            b 1g
        """,
        cards="""
            wide gold 2g nodes=2
            bulk batch 1g
        """,
        room="0/-",
        more=1,
        blocked="gpus",
    ),
    Case(
        "fewer nodes than parts",
        nodes="""
            a 8g
            b 8g
        """,
        cards="wide gold 3g nodes=3",
        room="0/-",
        more=1,
        blocked="no_node",
    ),
    Case(
        "fewer large nodes than parts",
        nodes="""
            a 4g
            b 1g
        """,
        cards="wide gold 4g nodes=2",
        room="0/-",
        more=1,
        blocked="gpus no_node",
    ),
    Case(
        "parts are equal, also of an odd number",
        nodes="""
            a 1.5g
            b 1.5g
        """,
        cards="wide gold 3g nodes=2",
        room="1/-",
    ),
    Case(
        "two parts are one replica",
        nodes="""
            a 3g: wide=1
            b 3g: wide=1
        """,
        cards="wide gold 2g nodes=2 max=2",
        room="1/-",
        more=2,
        blocked="max_replicas",
    ),
    Case(
        "the quota counts whole replicas",
        nodes="""
            a 4g: wide=1
            b 4g: wide=1
        """,
        cards="wide gold 2g nodes=2 owner=search",
        quotas="search 5g",
        room="1/-",
        more=2,
        blocked="quota",
    ),
    Case(
        "nothing of the owner's is given back for them",
        nodes="""
            a 2g: bulk=1
            b 2g
        """,
        cards="""
            wide gold 2g nodes=2 owner=search
            bulk batch 1g owner=search
        """,
        quotas="search replicas=1",
        room="0/-",
        more=1,
        blocked="quota",
    ),
    Case(
        "a part is not stopped: the rest of its replica would be of no use",
        nodes="""
            a 1g: wide=1
            b 1g: wide=1
        """,
        cards="""
            chat gold 1g
            wide batch 2g nodes=2
        """,
        room="0/0",
        more=1,
        blocked="gpus",
    ),
]

GROUPED = {
    "fragments": FRAGMENTS,
    "ties": TIES,
    "ranks": RANKS,
    "resources": RESOURCES,
    "bounds": BOUNDS,
    "quotas": QUOTAS,
    "groups": GROUPS,
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{group}: {case.title}")
        for group, cases in GROUPED.items()
        for case in cases
    ],
)
def test_case(case: Case) -> None:
    model = first_model(case.cards)
    assert room_of(case.cluster, model) == case.room
    if case.room in list(Unplanned):
        return
    placement = place(case.cluster, model, case.more)
    placed = case.more - 1 if case.blocked else case.more
    assert (placement.placed, stops(placement), " ".join(placement.blocked)) == (
        placed,
        case.stops,
        case.blocked,
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0, "0/0+"), (1, "1/0+"), (2, "2/0+"), (3, "2/1+"), (6, "2/4"), (7, "2/4"), (None, "2/4")],
)
def test_counting_stops_at_the_limit_and_says_so(limit: int | None, expected: str) -> None:
    assert room_of(EXAMPLE, "chat", limit) == expected


@pytest.mark.parametrize(("limit", "expected"), [(1, "1/-+"), (2, "2/-+"), (3, "3/-"), (4, "3/-")])
def test_counting_replicas_over_several_nodes_stops_at_the_limit(limit: int, expected: str) -> None:
    nodes = """
        a 4g
        b 2g
        c 1g
    """
    assert room_of(cluster(nodes, "wide gold 2g nodes=2"), "wide", limit) == expected


def test_room_is_both_together() -> None:
    assert Headroom(2, 4).room == 6
    assert Headroom(3, None).room == 3


def test_headroom_is_not_told_without_card_or_inventory() -> None:
    assert cannot_tell(EXAMPLE, "chat") is None
    assert headroom(EXAMPLE, "stranger") is Unplanned.NO_CARD
    bare = replace(EXAMPLE, inventory=None)
    assert headroom(bare, "chat") is Unplanned.NO_INVENTORY
    assert headroom(bare, "stranger") is Unplanned.NO_CARD


def test_a_quota_of_replicas_counts_for_models_that_ask_for_nothing() -> None:
    some = cluster("a 1g", "chat gold owner=search")
    assert cannot_tell(some, "chat") is Unplanned.NO_REQUESTS
    assert cannot_tell(replace(some, quotas={"search": Quota(replicas=1)}), "chat") is None


def test_the_nearest_node_is_the_one_that_misses_the_smallest_share() -> None:
    nodes = """
        a 1g 64m
        b 4g 8m other=1g+2m
        c 3g 64m
    """
    placement = place(cluster(nodes, "big gold 4g 8m"), "big", 1)
    assert placement.nearest == Nearest("b", Resources(memory=2 * 2**30, gpus=1000))
    assert placement.blocked == (Blocked.MEMORY, Blocked.GPUS)


def test_the_nearest_node_counts_what_could_be_made_free() -> None:
    nodes = """
        a 4g: peer=2 bulk=2
        b 4g: peer=3 bulk=1
    """
    cards = """
        big gold 3g
        peer gold 1g
        bulk batch 1g
    """
    placement = place(cluster(nodes, cards), "big", 1)
    assert placement.nearest == Nearest("a", Resources(gpus=1000))
    assert placement.stops == ()


def test_stops_for_what_fits_are_told_where_not_all_fits() -> None:
    placement = place(EXAMPLE, "embed", 99)
    assert (placement.placed, placement.preempted) == (5, {"batch-llm": 3})


def test_nothing_more_takes_nothing() -> None:
    placement = place(EXAMPLE, "chat", 0)
    assert (placement.placed, placement.stops, placement.blocked) == (0, (), ())


@pytest.mark.parametrize(
    ("more", "stays_out"),
    [
        ({}, {}),
        ({"chat": 2}, {"chat": 0}),
        # what is free goes to the higher rank, which leaves the lower one with nothing
        ({"batch-llm": 2, "chat": 2}, {"chat": 0, "batch-llm": 2}),
        ({"batch-llm": 2, "embed": 1}, {"embed": 0, "batch-llm": 1}),
        # of one rank the first by name: big takes 4 of the 6, chat what is left
        ({"chat": 6, "big": 2}, {"big": 0, "chat": 4}),
        # chat stops all that may be stopped, and nothing is left for embed
        ({"embed": 1, "chat": 7}, {"chat": 1, "embed": 1}),
        ({"batch-llm": 9, "embed": 9, "chat": 1}, {"chat": 0, "embed": 5, "batch-llm": 9}),
    ],
)
def test_placing_together(more: dict[str, int], stays_out: dict[str, int]) -> None:
    assert place_together(EXAMPLE, more) == stays_out


def test_placing_together_takes_models_without_a_class_last() -> None:
    some = cluster(
        "a 2g",
        """
            plain - 1g
            bulk batch 1g
            wide batch 2g nodes=2
        """,
    )
    assert place_together(some, {"plain": 2, "bulk": 1, "wide": 1}) == {
        "bulk": 0,
        "plain": 1,
        "wide": 1,
    }


def test_placing_together_shares_the_owners_quota() -> None:
    some = cluster(
        "a 8g",
        """
            chat gold 1g owner=search
            embed standard 1g owner=search
            ads batch 1g owner=ads
        """,
        quotas="search 3g",
    )
    assert place_together(some, {"ads": 2, "embed": 2, "chat": 2}) == {
        "chat": 0,
        "embed": 1,
        "ads": 0,
    }


def test_placing_changes_nothing_of_the_cluster() -> None:
    before = room_of(EXAMPLE, "chat"), room_of(EXAMPLE, "embed")
    place(EXAMPLE, "chat", 6)
    place_together(EXAMPLE, {"chat": 3, "big": 1})
    assert (room_of(EXAMPLE, "chat"), room_of(EXAMPLE, "embed")) == before

"""Cases of room on nodes: fragments, ties, ranks, resources, bounds."""

from __future__ import annotations

from tests.planning.cases import Case

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

"""Cases of owners' quotas."""

from __future__ import annotations

from tests.planning.cases import Case

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

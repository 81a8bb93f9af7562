"""Cases of replicas that span several nodes."""

from __future__ import annotations

from tests.planning.cases import Case

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

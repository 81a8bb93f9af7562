"""Headroom, who is stopped and what blocks: the worked example, and a table of cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.cluster import Blocked, Cluster, Quota, Resources, Unplanned
from exporter.planning.headroom import Headroom, cannot_tell
from exporter.planning.placing import Nearest, Stop
from tests.planning.cases import Case
from tests.planning.cases_groups import GROUPS
from tests.planning.cases_nodes import BOUNDS, FRAGMENTS, RANKS, RESOURCES, TIES
from tests.planning.cases_quotas import QUOTAS
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


def test_tiny_requests_in_a_large_cluster_are_placed_at_once() -> None:
    huge = cluster("a 8g 1024m: big=1", "tiny gold 0.0000001m\nbig batch 512m")
    placement = place(huge, "tiny", 10**13)
    assert placement.placed == 1024 * 2**30 // Resources(memory=round(1e-7 * 2**30)).memory
    assert placement.preempted == {"big": 1}
    assert placement.blocked == (Blocked.MEMORY,)

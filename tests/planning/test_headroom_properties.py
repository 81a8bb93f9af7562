"""Headroom against a brute force that tries every set of victims, on small clusters."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import TypeVar

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exporter.cluster import (
    Card,
    Cluster,
    Inventory,
    Node,
    Quota,
    Resources,
    Taint,
    Toleration,
    Where,
)
from exporter.planning.headroom import Headroom, cannot_tell
from exporter.planning.placing import Placement
from tests.planning.notation import headroom, place, place_together

Item = TypeVar("Item")
ASKED = "asked"
OTHERS = ("p", "q", "r")
NO_END = 10**9

Stopped = Counter[tuple[str, str]]
"""Stopped replicas, by model and node."""

few = settings(derandomize=True, deadline=None, max_examples=150)
many = settings(derandomize=True, deadline=None, max_examples=400)


# -- clusters


def amounts(most: int) -> st.SearchStrategy[Resources]:
    return st.builds(
        Resources,
        cores=st.integers(0, most),
        gpus=st.integers(0, most),
    )


TAINTS = (
    Taint("gpu", "yes", "NoSchedule"),
    Taint("gpu", "no", "NoExecute"),
    Taint("gpu", "yes", "PreferNoSchedule"),
    Taint("spot", "", "NoSchedule"),
)
TOLERATIONS = (
    Toleration(None, None, None),
    Toleration("gpu", None, None),
    Toleration("gpu", "yes", None),
    Toleration("gpu", "yes", "NoExecute"),
    Toleration("spot", "", "NoSchedule"),
)
LABELS = (("zone", "x"), ("zone", "y"), ("gpu", "big"))


@st.composite
def wheres(draw: st.DrawFn) -> Where:
    """Where a model may run; more often than not anywhere that is not tainted."""
    if draw(st.booleans()):
        return Where()
    return Where(
        frozenset(draw(st.lists(st.sampled_from(LABELS), max_size=2))),
        frozenset(draw(st.lists(st.sampled_from(TOLERATIONS), max_size=3))),
    )


@st.composite
def cards(draw: st.DrawFn, model: str, *, nodes_per_replica: int = 1) -> Card:
    return Card(
        model,
        # the asked one outranks some of the others more often than not
        rank=draw(st.sampled_from((2, 2, 1, 0, None) if model == ASKED else (0, 0, 1, 2, None))),
        owner=draw(st.sampled_from(("x", "x", "y", ""))),
        request=draw(amounts(3)),
        nodes_per_replica=nodes_per_replica,
        min_replicas=draw(st.integers(0, 2)),
        max_replicas=draw(st.none() | st.none() | st.integers(0, 8)),
        where=draw(wheres()),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str, known: list[Card]) -> Node:
    placed = draw(st.lists(st.sampled_from((*OTHERS, *OTHERS, ASKED)), max_size=4))
    other = draw(st.just(Resources()) | amounts(1))
    if draw(st.booleans()):
        allocatable = draw(amounts(7))
    else:  # full, or nearly so
        requests = {card.model: card.request for card in known}
        allocatable = sum((requests[model] for model in placed), other + draw(amounts(1)))
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    if draw(st.booleans()):
        labels = dict(draw(st.lists(st.sampled_from(LABELS), max_size=2)))
        taints = tuple(draw(st.lists(st.sampled_from(TAINTS), max_size=2)))
    return Node(name, allocatable, dict(Counter(placed)), other, labels, taints)


@st.composite
def tight_quotas(draw: st.DrawFn, ours: list[Card], running: dict[str, int]) -> Quota:
    """A quota near what the owner's replicas hold."""

    def near(held: int) -> int | None:
        return draw(st.none() | st.integers(max(held - 2, 0), held + 3))

    return Quota(
        cores=near(sum(card.request.cores * running[card.model] for card in ours)),
        gpus=near(sum(card.request.gpus * running[card.model] for card in ours)),
        replicas=near(sum(running[card.model] for card in ours)),
    )


@st.composite
def clusters(draw: st.DrawFn, *, classless: bool = True, nodes_per_replica: int = 1) -> Cluster:
    asked = draw(cards(ASKED, nodes_per_replica=nodes_per_replica))
    known = [asked, *(draw(cards(model)) for model in OTHERS)]
    if not classless:
        known = [replace(card, rank=card.rank or 0) for card in known]
    inventory = Inventory(
        tuple(draw(nodes(name, known)) for name in ("a", "b", "c")[: draw(st.integers(1, 3))]),
        named=frozenset(draw(st.sampled_from((("gpus",), ("cores", "gpus"))))),
    )
    cluster = Cluster({card.model: card for card in known}, inventory)
    if draw(st.integers(0, 3)) == 0:
        model = draw(st.sampled_from((ASKED, *OTHERS)))
        cluster = replace(cluster, current={model: cluster.current_of(model) + 1})
    running = {card.model: cluster.current_of(card.model) for card in known}
    ours = [card for card in known if card.owner == "x"]
    cluster = replace(cluster, quotas={"x": draw(tight_quotas(ours, running))})
    assume(cannot_tell(cluster, ASKED) is None)
    return cluster


# -- the same formulas, written down a second time


def nodes_of(cluster: Cluster) -> tuple[Node, ...]:
    assert cluster.inventory is not None
    return cluster.inventory.nodes


def named_of(cluster: Cluster) -> frozenset[str]:
    assert cluster.inventory is not None
    return cluster.inventory.named


def left_on(cluster: Cluster, node: Node, stopped: Stopped) -> dict[str, int]:
    """What is free of each resource when the stopped ones are gone."""
    return {
        name: node.allocatable.of(name)
        - node.other.of(name)
        - sum(
            part(cluster.cards[model], name) * (count - stopped[model, node.name])
            for model, count in node.replicas.items()
        )
        for name in named_of(cluster)
    }


def part(card: Card, name: str) -> int:
    return -(-card.request.of(name) // card.nodes_per_replica)


def keeps_away(card: Card, node: Node) -> bool:
    for key, value in card.where.selector:
        if node.labels.get(key) != value:
            return True
    for taint in node.taints:
        tolerated = taint.effect == "PreferNoSchedule"
        for one in card.where.tolerations:
            same_key = one.key is None or one.key == taint.key
            same_value = one.value is None or one.value == taint.value
            same_effect = one.effect is None or one.effect == taint.effect
            tolerated = tolerated or (same_key and same_value and same_effect)
        if not tolerated:
            return True
    return False


def fit_on(cluster: Cluster, node: Node, stopped: Stopped) -> int:
    card = cluster.cards[ASKED]
    if keeps_away(card, node):
        return 0
    left = left_on(cluster, node, stopped)
    fits = [left[name] // part(card, name) for name in left if part(card, name) > 0]
    return max(min(fits, default=NO_END), 0)


def admitted(cluster: Cluster, stopped: Stopped) -> int:
    """What quota and max_replicas admit."""
    card = cluster.cards[ASKED]
    admits = [NO_END]
    if card.max_replicas is not None:
        admits.append(card.max_replicas - cluster.current_of(ASKED))
    quota = cluster.quotas.get(card.owner, Quota())
    ours = [its for its in cluster.cards.values() if its.owner == card.owner]
    gone = Counter[str]()
    for (model, _), count in stopped.items():
        gone[model] += count
    running = {its.model: cluster.current_of(its.model) - gone[its.model] for its in ours}
    if quota.replicas is not None:
        admits.append(quota.replicas - sum(running.values()))
    for name in ("cores", "gpus"):
        limit, asked = quota.of(name), card.request.of(name)
        if limit is not None and asked:
            held = sum(its.request.of(name) * running[its.model] for its in ours)
            admits.append((limit - held) // asked)
    return max(min(admits), 0)


def fitting(cluster: Cluster, stopped: Stopped) -> int:
    """How many more fit when just these are stopped."""
    fits = sum(fit_on(cluster, node, stopped) for node in nodes_of(cluster))
    return min(fits, admitted(cluster, stopped))


def stoppable(cluster: Cluster, by: int | None) -> Stopped:
    found = Stopped()
    for node in nodes_of(cluster):
        for model, count in node.replicas.items():
            rank = cluster.cards[model].rank
            if by is not None and rank is not None and rank < by:
                found[model, node.name] = count
    return found


def sets_of_victims(cluster: Cluster) -> Iterator[Stopped]:
    """Every set that the asked model may stop, the empty one first."""
    most = stoppable(cluster, cluster.cards[ASKED].rank)
    for counts in product(*(range(count + 1) for count in most.values())):
        yield Stopped(dict(zip(most, counts, strict=True)))


def highest_rank(cluster: Cluster, stopped: Stopped) -> int:
    ranks = [cluster.cards[model].rank or 0 for (model, _), count in stopped.items() if count]
    return max(ranks, default=-1)


def stopped_by(placement: Placement) -> Stopped:
    return Stopped({(stop.model, stop.node): stop.count for stop in placement.stops})


def told(cluster: Cluster) -> Headroom:
    room = headroom(cluster, ASKED)
    assert isinstance(room, Headroom)
    return room


# -- headroom


@many
@given(clusters())
def test_headroom_is_what_the_best_set_of_victims_gives(cluster: Cluster) -> None:
    free = fitting(cluster, Stopped())
    reach = max(fitting(cluster, stopped) for stopped in sets_of_victims(cluster))
    assert told(cluster) == Headroom(free, reach - free)


@few
@given(clusters(), st.integers(0, 6))
def test_a_limit_cuts_both_numbers(cluster: Cluster, limit: int) -> None:
    whole, cut = told(cluster), headroom(cluster, ASKED, limit)
    assert isinstance(cut, Headroom)
    assert (cut.free, cut.room) == (min(whole.free, limit), min(whole.room, limit))
    assert cut.limited == (whole.room > limit)


@few
@given(clusters(nodes_per_replica=2) | clusters(nodes_per_replica=3))
def test_headroom_over_several_nodes_is_what_the_best_choice_of_nodes_gives(
    cluster: Cluster,
) -> None:
    k = cluster.cards[ASKED].nodes_per_replica

    @cache
    def most(fits: tuple[int, ...]) -> int:
        return max(
            (
                1 + most(tuple(fit - (i in chosen) for i, fit in enumerate(fits)))
                for chosen in combinations(range(len(fits)), k)
                if all(fits[i] for i in chosen)
            ),
            default=0,
        )

    admits = admitted(cluster, Stopped())
    fits = [min(fit_on(cluster, node, Stopped()), admits, 10) for node in nodes_of(cluster)]
    assume(min(admits, max(fits)) < 10)
    assert told(cluster) == Headroom(min(most(tuple(sorted(fits))), admits), None)


# -- who is stopped


@many
@given(clusters())
def test_the_set_stopped_for_one_more_is_irreducible(cluster: Cluster) -> None:
    stopped = stopped_by(place(cluster, ASKED, 1))
    for replica in stopped:
        assert fitting(cluster, stopped - Stopped([replica])) == 0


@many
@given(clusters())
def test_no_other_set_for_one_more_has_a_lower_highest_rank(cluster: Cluster) -> None:
    placement = place(cluster, ASKED, 1)
    enough = [
        highest_rank(cluster, stopped)
        for stopped in sets_of_victims(cluster)
        if fitting(cluster, stopped)
    ]
    assert placement.placed == bool(enough)
    if enough:
        assert highest_rank(cluster, stopped_by(placement)) == min(enough)


@many
@given(clusters(), st.integers(1, 8))
def test_only_lower_ranks_are_stopped_and_then_all_fits(cluster: Cluster, more: int) -> None:
    placement = place(cluster, ASKED, more)
    stopped = stopped_by(placement)
    assert stopped <= stoppable(cluster, cluster.cards[ASKED].rank)
    # nodes, quota and max_replicas have room for all of them
    assert fitting(cluster, stopped) >= placement.placed
    # and nobody is stopped where all fit without
    if fitting(cluster, Stopped()) >= more:
        assert not stopped


@few
@given(clusters(), st.integers(1, 8))
def test_what_victims_keep(cluster: Cluster, more: int) -> None:
    placement = place(cluster, ASKED, more)
    for stop in placement.stops:
        keeps = cluster.current_of(stop.model) - placement.preempted[stop.model]
        assert stop.keeps == keeps >= 0
        assert stop.below_min == (keeps < cluster.cards[stop.model].min_replicas)


@many
@given(
    clusters() | clusters(nodes_per_replica=2) | clusters(nodes_per_replica=3), st.integers(0, 12)
)
def test_as_many_are_placed_as_there_is_room_for(cluster: Cluster, more: int) -> None:
    placement = place(cluster, ASKED, more)
    assert placement.placed == min(more, told(cluster).room)
    assert bool(placement.blocked) == (placement.placed < more)


# -- more room, other orders


def grown(cluster: Cluster, by: Resources) -> Iterator[Cluster]:
    """The cluster with a larger node, one node more, a higher quota."""
    inventory = cluster.inventory
    assert inventory is not None
    for i, node in enumerate(inventory.nodes):
        larger = replace(node, allocatable=node.allocatable + by)
        changed = (*inventory.nodes[:i], larger, *inventory.nodes[i + 1 :])
        yield replace(cluster, inventory=replace(inventory, nodes=changed))
    one_more = (Node("0", by), *inventory.nodes)
    yield replace(cluster, inventory=replace(inventory, nodes=one_more))
    for owner, quota in cluster.quotas.items():
        for name in ("cores", "gpus", "replicas"):
            limit = getattr(quota, name)
            for higher in (None, limit + 1) if limit is not None else ():
                raised = {owner: replace(quota, **{name: higher})}
                yield replace(cluster, quotas={**cluster.quotas, **raised})


@few
@given(clusters() | clusters(nodes_per_replica=2), amounts(4))
def test_more_room_never_means_less_headroom(cluster: Cluster, by: Resources) -> None:
    before = told(cluster)
    for larger in grown(cluster, by):
        after = headroom(larger, ASKED)
        if not isinstance(after, Headroom):  # a bound that was lifted
            continue
        assert after.free >= before.free
        assert after.room >= before.room


@few
@given(clusters() | clusters(nodes_per_replica=2), st.integers(0, 8), st.randoms())
def test_no_order_matters(cluster: Cluster, more: int, shuffler: random.Random) -> None:
    def shuffled(items: list[Item]) -> list[Item]:
        return shuffler.sample(items, len(items))

    inventory = cluster.inventory
    assert inventory is not None
    changed = [
        replace(node, replicas=dict(shuffled(list(node.replicas.items()))))
        for node in shuffled(list(inventory.nodes))
    ]
    other = replace(
        cluster,
        cards=dict(shuffled(list(cluster.cards.items()))),
        inventory=replace(inventory, nodes=tuple(changed)),
    )
    assert headroom(other, ASKED) == headroom(cluster, ASKED)
    assert place(other, ASKED, more) == place(cluster, ASKED, more)
    wanted = {model: more for model in cluster.cards if cannot_tell(cluster, model) is None}
    reordered = dict(shuffled(list(wanted.items())))
    assert place_together(other, reordered) == place_together(cluster, wanted)


# -- all models together


@many
@given(clusters(), st.integers(0, 8))
def test_together_no_more_is_placed_than_there_is(cluster: Cluster, more: int) -> None:
    wanted = {model: more for model in cluster.cards if cannot_tell(cluster, model) is None}
    stays_out = place_together(cluster, wanted)
    assert stays_out.keys() == wanted.keys()
    placed = {model: more - stays_out[model] for model in wanted}
    assert all(0 <= count <= more for count in placed.values())
    # what the highest of the ranks may stop is the most that anybody can make free
    ranks = [cluster.cards[model].rank for model in wanted]
    highest = max((rank for rank in ranks if rank is not None), default=None)
    gone = stoppable(cluster, highest)
    rooms = [left_on(cluster, node, gone) for node in nodes_of(cluster)]
    for name in named_of(cluster):
        taken = sum(
            count * cluster.cards[model].request.of(name) for model, count in placed.items()
        )
        assert taken <= sum(max(room[name], 0) for room in rooms)
    for model, count in placed.items():
        card = cluster.cards[model]
        if count and card.max_replicas is not None:
            stopped_at_most = sum(n for (its, _), n in gone.items() if its == model)
            assert cluster.current_of(model) - stopped_at_most + count <= card.max_replicas


@few
@given(clusters(classless=False), st.integers(0, 8))
def test_together_the_first_gets_what_it_would_get_alone(cluster: Cluster, more: int) -> None:
    wanted = {model: more for model in cluster.cards if cannot_tell(cluster, model) is None}
    stays_out = place_together(cluster, wanted)
    first = min(wanted, key=lambda model: (-(cluster.cards[model].rank or 0), model))
    alone = headroom(cluster, first)
    assert isinstance(alone, Headroom)
    assert next(iter(stays_out)) == first
    assert stays_out[first] == max(more - alone.room, 0)


@few
@given(clusters(), st.integers(1, 8))
def test_together_an_owner_stays_within_its_quota(cluster: Cluster, more: int) -> None:
    wanted = {model: more for model in cluster.cards if cannot_tell(cluster, model) is None}
    stays_out = place_together(cluster, wanted)
    ours = [card for card in cluster.cards.values() if card.owner == "x" and card.model in wanted]
    quota = cluster.quotas["x"]
    if quota.replicas is not None:
        assert sum(more - stays_out[card.model] for card in ours) <= quota.replicas
    for name in ("cores", "gpus"):
        limit = quota.of(name)
        if limit is not None:
            taken = sum((more - stays_out[card.model]) * card.request.of(name) for card in ours)
            assert taken <= limit

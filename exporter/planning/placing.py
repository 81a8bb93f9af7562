"""Placing replicas one by one, and choosing which others would be stopped for them.

What is free is filled first. Then, for each further replica, the smallest set of lower-ranked
replicas on a node is looked for whose end makes it fit; the node whose set is least bad is taken.
Equal or higher rank is never touched.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

from exporter.cluster import RESOURCES, Blocked, Card, Node, Resources
from exporter.planning.state import UNLIMITED, State, admitted, share_of


@dataclass(frozen=True, slots=True)
class Stop:
    """Replicas of one model that would be stopped on one node."""

    model: str
    node: str
    count: int
    keeps: int
    """Replicas that the model has left when all stops are made."""
    below_min: bool
    """Whether that is fewer than its card's min_replicas."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The node that misses least, and by how much."""

    node: str
    misses: Resources
    """What one more replica would need there beyond what could be made free."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What it takes to place some more replicas."""

    placed: int
    """How many of them fit."""
    stops: tuple[Stop, ...]
    blocked: tuple[Blocked, ...]
    """What stops the next one, where not all fit."""
    nearest: Nearest | None = None

    @property
    def preempted(self) -> dict[str, int]:
        """Replicas stopped, by model."""
        counts: Counter[str] = Counter()
        for stop in self.stops:
            counts[stop.model] += stop.count
        return dict(sorted(counts.items()))


def place(state: State, card: Card, more: int) -> Placement:
    stopped: list[tuple[str, str]] = []
    done = 0
    blocked: tuple[Blocked, ...] = ()
    nearest = None
    sets = _Sets(state, card)
    spread = card.nodes_per_replica > 1
    if spread:
        more = min(more, MOST_GROUPS)
    else:
        done = _fill(state, card, more)
    while done < more:
        step = _start_group(state, card) if spread else _start_one(state, card, sets)
        if not isinstance(step, list):
            blocked, nearest = step
            break
        stopped += step
        done += 1
        if not spread and sets.roomy():
            # Small requests in the place of a large replica: all at once what one at a time gives.
            done += _fill(state, card, more - done)
            sets.forget_all()
    counts = Counter(stopped)
    stops = []
    for (model, node), count in sorted(counts.items()):
        keeps = state.current[model]
        least = state.cards[model].min_replicas
        stops.append(Stop(model, node, count, keeps, keeps < least))
    return Placement(done, tuple(stops), blocked, nearest)


_Refusal = tuple[tuple[Blocked, ...], Nearest | None]
_ROOMY = 64
"""Further replicas that fit on a node, from which on they are placed at once."""
MOST_GROUPS = 10_000
"""Most replicas over several nodes that are placed one by one."""


class _Sets:
    """What would be stopped on each node for one more, and on which node that is least bad.

    Kept from replica to replica: only nodes where something changed are looked at anew.
    """

    def __init__(self, state: State, card: Card) -> None:
        self._state = state
        self._card = card
        self._known: dict[str, tuple[_Badness, list[Card]] | None] = {}
        self._best: list[tuple[_Badness, str]] = []
        self._nodes = {node.name: node for node in state.usable(card)}
        self._changed = set(self._nodes)
        self._last = ""

    def forget(self, node: str) -> None:
        """Something changed on the node."""
        if node in self._nodes:
            self._changed.add(node)

    def forget_all(self) -> None:
        """Something may have changed on each node."""
        self._changed.update(self._nodes)

    def least_bad(self) -> tuple[Node, list[Card]] | None:
        """The node, and what would be stopped there; None where no node helps."""
        for name in self._changed:
            found = _smallest_set(self._state, self._nodes[name], self._card)
            known = None if found is None else (_badness(found), found)
            self._known[name] = known
            if known is not None:
                heapq.heappush(self._best, (known[0], name))
        self._changed.clear()
        while self._best:
            badness, name = self._best[0]
            known = self._known[name]
            if known is not None and known[0] == badness:
                self._last = name
                return self._nodes[name], known[1]
            heapq.heappop(self._best)
        return None

    def roomy(self) -> bool:
        """Whether many more fit where the last one was placed."""
        room = self._state.free[self._last] if self._last else Resources()
        return self._state.fit(room, self._card.request) > _ROOMY


_Badness = tuple[int, int, int]


def _fill(state: State, card: Card, more: int) -> int:
    """Places what is free, node by node in the order of names, up to `more`."""
    left = most = min(more, admitted(state, card, Resources(), 0))
    for node in state.usable(card):
        if not left:
            break
        count = min(state.fit(state.free[node.name], card.request), left)
        if count:
            state.start(card, node.name, count=count)
            left -= count
    return most - left


def _start_one(state: State, card: Card, sets: _Sets) -> list[tuple[str, str]] | _Refusal:
    """Places one replica: the (model, node) of each that is stopped for it, or what blocks it."""
    if admitted(state, card, *state.owners_lower(card)) < 1:
        return _refusal(state, card) or ((), None)
    # the quota first: what is stopped for it may be all that a node needs
    stopped = _stop_for_quota(state, card)
    for its, where in stopped:
        state.stop(where, its.model)
        sets.forget(where)
    best = sets.least_bad()
    if best is None:
        for its, where in stopped:
            state.start(its, where)
            sets.forget(where)
        return _refusal(state, card) or ((), None)
    node, victims = best
    for its in victims:
        state.stop(node.name, its.model)
    if stopped and victims:
        both = [*stopped, *((its, node.name) for its in victims)]
        stopped = _give_back(state, node, card, both)
        for _, where in both:
            sets.forget(where)
    else:
        stopped += [(its, node.name) for its in victims]
    state.start(card, node.name)
    sets.forget(node.name)
    return [(its.model, where) for its, where in stopped]


def _badness(victims: list[Card]) -> _Badness:
    """What makes one set of victims worse than another, the node's name aside."""
    ranks = [its.order for its in victims]
    return max(ranks, default=-UNLIMITED), sum(ranks), len(ranks)


def _smallest_set(state: State, node: Node, card: Card) -> list[Card] | None:
    """The smallest set of the node's lower-ranked replicas whose end makes one more fit."""
    room = state.free[node.name]
    if state.fit(room, card.request):
        return []
    room += state.lower(node, card)
    if not state.fit(room, card.request):
        return None
    kept_out = []
    candidates = [
        its for its in state.victims(node, card) for _ in range(state.here[node.name][its.model])
    ]
    for its in sorted(candidates, key=lambda its: _to_give_back(its, node, state)):
        if state.fit(room - its.request, card.request):
            room -= its.request
        else:
            kept_out.append(its)
    return kept_out


def _give_back(
    state: State, node: Node, card: Card, stopped: list[tuple[Card, str]]
) -> list[tuple[Card, str]]:
    """What of the stopped is needed for one more on the node; all else runs again."""
    needed = []
    for its, where in sorted(stopped, key=lambda item: _to_give_back(item[0], node, state)):
        state.start(its, where)
        fits = state.fit(state.free[node.name], card.request)
        if not fits or state.within_quota(card, Resources(), 0) < 1:
            state.stop(where, its.model)
            needed.append((its, where))
    return needed


def _to_give_back(its: Card, node: Node, state: State) -> tuple[int, float, str]:
    """The order in which stopped replicas are given back."""
    return -its.order, _share(its.request, node, state), its.model


def _share(request: Resources, node: Node, state: State) -> float:
    """A replica's largest share of the node's resources."""
    return max(
        (
            request.of(name) / node.allocatable.of(name)
            for name in state.named
            if node.allocatable.of(name) and request.of(name)
        ),
        default=0.0,
    )


def _stop_for_quota(state: State, card: Card) -> list[tuple[Card, str]]:
    """The owner's own lower-ranked replicas to stop, so that the quota admits one more.

    All of them would do (the caller knows), so they are dropped, and each that can stay is given
    back: highest rank first, within a rank those that help less, so that few are stopped, and of
    equal ones the last by name.
    """
    if state.within_quota(card, Resources(), 0) >= 1:
        return []
    left, _ = state.quota_left(card)
    asked = {name: card.request.of(name) for name in left}
    short = [name for name in left if asked[name] and left[name] < asked[name]]
    given_back, count = state.owners_lower(card)
    candidates = [
        (its, node.name)
        for node in state.nodes
        for its in state.victims(node, card)
        if its.owner == card.owner
        for _ in range(state.here[node.name][its.model])
    ]
    candidates.sort(key=lambda item: (item[0].model, item[1]), reverse=True)
    candidates.sort(key=lambda item: (-item[0].order, _help(item[0], card, short)))
    stopped = []
    for its, where in candidates:
        if state.within_quota(card, given_back - its.request, count - 1) >= 1:
            given_back, count = given_back - its.request, count - 1
        else:
            stopped.append((its, where))
    return stopped


def _help(its: Card, card: Card, short: list[str]) -> float:
    """How much of what one more needs of the quota the end of a replica gives, at most."""
    shares = (its.request.of(name) / card.request.of(name) for name in short)
    return max(shares, default=0.0)


def _start_group(state: State, card: Card) -> list[tuple[str, str]] | _Refusal:
    """Places one replica that spans several nodes, in what is free, on the roomiest first."""
    refusal = _refusal(state, card)
    if refusal is not None:
        return refusal
    part = share_of(card)
    fits = {node.name: state.fit(state.free[node.name], part) for node in state.usable(card)}
    chosen = sorted(fits, key=lambda name: (-fits[name], name))[: card.nodes_per_replica]
    state.start(card, *chosen)
    return []


def _refusal(state: State, card: Card) -> _Refusal | None:
    """All that stops one more replica, even after preemption; None where it fits."""
    reasons, nearest = _blocked_by_nodes(state, card)
    # replicas over several nodes stop nobody
    gone = state.owners_lower(card) if card.nodes_per_replica == 1 else (Resources(), 0)
    if state.within_quota(card, *gone) < 1:
        reasons.add(Blocked.QUOTA)
    if card.max_replicas is not None and state.current[card.model] >= card.max_replicas:
        reasons.add(Blocked.MAX_REPLICAS)
    if not reasons:
        return None
    return tuple(reason for reason in Blocked if reason in reasons), nearest


def _blocked_by_nodes(state: State, card: Card) -> tuple[set[Blocked], Nearest | None]:
    """What one more replica lacks, on the node that misses least of it."""
    part = share_of(card)
    spread = card.nodes_per_replica > 1
    nodes = state.usable(card)
    rooms = {node.name: state.free[node.name] for node in nodes}
    if not spread:
        rooms = {node.name: rooms[node.name] + state.lower(node, card) for node in nodes}
    if sum(state.fit(room, part) > 0 for room in rooms.values()) >= card.nodes_per_replica:
        return set(), None
    if len(nodes) < card.nodes_per_replica:
        return {Blocked.NO_NODE}, None
    misses = []
    for node, room in rooms.items():
        lacks = {
            name: part.of(name) - room.of(name)
            for name in RESOURCES
            if name in state.named and part.of(name) > max(room.of(name), 0)
        }
        if lacks:
            share = max(amount / part.of(name) for name, amount in lacks.items())
            misses.append((share, node, lacks))
    _, nearest, lacks = min(misses, key=lambda found: found[:2])
    reasons = {Blocked(resource) for resource in lacks}
    large_enough = sum(state.fit(node.allocatable, part) > 0 for node in nodes)
    if large_enough < card.nodes_per_replica:
        reasons.add(Blocked.NO_NODE)
    return reasons, Nearest(nearest, Resources(**lacks))

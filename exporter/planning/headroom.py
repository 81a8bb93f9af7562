"""How many more replicas of a model fit, and which replicas would be stopped to make the room.

A replica sits on one node, so room is counted node by node: two nodes with half a replica's worth
free hold none. Replicas of lower-ranked classes may be stopped, those of equal or higher rank
never. It resembles what the Kubernetes scheduler does, which also weighs disruption budgets and
start times: a forecast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from exporter.cluster import RESOURCES, Card, Cluster, Quota, Resources, Unplanned, Where
from exporter.planning.placing import Placement, place
from exporter.planning.state import UNLIMITED, State, admitted, groups, share_of


@dataclass(frozen=True, slots=True)
class Headroom:
    """How many more replicas fit."""

    free: int
    """In what is free now."""
    preempting: int | None
    """More, by stopping replicas of lower-ranked classes; None where it is not computed."""
    limited: bool = False
    """Whether counting stopped at the limit: the numbers are lower bounds."""

    @property
    def room(self) -> int:
        """Both together."""
        return self.free + (self.preempting or 0)


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A node, and what is free on it."""

    node: str
    allocatable: Resources
    free: Resources
    replicas: Mapping[str, int]
    """Replicas on it, by model."""


def cannot_tell(cluster: Cluster, model: str) -> Unplanned | None:
    """Why headroom cannot be told; None where it can."""
    card = cluster.cards.get(model)
    if card is None:
        return Unplanned.NO_CARD
    if cluster.inventory is None:
        return Unplanned.NO_INVENTORY
    # without nodes nothing fits, so nothing that is asked for is unlimited
    limiting = cluster.inventory.named if cluster.inventory.nodes else RESOURCES
    asks = any(card.request.of(name) for name in limiting)
    quota = cluster.quotas.get(card.owner, Quota())
    bounded = quota.replicas is not None or any(
        card.request.of(name) and quota.of(name) is not None for name in RESOURCES
    )
    if not asks and card.max_replicas is None and not bounded:
        return Unplanned.NO_REQUESTS
    return None


_Rooms = list[tuple[tuple[int, ...], int]]
"""Amounts of the limiting resources, and how many nodes have just these."""


class Planner:
    """Headroom and placements of all models of one cluster, over work that they share."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._state = State(cluster)
        self._free: dict[Where, _Rooms] = {}
        self._reach: dict[tuple[int | None, Where], _Rooms] = {}
        self._sums: dict[tuple[object, ...], int] = {}
        self._given_back: dict[tuple[str, int | None], tuple[Resources, int]] = {}

    def headroom(self, model: str, limit: int | None = None) -> Headroom | Unplanned:
        """How many more replicas of the model fit, up to `limit`, or why nobody can tell."""
        reason = cannot_tell(self.cluster, model)
        if reason is not None:
            return reason
        state = self._state
        card = self.cluster.cards[model]
        if card.nodes_per_replica > 1:
            part = share_of(card)
            fits = [state.fit(state.free[node.name], part) for node in state.usable(card)]
            free = min(groups(fits, card.nodes_per_replica), admitted(state, card, Resources(), 0))
            stop = free if limit is None else min(free, limit)
            return Headroom(stop, None, stop < free)
        free = self._sum(("free", None, card.where), self._free_of(card), card.request)
        free = min(free, admitted(state, card, Resources(), 0))
        reach = self._sum(("reach", card.power, card.where), self._reach_of(card), card.request)
        owner = (card.owner, card.power)
        if owner not in self._given_back:
            self._given_back[owner] = state.owners_lower(card)
        reach = max(min(reach, admitted(state, card, *self._given_back[owner])), free)
        if limit is None:
            return Headroom(free, reach - free)
        return Headroom(min(free, limit), min(reach, limit) - min(free, limit), reach > limit)

    def place(self, model: str, more: int) -> Placement:
        """Places `more` replicas: first what is free, then one at a time by stopping others.

        The model must be one whose headroom can be told (`cannot_tell`).
        """
        return place(self._state.copy(), self.cluster.cards[model], more)

    def place_together(self, more: Mapping[str, int]) -> dict[str, int]:
        """Places the `more` of all models, highest rank first, then by name.

        Gives what of each stays out.
        """
        state = self._state.copy()
        cards = self.cluster.cards
        stays_out = {}
        for model in sorted(more, key=lambda model: (-cards[model].order, model)):
            placement = place(state, cards[model], more[model])
            stays_out[model] = more[model] - placement.placed
        return stays_out

    def rooms(self) -> tuple[NodeRoom, ...]:
        """All nodes, by name, and what is free on each."""
        free = self._state.free
        return tuple(
            NodeRoom(node.name, node.allocatable, free[node.name], node.replicas)
            for node in self._state.nodes
        )

    def _free_of(self, card: Card) -> _Rooms:
        """What is free on the nodes that the card's replicas may be placed on."""
        found = self._free.get(card.where)
        if found is None:
            state = self._state
            found = self._vectors(Counter(state.free[node.name] for node in state.usable(card)))
            self._free[card.where] = found
        return found

    def _reach_of(self, card: Card) -> _Rooms:
        """What would be free there with all replicas gone that the card outranks."""
        found = self._reach.get((card.power, card.where))
        if found is None:
            state = self._state
            nodes = state.usable(card)
            found = self._vectors(
                Counter(state.free[node.name] + state.lower(node, card) for node in nodes)
            )
            self._reach[card.power, card.where] = found
        return found

    def _vectors(self, rooms: Mapping[Resources, int]) -> _Rooms:
        """Equal rooms are one case: the amounts of the limiting resources, and how many nodes."""
        named = sorted(self._state.named)
        vectors: Counter[tuple[int, ...]] = Counter()
        for room, count in rooms.items():
            vectors[tuple(room.of(name) for name in named)] += count
        return list(vectors.items())

    def _sum(self, kind: tuple[object, ...], rooms: _Rooms, request: Resources) -> int:
        """How many requests fit into the rooms of this kind, counted once for equal requests."""
        found = self._sums.get((kind, request))
        if found is None:
            named = sorted(self._state.named)
            asked = [(at, request.of(name)) for at, name in enumerate(named) if request.of(name)]
            if asked:
                found = sum(
                    count * max(min([room[at] // amount for at, amount in asked]), 0)
                    for room, count in rooms
                )
            else:
                found = UNLIMITED * len(rooms)
            self._sums[kind, request] = found
        return found

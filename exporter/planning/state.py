"""What is free and who is where, while replicas are placed and stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from exporter.cluster import RESOURCES, Card, Cluster, Node, Resources, Where

UNLIMITED = 2**53
"""More replicas than any cluster holds: nothing limits them."""


class State:
    """What is free and who is where, while replicas are placed and stopped."""

    def __init__(self, cluster: Cluster) -> None:
        inventory = cluster.inventory
        self.cards = cluster.cards
        self.quotas = cluster.quotas
        self.nodes = tuple(
            sorted(inventory.nodes if inventory is not None else (), key=lambda node: node.name)
        )
        self.named = inventory.named if inventory is not None else frozenset[str]()
        self.here: dict[str, dict[str, int]] = {
            node.name: dict(node.replicas) for node in self.nodes
        }
        self.free: dict[str, Resources] = {}
        for node in self.nodes:
            held = node.other
            for model, count in node.replicas.items():
                held += self.part_of(model).times(count)
            self.free[node.name] = node.allocatable - held
        parts: Counter[str] = Counter()
        for node in self.nodes:
            parts.update(node.replicas)
        if inventory is not None:
            parts.update(inventory.elsewhere)
        self._usable: dict[Where, tuple[Node, ...]] = {}
        if not any(node.taints for node in self.nodes):
            self._usable[Where()] = self.nodes
        self.current = {
            model: cluster.current.get(model, parts[model] // card.nodes_per_replica)
            for model, card in cluster.cards.items()
        }
        self.held: dict[str, tuple[Resources, int]] = {}
        """What the replicas of each owner with a quota hold, and how many they are."""
        for owner in self.quotas:
            self.held[owner] = (Resources(), 0)
        for model, count in self.current.items():
            self._hold(self.cards[model], count)

    def copy(self) -> State:
        """A state of its own, to place and stop in."""
        twin = State.__new__(State)
        twin.cards, twin.quotas = self.cards, self.quotas
        twin.nodes, twin.named = self.nodes, self.named
        # what it knows of nodes never changes, so that it is found out once
        twin._usable = self._usable
        twin.here = {name: dict(replicas) for name, replicas in self.here.items()}
        twin.free = dict(self.free)
        twin.current = dict(self.current)
        twin.held = dict(self.held)
        return twin

    def _hold(self, card: Card, count: int) -> None:
        """So many more replicas of the model hold what its owner may hold."""
        if card.owner in self.held:
            held, replicas = self.held[card.owner]
            self.held[card.owner] = (held + card.request.times(count), replicas + count)

    def part_of(self, model: str) -> Resources:
        """What one replica, or one part of it, holds on its node."""
        card = self.cards.get(model)
        return share_of(card) if card is not None else Resources()

    def usable(self, card: Card) -> tuple[Node, ...]:
        """The nodes that the model's replicas may be placed on, by name."""
        found = self._usable.get(card.where)
        if found is None:
            found = tuple(node for node in self.nodes if card.where.admits(node))
            self._usable[card.where] = found
        return found

    def fit(self, room: Resources, request: Resources) -> int:
        """How many requests fit into the room, at least 0."""
        fits = UNLIMITED
        for name in self.named:
            asked = request.of(name)
            if asked:
                fits = min(fits, room.of(name) // asked)
        return max(fits, 0)

    def victims(self, node: Node, card: Card) -> Iterable[Card]:
        """The cards of what may be stopped on the node."""
        for model, count in self.here[node.name].items():
            its = self.cards.get(model)
            if count and its is not None and card.outranks(its) and its.nodes_per_replica == 1:
                yield its

    def lower(self, node: Node, card: Card) -> Resources:
        """What replicas of lower-ranked classes hold on the node."""
        held = Resources()
        for its in self.victims(node, card):
            held += its.request.times(self.here[node.name][its.model])
        return held

    def owners_lower(self, card: Card) -> tuple[Resources, int]:
        """What the owner's lower-ranked replicas hold everywhere, and how many they are.

        Nothing for an owner without quota, to whom nothing needs to be given back.
        """
        held, count = Resources(), 0
        for node in self.nodes if card.owner in self.quotas else ():
            for its in self.victims(node, card):
                if its.owner == card.owner:
                    number = self.here[node.name][its.model]
                    held, count = held + its.request.times(number), count + number
        return held, count

    def quota_left(self, card: Card) -> tuple[Mapping[str, int], int | None]:
        """What is left of the owner's quota: of each limited resource, and of replicas."""
        quota = self.quotas.get(card.owner) if card.owner else None
        if quota is None:
            return {}, None
        held, count = self.held[card.owner]
        limits = {name: quota.of(name) for name in RESOURCES}
        left = {name: limit - held.of(name) for name, limit in limits.items() if limit is not None}
        return left, None if quota.replicas is None else quota.replicas - count

    def within_quota(self, card: Card, given_back: Resources, replicas: int) -> int:
        """How many more replicas the owner's quota admits when so much is given back."""
        left, count = self.quota_left(card)
        fits = UNLIMITED if count is None else max(count + replicas, 0)
        for name, amount in left.items():
            asked = card.request.of(name)
            if asked:
                fits = min(fits, max((amount + given_back.of(name)) // asked, 0))
        return fits

    def stop(self, node: str, model: str) -> None:
        """Stops one replica."""
        self.here[node][model] -= 1
        self.current[model] -= 1
        self._hold(self.cards[model], -1)
        self.free[node] += self.part_of(model)

    def start(self, card: Card, *nodes: str, count: int = 1) -> None:
        """Places so many replicas: a part of each on each of the nodes."""
        for node in nodes:
            self.here[node][card.model] = self.here[node].get(card.model, 0) + count
            self.free[node] -= share_of(card).times(count)
        self.current[card.model] += count
        self._hold(card, count)


def share_of(card: Card) -> Resources:
    """What a replica holds on each of its nodes, rounded up."""
    k = card.nodes_per_replica
    request = card.request
    return Resources(-(-request.memory // k), -(-request.cores // k), -(-request.gpus // k))


def groups(fits: list[int], k: int) -> int:
    """The largest r with sum over nodes of min(fit, r) >= r * k: r replicas on k nodes each."""
    low, high = 0, sum(fits) // k
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(fit, middle) for fit in fits) >= middle * k:
            low = middle
        else:
            high = middle - 1
    return low


def admitted(state: State, card: Card, given_back: Resources, replicas: int) -> int:
    """How many more replicas max_replicas and the owner's quota admit."""
    most = state.within_quota(card, given_back, replicas)
    if card.max_replicas is not None:
        most = min(most, max(card.max_replicas - state.current[card.model], 0))
    return most

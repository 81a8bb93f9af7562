"""The cluster, as frozen dataclasses: nodes, what is placed on them, and what operators declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge

RESOURCES = ("memory", "cores", "gpus")
"""In the order in which they are told."""
KEEPS_AWAY = ("NoSchedule", "NoExecute")
"""Effects of taints that keep replicas away."""


class Blocked(StrEnum):
    """What stops one more replica even after preemption."""

    MEMORY = "memory"
    CORES = "cores"
    GPUS = "gpus"
    QUOTA = "quota"
    MAX_REPLICAS = "max_replicas"
    NO_NODE = "no_node"


class Unplanned(StrEnum):
    """Why needed or headroom is not told."""

    UNMEASURED = "unmeasured"
    NO_DEMAND = "no_demand"
    WARMING_UP = "warming_up"
    INCOMPLETE = "incomplete"
    SLOTS_UNKNOWN = "slots_unknown"
    NO_INVENTORY = "no_inventory"
    NO_REQUESTS = "no_requests"
    NO_CARD = "no_card"


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of each resource. Integers, so that sums and quotients are exact."""

    memory: int = 0
    """Bytes."""
    cores: int = 0
    """Thousandths of a core."""
    gpus: int = 0
    """Thousandths of a GPU."""

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.memory + other.memory, self.cores + other.cores, self.gpus + other.gpus
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.memory - other.memory, self.cores - other.cores, self.gpus - other.gpus
        )

    def times(self, count: int) -> Resources:
        """The amount that so many replicas take."""
        return Resources(self.memory * count, self.cores * count, self.gpus * count)

    def of(self, resource: str) -> int:
        """The amount of one resource."""
        amount: int = getattr(self, resource)
        return amount


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps replicas away from a node that do not tolerate it."""

    key: str
    value: str
    effect: str
    """`NoSchedule` or `NoExecute`; `PreferNoSchedule` keeps nobody away."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """Taints that do not keep a model's replicas away."""

    key: str | None
    """None: any."""
    value: str | None
    """None: any."""
    effect: str | None
    """None: any."""

    def covers(self, taint: Taint) -> bool:
        """Whether the taint is tolerated."""
        return (
            self.key in (None, taint.key)
            and self.value in (None, taint.value)
            and self.effect in (None, taint.effect)
        )


@dataclass(frozen=True, slots=True)
class Where:
    """Nodes that a model's replicas may be placed on. The same for many models."""

    selector: frozenset[tuple[str, str]] = frozenset()
    """Labels that a node must have."""
    tolerations: frozenset[Toleration] = frozenset()

    def admits(self, node: Node) -> bool:
        """Whether replicas may be placed on the node, room aside."""
        return all(node.labels.get(key) == value for key, value in self.selector) and all(
            any(one.covers(taint) for one in self.tolerations)
            for taint in node.taints
            if taint.effect in KEEPS_AWAY
        )


@dataclass(frozen=True, slots=True)
class Card:
    """What an operator declares about a model."""

    model: str
    rank: int | None = None
    """Of its class: it outranks every class of lower rank. None: it has no class."""
    class_name: str = ""
    owner: str = ""
    request: Resources = Resources()
    """Of one replica; split into equal parts over its nodes."""
    nodes_per_replica: int = 1
    min_replicas: int = 0
    max_replicas: int | None = None
    spare_replicas: int = 0
    utilization: float = 1.0
    """Share of the measured tokens per second that a replica is planned to serve."""
    target: float | None = None
    """Tokens per second."""
    profile: str | None = None
    """The measurement in force; None: the newest."""
    reserve: int | None = None
    """Slots that are to stay free; None: 1 of exclusive slots, 0 of evictable ones."""
    where: Where = Where()
    preempts: bool = True
    """Whether its replicas stop others at all."""

    def outranks(self, other: Card) -> bool:
        """Whether the other's replicas may be stopped for this model's."""
        power = self.power
        return power is not None and other.rank is not None and other.rank < power

    @property
    def power(self) -> int | None:
        """The rank below which it stops others; None: it stops none."""
        return self.rank if self.preempts else None

    @property
    def order(self) -> int:
        """The rank, for sorting; models without a class come last."""
        return self.rank if self.rank is not None else -(2**53)


@dataclass(frozen=True, slots=True)
class Quota:
    """What an owner's replicas may hold together. None: not limited."""

    memory: int | None = None
    cores: int | None = None
    gpus: int | None = None
    replicas: int | None = None

    def of(self, resource: str) -> int | None:
        """The limit of one resource."""
        limit: int | None = getattr(self, resource)
        return limit


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that replicas are placed on."""

    name: str
    allocatable: Resources
    replicas: Mapping[str, int] = field(default_factory=dict)
    """Replicas (or their parts) on it, by model."""
    other: Resources = Resources()
    """Held by what is no replica of ours; never stopped."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of those that some card selects by, at least."""
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Priority:
    """A PriorityClass of Kubernetes."""

    value: int
    preempts: bool = True
    """Whether its pods stop others at all."""


@dataclass(frozen=True, slots=True)
class States:
    """A model's replicas by what the cluster does with them."""

    ready: Annotated[int, Ge(0)] = 0
    starting: Annotated[int, Ge(0)] = 0
    """Bound to a node, and not ready yet."""
    draining: Annotated[int, Ge(0)] = 0
    """Terminating: they hold what they hold until they end, and do not count as current."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All nodes. `named`: the resources that some node names; others are not limited."""

    nodes: tuple[Node, ...]
    named: frozenset[str]
    states: Mapping[str, States] | None = None
    """By model; None where the inventory cannot tell."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Replicas (or their parts) that hold capacity and that nothing is to be done with, by model:
    on nodes that nothing more is placed on, or such as must not be stopped."""
    priorities: Mapping[str, Priority] | None = None
    """PriorityClasses by name; None where the inventory has none."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """All that planning needs to know of the cluster."""

    cards: Mapping[str, Card]
    inventory: Inventory | None
    current: Mapping[str, int] = field(default_factory=dict)
    """Replicas that hold capacity, by model, where more is known than what is placed."""
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """By owner."""

    def current_of(self, model: str) -> int:
        """Replicas of the model that hold capacity."""
        return self.current.get(model, placed(self, model))


def placed(cluster: Cluster, model: str) -> int:
    """Replicas of the model that the inventory places."""
    if cluster.inventory is None:
        return 0
    inventory = cluster.inventory
    parts = sum(node.replicas.get(model, 0) for node in inventory.nodes)
    parts += inventory.elsewhere.get(model, 0)
    card = cluster.cards.get(model)
    return parts // card.nodes_per_replica if card is not None else parts

"""What is declared of models, owners and nodes, and how they are planned."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import CliSuppress

from exporter.cluster import Taint, Where
from exporter.quantities import Duration, Memory, Thousandths, show_duration
from exporter.settings.access import KubernetesAccess
from exporter.settings.kubernetes import (
    LabelName,
    LabelValue,
    PriorityClassName,
    ResourceName,
    TaintSettings,
    TolerationSettings,
)
from exporter.settings.parts import ContradictionError, ReadableFile, Section, Text

MOST_REPLICAS = 1_000_000
"""More than any cluster has."""


def _class_rank(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | dict | ClassSettings):
        raise ValueError("a rank such as 100, or {priority_class: NAME}")
    # Each of the two, so that a mistake is told of one and not of both.
    return ClassSettings.model_validate(value) if isinstance(value, dict) else value


class ClassSettings(Section):
    """A class whose rank is the value of a PriorityClass."""

    priority_class: PriorityClassName
    """PriorityClass of Kubernetes; its value is the rank."""
    rank: int | None = None
    """Rank where no cluster tells the value; its order must be that of the values."""


ClassRank = Annotated[int | ClassSettings, BeforeValidator(_class_rank)]
"""A class: its rank, or its PriorityClass."""


class CardSettings(Section):
    """What is declared about a model: its card. Amounts are those of one replica."""

    class_name: Text | None = Field(default=None, alias="class")
    """Class: it may stop replicas of classes of lower rank. Without one, none stop and none are
    stopped."""
    owner: Text | None = None
    """Owner, who may have a quota."""
    memory: Memory = 0
    """Memory, such as `40GiB`."""
    cores: Thousandths = 0
    """Cores, such as `8` or `500m`."""
    gpus: Thousandths = 0
    """GPUs."""
    nodes_per_replica: Annotated[int, Field(ge=1, le=1000)] = 1
    """Nodes that one replica spans, in equal parts."""
    min_replicas: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] = 0
    """Fewest replicas."""
    max_replicas: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] | None = None
    """Most replicas."""
    spare_replicas: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] = 0
    """Replicas on top of what the load needs."""
    utilization: Annotated[float, Field(ge=0.01, le=1)] = 1.0
    """Share of what a replica was measured to serve that is planned with."""
    target_tokens_per_second: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = (
        None
    )
    """Tokens per second that the model is to serve; without it, what was observed counts."""
    reserve: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] | None = None
    """Slots of the model that are to stay free; by default 1 of exclusive slots, 0 of evictable
    ones."""
    profile: Text | None = None
    """Measurement in force; else the newest."""
    node_selector: dict[LabelName, LabelValue] = {}
    """Labels that a node must have to hold a replica."""
    tolerations: tuple[TolerationSettings, ...] = ()
    """Taints of nodes that do not keep replicas away, in the shape that pods have them."""

    @property
    def where(self) -> Where:
        """The nodes that replicas may be placed on, for planning."""
        return Where(
            frozenset(self.node_selector.items()),
            frozenset(one.toleration for one in self.tolerations),
        )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.min_replicas:
            raise ContradictionError(
                f"min_replicas {self.min_replicas}, max_replicas {self.max_replicas}",
                "min_replicas to be at most max_replicas",
            )
        return self


class QuotaSettings(Section):
    """What an owner's replicas may hold together."""

    memory: Memory | None = None
    """Memory."""
    cores: Thousandths | None = None
    """Cores."""
    gpus: Thousandths | None = None
    """GPUs."""
    replicas: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] | None = None
    """Replicas."""


class NodeSettings(Section):
    """A node: what it has for replicas, and which replicas are on it."""

    memory: Memory | None = None
    """Memory."""
    cores: Thousandths | None = None
    """Cores."""
    gpus: Thousandths | None = None
    """GPUs."""
    replicas: dict[str, Annotated[int, Field(ge=0, le=1_000_000)]] = {}
    """Replicas by model; of one that spans nodes, its parts."""
    labels: dict[LabelName, LabelValue] = {}
    """Labels, for `node_selector` of cards."""
    taints: tuple[TaintSettings, ...] = ()
    """Taints, for `tolerations` of cards."""

    @property
    def kept_taints(self) -> tuple[Taint, ...]:
        """The taints for planning."""
        return tuple(one.taint for one in self.taints)


class KubernetesInventory(KubernetesAccess):
    """Nodes and pods of a Kubernetes cluster. They are watched."""

    model_label: LabelName = "lora-exporter/model"
    """Label of a pod that has its model, or annotation, where a label cannot hold its name. A pod
    with it is a replica, or a part of one that spans nodes."""
    gpu_resource: ResourceName = "nvidia.com/gpu"
    """Resource of nodes and pods that is a GPU."""


def _told(value: object) -> object:
    if value is None:
        raise ValueError("a mapping of keys; {} reads the cluster that the exporter runs in")
    return value


class InventorySettings(Section):
    """The cluster."""

    nodes: CliSuppress[dict[str, NodeSettings]] = {}
    """Nodes by name."""
    kubernetes: CliSuppress[Annotated[KubernetesInventory | None, BeforeValidator(_told)]] = None
    """A Kubernetes cluster, instead of `nodes`."""

    @property
    def known(self) -> bool:
        """Whether there is any inventory."""
        return bool(self.nodes) or self.kubernetes is not None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.nodes and self.kubernetes is not None:
            raise ContradictionError("nodes and kubernetes", "one of them")
        return self


class Planning(Section):
    """How models are planned."""

    interval: Annotated[Duration, Field(gt=0)] = 15.0
    """Time between two plannings."""
    demand_window: Annotated[Duration, Field(gt=0)] = 3600.0
    """Time within which the highest observed rate counts as demand. After a start it must pass
    before replicas that observed demand needs are told."""

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.demand_window < self.interval:
            raise ContradictionError(
                f"demand_window {show_duration(self.demand_window)}, "
                f"interval {show_duration(self.interval)}",
                "demand_window to be at least interval",
            )
        return self


class Measurements(Section):
    """What one replica was measured to serve."""

    file: ReadableFile | None = None
    """YAML file: for each model a list of measurements."""

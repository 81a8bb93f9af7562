"""What is declared of models, owners and nodes, and how they are planned."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_settings import CliSuppress

from exporter.quantities import Duration, Memory, Thousandths, show_duration
from exporter.settings.parts import ContradictionError, ReadableFile, Section, Text


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
    min_replicas: Annotated[int, Field(ge=0)] = 0
    """Fewest replicas."""
    max_replicas: Annotated[int, Field(ge=0)] | None = None
    """Most replicas."""
    spare_replicas: Annotated[int, Field(ge=0)] = 0
    """Replicas on top of what the load needs."""
    utilization: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of what a replica was measured to serve that is planned with."""
    target_tokens_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Tokens per second that the model is to serve; without it, what was observed counts."""
    reserve: Annotated[int, Field(ge=0)] | None = None
    """Slots of the model that are to stay free; by default 1 of exclusive slots, 0 of evictable
    ones."""
    profile: Text | None = None
    """Measurement in force; else the newest."""

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
    replicas: Annotated[int, Field(ge=0)] | None = None
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


class InventorySettings(Section):
    """The cluster."""

    nodes: CliSuppress[dict[str, NodeSettings]] = {}
    """Nodes by name."""


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

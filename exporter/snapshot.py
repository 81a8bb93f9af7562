"""A situation as a file: what a running exporter knows, to plan with later or elsewhere."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from exporter.cluster import RESOURCES, Inventory, Node, Priority, Resources, States
from exporter.documents import ConfigError, Document, problem_of
from exporter.files import write_atomically
from exporter.inventory.static import declared
from exporter.planning.demand import Seen
from exporter.planning.needed import Measurement
from exporter.planning.situation import Situation, with_seen
from exporter.quantities import Memory, Thousandths, show_size, show_thousandths
from exporter.settings import (
    CardSettings,
    ClassRank,
    ContradictionError,
    NodeSettings,
    QuotaSettings,
    Settings,
)
from exporter.settings.kubernetes import TaintSettings

MARK = "snapshot"
"""Key that tells a snapshot from a configuration."""


_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_serialization_defaults_required=True
    )


class _Amounts(_Section):
    memory: Memory = 0
    cores: Thousandths = 0
    gpus: Thousandths = 0


class _Node(NodeSettings):
    other: _Amounts = _Amounts()
    """Held by what is no replica of ours."""


class _Inventory(_Section):
    nodes: dict[str, _Node]
    states: dict[str, States] | None = None
    elsewhere: dict[str, int] = {}
    """Replicas on nodes that nothing more is placed on, or that must not be stopped."""
    priorities: dict[str, Priority] | None = None
    """PriorityClasses."""


class Snapshot(_Section):
    """The file."""

    snapshot: Literal[1]
    taken_at: Annotated[AwareDatetime, Field(ge=_EPOCH)]
    classes: dict[str, ClassRank] = {}
    owners: dict[str, QuotaSettings] = {}
    models: dict[str, CardSettings] = {}
    inventory: _Inventory | None = None
    measurements: dict[str, Measurement] = {}
    """In force, by model."""
    seen: dict[str, Seen] = {}
    """What was seen of the load, by model."""

    @model_validator(mode="after")
    def _known_classes(self) -> Self:
        for model, card in self.models.items():
            if card.class_name is not None and card.class_name not in self.classes:
                known = (
                    f"one of {', '.join(self.classes)}"
                    if self.classes
                    else "a class that classes declares"
                )
                raise ContradictionError(f"models.{model}.class {card.class_name!r}", known)
        return self


def take(settings: Settings, situation: Situation) -> Snapshot:
    """The snapshot of a situation, with what these settings declare."""
    inventory = situation.cluster.inventory
    return Snapshot(
        snapshot=1,
        taken_at=datetime.datetime.fromtimestamp(situation.at, datetime.UTC),
        classes=settings.classes,
        owners=settings.owners,
        models=settings.models,
        inventory=_wire(inventory) if inventory is not None else None,
        measurements=dict(situation.measurements),
        seen=dict(situation.seen),
    )


def situation_of(snapshot: Snapshot) -> Situation:
    """The situation that the snapshot was taken of."""
    inventory = snapshot.inventory
    cluster = declared(snapshot, _inventory(inventory) if inventory is not None else None)
    known = Situation(cluster, snapshot.measurements)
    return with_seen(known, snapshot.seen, snapshot.taken_at.timestamp())


def validated(document: Document) -> Snapshot:
    """The snapshot in a file that was read. Raises ConfigError with every problem."""
    try:
        return Snapshot.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(
            [
                problem_of(Snapshot, f"{document.path}:{document.line(item['loc'])}", item)
                for item in error.errors(include_url=False)
            ]
        ) from None


def write(file: Path, snapshot: Snapshot) -> None:
    """Writes the file, whole or not at all. Raises OSError."""
    data = snapshot.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    write_atomically(file, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def _wire(inventory: Inventory) -> _Inventory:
    named = [name for name in RESOURCES if name in inventory.named]
    nodes = {
        node.name: _Node(
            **_written(node.allocatable, named),
            replicas=dict(node.replicas),
            other=_Amounts(**_written(node.other, RESOURCES)),
            labels=dict(node.labels),
            taints=tuple(
                TaintSettings.model_validate(
                    {"key": one.key, "value": one.value, "effect": one.effect}
                )
                for one in node.taints
            ),
        )
        for node in inventory.nodes
    }
    states = dict(inventory.states) if inventory.states is not None else None
    priorities = dict(inventory.priorities) if inventory.priorities is not None else None
    return _Inventory(
        nodes=nodes, states=states, elsewhere=dict(inventory.elsewhere), priorities=priorities
    )


def _written(amounts: Resources, names: Iterable[str]) -> dict[str, Any]:
    """The amounts as people write them."""
    return {
        name: (show_size if name == "memory" else show_thousandths)(amounts.of(name))
        for name in names
    }


def _inventory(wire: _Inventory) -> Inventory:
    named = frozenset(
        name
        for name in RESOURCES
        if any(getattr(node, name) is not None for node in wire.nodes.values())
    )
    return Inventory(
        tuple(
            Node(
                name,
                Resources(node.memory or 0, node.cores or 0, node.gpus or 0),
                dict(node.replicas),
                Resources(node.other.memory, node.other.cores, node.other.gpus),
                node.labels,
                node.kept_taints,
            )
            for name, node in sorted(wire.nodes.items())
        ),
        named,
        wire.states,
        wire.elsewhere,
        wire.priorities,
    )

"""What is kept of nodes, pods and priority classes for planning: little, as there are many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from sys import intern
from typing import Any

from exporter.cluster import KEEPS_AWAY, Priority, Resources, Taint
from exporter.kubernetes.pods import is_ready, named
from exporter.kubernetes.requests import amounts, held

_OVER = ("Succeeded", "Failed")


class PodState(Enum):
    """What a pod that is bound does."""

    READY = "ready"
    STARTING = "starting"
    DRAINING = "draining"
    """Terminating: it holds what it holds until it is gone."""
    OTHER = "other"
    """Not ready, and not for the first time."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod that holds something on a node."""

    node: str
    held: Resources
    model: str | None
    state: PodState
    priority: int


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node."""

    allocatable: Resources
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    """Those that keep pods away."""
    open: bool
    """Whether more may be placed on it: ready, and not cordoned."""


def pod_facts(pod: dict[str, Any], model_label: str, gpu_resource: str) -> PodFacts | None:
    """What is kept of a pod; None where it holds nothing: not bound yet, or over."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    node = spec.get("nodeName")
    if not node or status.get("phase") in _OVER:
        return None
    model = named(meta, model_label)
    return PodFacts(
        node=intern(node),
        held=held(pod, gpu_resource),
        model=intern(model) if model is not None else None,
        state=_state(meta, status),
        priority=int(spec.get("priority") or 0),
    )


def _state(meta: dict[str, Any], status: dict[str, Any]) -> PodState:
    if meta.get("deletionTimestamp"):
        return PodState.DRAINING
    if is_ready(status):
        return PodState.READY
    restarted = any(one.get("restartCount") for one in status.get("containerStatuses") or ())
    # A container that died and is started again and again is no capacity on its way.
    return PodState.OTHER if restarted else PodState.STARTING


def node_facts(node: dict[str, Any], gpu_resource: str) -> NodeFacts:
    """What is kept of a node."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    labels = node["metadata"].get("labels") or {}
    return NodeFacts(
        allocatable=amounts(status.get("allocatable") or {}, gpu_resource),
        labels={intern(key): intern(value) for key, value in labels.items()},
        taints=tuple(
            Taint(intern(one["key"]), one.get("value") or "", one["effect"])
            for one in spec.get("taints") or ()
            if one["effect"] in KEEPS_AWAY
        ),
        open=is_ready(status) and not spec.get("unschedulable"),
    )


def priority(one: dict[str, Any]) -> Priority:
    """What is kept of a PriorityClass."""
    return Priority(int(one["value"]), one.get("preemptionPolicy") != "Never")

"""What a pod holds on its node, as the scheduler counts it.

Rules: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers,
pod-level resources and in-place resizing as of Kubernetes 1.34. Devices that pods get by resource
claims are not counted: they are not in the pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from exporter.cluster import Resources

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE])?)")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    **{unit: Fraction(1000**power) for power, unit in enumerate("MGTPE", 2)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)},
}
_NOTHING: Mapping[str, Any] = {}
_POD_LEVEL = ("memory", "cpu")
"""What a pod as a whole may ask for, its containers aside."""

Amounts = Mapping[str, Any]
"""A list of resources as the API has it: quantities by name."""


@lru_cache(4096)
def quantity(text: str, scale: int) -> int:
    """A quantity such as `1500m`, `40Gi` or `1e3`, times `scale`, rounded up.

    Raises ValueError for what is none.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > 60:
        raise ValueError("no quantity")
    number, exponent, suffix = match.groups()
    factor = Fraction(10) ** int(exponent[1:]) if exponent else _SUFFIXES.get(suffix, Fraction(1))
    amount = Fraction(number) * factor * scale
    return -(-amount.numerator // amount.denominator)


def amounts(found: Amounts, gpu_resource: str) -> Resources:
    """The amounts of a list of resources that are counted."""
    memory, cpu, gpu = found.get("memory"), found.get("cpu"), found.get(gpu_resource)
    return Resources(
        quantity(str(memory), 1) if memory is not None else 0,
        quantity(str(cpu), 1000) if cpu is not None else 0,
        quantity(str(gpu), 1000) if gpu is not None else 0,
    )


def held(pod: Mapping[str, Any], gpu_resource: str) -> Resources:
    """What the pod holds: the more of what its containers ask for together and what it takes to
    start them one after the other, and its overhead. Raises ValueError for what is no quantity."""
    spec, status = pod["spec"], pod.get("status") or _NOTHING
    infeasible = _resize_is_infeasible(status)
    running = Resources()
    told = _told(status, "containerStatuses")
    for container in spec["containers"]:
        running += _of(container, told, gpu_resource, infeasible)
    told = _told(status, "initContainerStatuses")
    sidecars, starting = Resources(), Resources()
    for container in spec.get("initContainers") or ():
        its = _of(container, told, gpu_resource, infeasible)
        if container.get("restartPolicy") == "Always":
            # A sidecar: from its start on it holds what it asks for.
            sidecars += its
            starting = most(starting, sidecars)
        else:
            starting = most(starting, its + sidecars)
    together = most(running + sidecars, starting)
    whole = (spec.get("resources") or _NOTHING).get("requests") or _NOTHING
    if whole:
        level = amounts({name: whole[name] for name in _POD_LEVEL if name in whole}, gpu_resource)
        together = Resources(
            level.memory if "memory" in whole else together.memory,
            level.cores if "cpu" in whole else together.cores,
            together.gpus,
        )
    return together + amounts(spec.get("overhead") or _NOTHING, gpu_resource)


def most(one: Resources, other: Resources) -> Resources:
    """The more of each resource."""
    return Resources(
        max(one.memory, other.memory), max(one.cores, other.cores), max(one.gpus, other.gpus)
    )


def _of(
    container: Mapping[str, Any],
    told: Mapping[str, Mapping[str, Any]],
    gpu_resource: str,
    infeasible: bool,
) -> Resources:
    """What one container asks for, or still holds while it is resized."""
    resources = container.get("resources") or _NOTHING
    wanted = resources.get("requests") or _NOTHING
    # Limits stand for requests that are not given.
    asked = amounts({**(resources.get("limits") or _NOTHING), **wanted}, gpu_resource)
    status = told.get(container["name"])
    if status is None:
        return asked
    actual = (status.get("resources") or _NOTHING).get("requests") or _NOTHING
    holds = most(
        amounts(actual, gpu_resource),
        amounts(status.get("allocatedResources") or _NOTHING, gpu_resource),
    )
    if infeasible and holds != Resources():
        return holds
    return most(asked, holds)


def _told(status: Mapping[str, Any], key: str) -> Mapping[str, Mapping[str, Any]]:
    """Statuses of containers by name, of those that tell what they hold."""
    found: Iterable[Mapping[str, Any]] = status.get(key) or ()
    return {one["name"]: one for one in found if one.keys() & {"resources", "allocatedResources"}}


def _resize_is_infeasible(status: Mapping[str, Any]) -> bool:
    """Whether what the containers ask for anew will never be theirs."""
    if status.get("resize") == "Infeasible":
        return True
    return any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions") or ()
    )

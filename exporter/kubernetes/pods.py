"""What is read of a pod. Shapes: the API's `v1.Pod`."""

from __future__ import annotations

from typing import Any


def is_ready(status: dict[str, Any]) -> bool:
    """Whether the pod's or node's condition `Ready` is true."""
    return condition(status, "Ready") == "True"


def condition(status: dict[str, Any], kind: str) -> str | None:
    """The status of a condition: `True`, `False` or `Unknown`; None where it has none."""
    for one in status.get("conditions") or ():
        if one.get("type") == kind:
            found: str | None = one.get("status")
            return found
    return None


def named(meta: dict[str, Any], label: str) -> str | None:
    """The value of a label, else of the annotation of the same name: labels hold no slash, which
    names of models may have."""
    for values in (meta.get("labels"), meta.get("annotations")):
        found: str | None = (values or {}).get(label)
        if found:
            return found
    return None

"""Targets of the settings: those that stand there, and those that are found for a group."""

from __future__ import annotations

from dataclasses import replace

from exporter.discovery.base import Found
from exporter.fleet import CustomMap, Target
from exporter.settings import TargetGroup


def make_target(group: TargetGroup, url: str) -> Target:
    """One address of a group, read as the group says."""
    return Target(
        url=url,
        group=group.name,
        engine=group.engine,
        model=group.model,
        replica=group.replica_name,
        max=group.slots.max,
        base_uses_slot=group.slots.base_uses_slot,
        prefix=group.path_prefix or "",
        metrics_path=group.metrics_path,
        model_relabel=tuple(group.model_relabel.items()),
        state_url=group.state.url if group.state is not None else None,
        key_prefix=group.state.key_prefix if group.state is not None else "",
        ray_dashboard=group.ray_dashboard,
        custom=_custom_map(group),
    )


def _custom_map(group: TargetGroup) -> CustomMap | None:
    custom = group.custom
    if custom is None:
        return None
    label = custom.adapter_label or ""
    return CustomMap(custom.path, custom.format, custom.slot_kind, custom.paths, label)


def discovered_target(group: TargetGroup, found: Found) -> Target:
    """One address that was found for a group. What the operator says of the group goes first."""
    return replace(
        make_target(group, found.url),
        model=group.model or found.model,
        replica=found.replica,
        node=found.node,
        namespace=found.namespace,
        pod=found.pod,
    )

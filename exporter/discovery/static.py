"""Targets that stand in the settings."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.fleet import CustomMap, Target
from exporter.settings import Settings, TargetGroup


def targets(settings: Settings) -> tuple[Target, ...]:
    """The targets of all groups."""
    return tuple(target for group in settings.targets for target in _of(group))


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


def _of(group: TargetGroup) -> Iterable[Target]:
    for url in group.static:
        yield make_target(group, url)

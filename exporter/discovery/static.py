"""Targets that stand in the settings."""

from __future__ import annotations

from collections.abc import Iterable

from exporter.fleet import Target
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
        state_url=group.state.url if group.state is not None else None,
        key_prefix=group.state.key_prefix if group.state is not None else "",
        ray_dashboard=group.ray_dashboard,
    )


def _of(group: TargetGroup) -> Iterable[Target]:
    for url in group.static:
        yield make_target(group, url)

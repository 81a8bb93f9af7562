"""`lora-exporter probe`: one address read once, with the settings of a group or with none."""

from __future__ import annotations

from exporter.engines import AUTO, ENGINES
from exporter.settings import Auth, Settings, TargetGroup, normalise_url

GROUP = "probe"
CUSTOM = "custom"


class ProbeError(Exception):
    """A probe that cannot be made. The message says what to do."""


def settings_of(settings: Settings, address: str, engine: str | None, name: str | None) -> Settings:
    """The settings with this address as the only target. Raises ProbeError.

    It is read as the group that is named, or that has it among its targets. A mapping may also be
    tried on an address of no group; credentials and headers then stay at home.
    """
    try:
        url = normalise_url(address if "://" in address else f"http://{address}")
    except ValueError as error:
        raise ProbeError(f"{address}: wanted {error}") from None
    if engine is not None and engine != AUTO and engine not in ENGINES:
        raise ProbeError(f"--engine: wanted one of {', '.join((AUTO, *ENGINES))}")
    group = _group(settings, url, engine, name)
    if engine is not None:
        group = group.model_copy(update={"engine": engine})
    if group.engine == CUSTOM and group.custom is None:
        wanted = "custom: in a group of --config.file, which maps the answer"
        raise ProbeError(f"engine custom: wanted {wanted}")
    only = group.model_copy(update={"static": (url,)})
    return settings.model_copy(update={"targets": (only,)})


def _group(settings: Settings, url: str, engine: str | None, name: str | None) -> TargetGroup:
    if name is not None:
        for group in settings.targets:
            if group.name == name:
                return group
        known = ", ".join(group.name for group in settings.targets) or "none"
        raise ProbeError(f"--group: no group {name}; there are: {known}")
    for group in settings.targets:
        if url in group.static:
            return group
    mapping = [group for group in settings.targets if group.custom is not None]
    if engine == CUSTOM and len(mapping) > 1:
        names = ", ".join(group.name for group in mapping)
        raise ProbeError(f"several groups map an answer ({names}); choose one with --group")
    if engine == CUSTOM and mapping:
        return mapping[0].model_copy(update={"auth": Auth(), "headers": {}})
    return TargetGroup(name=GROUP)

"""Where settings come from: a YAML file, then the environment, then flags; the later wins.

Every problem names its place (file and line, variable or flag), the key, what was found and what
is wanted, and all of them are told at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from exporter.cluster import RESOURCES
from exporter.documents import (
    ConfigError,
    Document,
    Loc,
    Problem,
    key_text,
    problem_of,
    read_document,
)
from exporter.settings import Settings

ENV_PREFIX = "LORA_EXPORTER_"
FILE_VARIABLE = "LORA_EXPORTER_CONFIG__FILE"
DEFAULT_GROUP = "default"
"""Group of the targets that are given by `--target`."""


def load(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
) -> Settings:
    """All settings. `flags`: parsed flags, nested by section; `targets`: addresses to add.

    Raises ConfigError with every problem.
    """
    flags = dict(flags or {})
    document = read_document(file) if file is not None else Document("", {}, None)
    try:
        environment = EnvSettingsSource(Settings)()
    except SettingsError as error:
        place = f"environment variables {ENV_PREFIX}*"
        raise ConfigError([Problem(place, "", "no valid JSON", str(error))]) from None
    problems = list(_unknown_variables())
    merged = _merge(_merge(document.data, environment), flags)
    groups = merged.get("targets")
    listed = len(groups) if isinstance(groups, list) else 0
    if targets:
        added = {"name": DEFAULT_GROUP, "static": list(targets)}
        merged["targets"] = [*(groups if isinstance(groups, list) else []), added]
    settings = None
    try:
        settings = Settings(**{str(key): value for key, value in merged.items()})
    except ValidationError as error:
        for item in error.errors(include_url=False):
            place = _place(item["loc"], document, environment, flags, listed)
            problems.append(problem_of(Settings, place, item))
    if settings is not None:
        problems += _across(settings, document, environment, flags, listed)
    if problems or settings is None:
        raise ConfigError(problems)
    return settings


def _unknown_variables() -> Iterable[Problem]:
    """Variables that look like settings and are none.

    Only with the delimiter: Kubernetes sets LORA_EXPORTER_SERVICE_HOST and the like by itself for
    a Service of our name.
    """
    for name in sorted(os.environ):
        section, delimiter, _ = name.removeprefix(ENV_PREFIX).partition("__")
        if not name.startswith(ENV_PREFIX) or not delimiter or name == FILE_VARIABLE:
            continue
        if section.lower() not in Settings.model_fields:
            wanted = f"{ENV_PREFIX} and one of {', '.join(Settings.model_fields).upper()}"
            yield Problem(f"environment variable {name}", "", "an unknown section", wanted)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            merged[key] = _merge(under, value)
        else:
            merged[key] = value
    return merged


def _place(
    loc: Loc,
    document: Document,
    environment: Mapping[str, Any],
    flags: Mapping[str, Any],
    listed: int,
) -> str:
    """Which source gave the value at `loc`."""
    if loc[:1] == ("targets",) and len(loc) > 1 and loc[1] == listed:
        return "flag --target"
    if _holds(flags, loc):
        return "flag --" + ".".join(map(str, loc[:2])).replace("_", "-")
    if _holds(environment, loc):
        return f"environment variable {ENV_PREFIX}{'__'.join(map(str, loc[:2])).upper()}"
    if document.path:
        return f"{document.path}:{document.line(loc)}"
    return "settings"


def _holds(source: Mapping[str, Any], loc: Loc) -> bool:
    """Whether the source has a value on the way to `loc`, at least of the section's key."""
    value: Any = source
    for part in loc[:2]:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return isinstance(value, list)
    return bool(loc) and not (len(loc) == 1 and isinstance(value, Mapping))


def _across(
    settings: Settings,
    document: Document,
    environment: Mapping[str, Any],
    flags: Mapping[str, Any],
    listed: int,
) -> Iterable[Problem]:
    """Mistakes that no single key shows."""
    names: set[str] = set()
    addresses: dict[str, str] = {}
    for at, group in enumerate(settings.targets):
        loc: Loc = ("targets", at, "name")
        place = _place(loc, document, environment, flags, listed)
        if group.name in names:
            found = f"{group.name!r} a second time"
            yield Problem(place, key_text(loc), found, "a name of its own")
        names.add(group.name)
        for n, url in enumerate(group.static):
            loc = ("targets", at, "static", n)
            if url in addresses:
                place = _place(loc, document, environment, flags, listed)
                found = f"{url!r}, which is already in group {addresses[url]!r}"
                yield Problem(place, key_text(loc), found, "each target once")
            addresses.setdefault(url, group.name)
    for model, card in settings.models.items():
        if card.class_name is not None and card.class_name not in settings.classes:
            loc = ("models", model, "class")
            place = _place(loc, document, environment, flags, listed)
            known = ", ".join(settings.classes) or "a class that classes: declares"
            yield Problem(place, key_text(loc), repr(card.class_name), f"one of {known}")
    for name, node in settings.inventory.nodes.items():
        for model in node.replicas.keys() - settings.models.keys():
            loc = ("inventory", "nodes", name, "replicas", model)
            place = _place(loc, document, environment, flags, listed)
            wanted = "a card in models:, which tells what a replica of it holds"
            yield Problem(place, key_text(loc), "replicas of a model without one", wanted)


def warnings(settings: Settings) -> Iterable[str]:
    """What works, and is probably not meant."""
    owners = {card.owner for card in settings.models.values()}
    for owner in sorted(settings.owners.keys() - owners):
        yield f"owners.{owner}: no model has this owner"
    nodes = settings.inventory.nodes.values()
    for name in RESOURCES if nodes else ():
        asked = any(getattr(card, name) for card in settings.models.values())
        if asked and all(getattr(node, name) is None for node in nodes):
            yield f"inventory.nodes: no node names {name}, so it is not limited"
    for model, card in settings.models.items():
        parts = {name: getattr(card, name) / card.nodes_per_replica for name in RESOURCES}
        if nodes and not any(
            all(
                (getattr(node, name) or 0) >= amount
                for name, amount in parts.items()
                if any(getattr(other, name) is not None for other in nodes)
            )
            for node in nodes
        ):
            yield f"models.{model}: no node could ever hold a replica"

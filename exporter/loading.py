"""Where settings come from: a YAML file, then the environment, then flags; the later wins.

Every problem names its place (file and line, variable or flag), the key, what was found and what
is wanted, and all of them are told at once.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from exporter.cluster import RESOURCES, Node, Resources
from exporter.documents import (
    ConfigError,
    Document,
    Loc,
    Problem,
    key_text,
    problem_of,
    read_document,
)
from exporter.measuring import read_measurements
from exporter.settings import ClassSettings, ContradictionError, Settings

ENV_PREFIX = "LORA_EXPORTER_"
FILE_VARIABLE = "LORA_EXPORTER_CONFIG__FILE"
_OF_KUBERNETES = re.compile(rf"{ENV_PREFIX}(SERVICE_(HOST|PORT)|PORT)($|_)(?!_)")
_DEEPEST_FILE = 4
"""Steps from a section to the deepest path of a file, `targets[].auth.basic.password_file`."""
_LISTS = (".json", ".yml", ".yaml")
DEFAULT_GROUP = "default"
"""Group of the targets that are given by `--target`."""


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where values come from, the later over the earlier."""

    document: Document
    environment: Mapping[str, Any]
    flags: Mapping[str, Any]
    targets: Sequence[str]

    def merged(self) -> dict[str, Any]:
        """All values, as if they stood in one file."""
        below = _anchored(self.document.data, Path(self.document.path).parent)
        merged = _merge(_merge(below, self.environment), self.flags)
        if self.targets:
            added = {"name": DEFAULT_GROUP, "static": list(self.targets)}
            merged["targets"] = [*self._listed(), added]
        return {str(key): value for key, value in merged.items()}

    def place(self, loc: Loc) -> str:
        """Which source gave the value at `loc`."""
        if loc[:1] == ("targets",) and len(loc) > 1 and loc[1] == len(self._listed()):
            return "flag --target"
        # A mistake between keys of a section is told of the section.
        whole = len(loc) == 1 and loc[0] != "targets"
        if _holds(self.flags, loc):
            path = ".".join(map(str, loc[:2])).replace("_", "-")
            return f"flags --{path}.*" if whole else f"flag --{path}"
        if _holds(self.environment, loc):
            path = ENV_PREFIX + "__".join(map(str, loc[:2])).upper()
            return f"environment variables {path}__*" if whole else f"environment variable {path}"
        if self.document.path:
            return f"{self.document.path}:{self.document.line(loc)}"
        return "settings"

    def _listed(self) -> list[Any]:
        """The groups of targets that do not come from `--target`."""
        groups = self.environment.get("targets", self.document.data.get("targets"))
        return groups if isinstance(groups, list) else []


def load(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
) -> Settings:
    """All settings. `flags`: parsed flags, nested by section; `targets`: addresses to add.

    Raises ConfigError with every problem.
    """
    document = read_document(file) if file is not None else Document("", {}, None)
    sources = _Sources(document, _environment(), flags or {}, targets)
    problems = list(_unknown_variables())
    settings, found, removed = _validated(sources)
    problems += found
    if settings is not None and all(loc[0] == "targets" for loc in removed):
        problems += _across(settings, sources)
    if settings is not None and settings.measurements.file is not None:
        try:
            read_measurements(settings.measurements.file)
        except ConfigError as error:
            problems += error.problems
    if problems or settings is None:
        raise ConfigError(problems)
    return settings


def _validated(sources: _Sources) -> tuple[Settings | None, list[Problem], set[Loc]]:
    """The settings, the problems, and the keys that were left out to find all of them.

    A mistake in a key hides those between keys, so it is told, left out, and the rest is looked at
    again.
    """
    merged = copy.deepcopy(sources.merged())
    problems: list[Problem] = []
    removed: set[Loc] = set()
    for key in sorted(merged.keys() - Settings.model_fields.keys()):
        # Not left to the library, to which names with an underscore mean something else.
        del merged[key]
        place, wanted = sources.place((key,)), f"one of {', '.join(Settings.model_fields)}"
        problems.append(Problem(place, key, "an unknown key", wanted))
    while True:
        try:
            return Settings(**merged), problems, removed
        except ValidationError as error:
            items = error.errors(include_url=False)
        before = len(removed)
        for item in items:
            loc: Loc = item["loc"]
            contradicts = isinstance(item.get("ctx", {}).get("error"), ContradictionError)
            if contradicts and any(gone[:-1] == loc for gone in removed):
                # With a key left out it may be no contradiction at all.
                continue
            if item["type"] == "missing" and loc in removed:
                # It was there, and bad: what cannot do without it goes too.
                removed.add(_leave_out(merged, loc[:-1]))
                continue
            problems.append(problem_of(Settings, sources.place(loc), item))
            removed.add(_leave_out(merged, loc))
        if len(removed) == before:
            return None, problems, removed


def _leave_out(values: Any, loc: Loc) -> Loc:
    """Removes the key at `loc`, or the one above it that holds a list; gives what was removed."""
    # A bad key is told at its place with this mark after it.
    keys = [part for part in loc if part != "[key]"]
    while len(keys) > 1 and isinstance(keys[-1], int):
        keys.pop()
    value = values
    for key in keys[:-1]:
        inside = isinstance(value, dict) and key in value
        inside = inside or (isinstance(value, list) and key in range(len(value)))
        if not inside:
            return tuple(keys)
        value = value[key]
    if isinstance(value, dict):
        value.pop(keys[-1], None)
    return tuple(keys)


def _environment() -> dict[str, Any]:
    """The values of the environment. Raises ConfigError for a variable that is not the JSON that
    a list or a mapping needs."""
    try:
        return dict(EnvSettingsSource(Settings)())
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        path = f"{ENV_PREFIX}{field[1].upper()}*" if field is not None else f"{ENV_PREFIX}*"
        wanted = 'JSON where a list or a mapping is set, such as ["10.0.0.0/8"]'
        problem = Problem(f"environment variables {path}", "", "no JSON", wanted)
        raise ConfigError([problem]) from None


def _anchored(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The file's data, in which relative paths of files start at the file's own folder."""

    def walk(value: Any, key: str, above: str, depth: int) -> Any:
        if depth > _DEEPEST_FILE:
            # Nothing that is a setting; aliases of aliases may be without end.
            return value
        if isinstance(value, dict):
            return {k: walk(v, str(k), key, depth + 1) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(item, key, above, depth + 1) for item in value]
        if (above, key) == ("file", "paths") and isinstance(value, str):
            # It need not be there yet.
            return str(folder / value) if value.endswith(_LISTS) else value
        is_file = key.endswith("_file") or (above, key) == ("measurements", "file")
        if not is_file or not isinstance(value, str) or not (folder / value).exists():
            # As it stands, so that a message shows what was written.
            return value
        return str(folder / value)

    anchored = dict(data)
    for section in ("targets", "measurements", "inventory"):
        if section in anchored:
            anchored[section] = walk(anchored[section], section, "", 0)
    return anchored


def _unknown_variables() -> Iterable[Problem]:
    """Variables that look like settings and are none.

    But for those that Kubernetes sets by itself for a Service of our name.
    """
    for name in sorted(os.environ):
        section = name.removeprefix(ENV_PREFIX).partition("__")[0]
        if not name.startswith(ENV_PREFIX) or name == FILE_VARIABLE or _OF_KUBERNETES.match(name):
            continue
        if section.lower() not in Settings.model_fields:
            sections = ", ".join(Settings.model_fields).upper()
            wanted = f"{ENV_PREFIX}SECTION__KEY, SECTION being one of CONFIG, {sections}"
            yield Problem(f"environment variable {name}", "", "an unknown setting", wanted)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            merged[key] = _merge(under, value)
        else:
            merged[key] = value
    return merged


def _holds(source: Mapping[str, Any], loc: Loc) -> bool:
    """Whether the source has the value at `loc`, as far as the first two keys tell."""
    value: Any = source
    for part in loc[:2]:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return isinstance(value, list)
    return bool(loc)


def _across(settings: Settings, sources: _Sources) -> Iterable[Problem]:
    """Mistakes that no single key shows."""
    names: set[str] = set()
    addresses: dict[str, str] = {}
    given = sources.merged().get("targets", [])
    for at, group in enumerate(settings.targets):
        loc: Loc = ("targets", at, "name")
        if group.name in names:
            found = f"{group.name!r} a second time"
            yield Problem(sources.place(loc), key_text(loc), found, "a name of its own")
        names.add(group.name)
        # One that was left out for its mistakes is there all the same.
        if group.engine == "custom" and not given[at].get("custom"):
            loc = ("targets", at, "engine")
            wanted = "custom too, which maps the answer"
            yield Problem(sources.place(loc), key_text(loc), repr(group.engine), wanted)
        for n, url in enumerate(group.static):
            loc = ("targets", at, "static", n)
            if url in addresses:
                found = f"{url!r}, which is already in group {addresses[url]!r}"
                yield Problem(sources.place(loc), key_text(loc), found, "each target once")
            addresses.setdefault(url, group.name)
    for model, card in settings.models.items():
        if card.class_name is not None and card.class_name not in settings.classes:
            loc = ("models", model, "class")
            known = (
                f"one of {', '.join(settings.classes)}"
                if settings.classes
                else "a class that classes declares"
            )
            yield Problem(sources.place(loc), key_text(loc), repr(card.class_name), known)
    yield from _class_problems(settings, sources)
    for name, node in settings.inventory.nodes.items():
        for model in sorted(node.replicas.keys() - settings.models.keys()):
            loc = ("inventory", "nodes", name, "replicas", model)
            wanted = "a card in models:, which tells what a replica of it holds"
            found = "replicas of a model without one"
            yield Problem(sources.place(loc), key_text(loc), found, wanted)


def _class_problems(settings: Settings, sources: _Sources) -> Iterable[Problem]:
    """Orders of classes that contradict each other, or that nobody could know."""
    by_name: dict[str, tuple[str, int | None]] = {}
    live = settings.inventory.kubernetes is not None
    named = any(isinstance(one, ClassSettings) for one in settings.classes.values())
    for name, one in settings.classes.items():
        loc: Loc = ("classes", name)
        if isinstance(one, int):
            if live and named:
                found = f"rank {one} beside classes that name their PriorityClass"
                wanted = "priority_class, as ranks are then the values of PriorityClasses"
                yield Problem(sources.place(loc), key_text(loc), found, wanted)
            continue
        if one.rank is None and not live:
            wanted = "rank too, as only inventory.kubernetes tells the value"
            yield Problem(sources.place(loc), key_text(loc), "priority_class and no rank", wanted)
        other, rank = by_name.setdefault(one.priority_class, (name, one.rank))
        if None not in (rank, one.rank) and rank != one.rank:
            found = f"rank {one.rank}, and rank {rank} of class {other!r} of the same PriorityClass"
            yield Problem(sources.place(loc), key_text(loc), found, "one rank")


def warnings(settings: Settings) -> Iterable[str]:
    """What works, and is probably not meant."""
    if not settings.targets and not settings.models:
        yield "no targets and no models"
    for group in settings.targets:
        if not group.static and not group.discovered:
            yield f"targets: group {group.name} has no targets"
        for url in group.static:
            path = urlsplit(url).path
            if path.endswith(("/metrics", "/capacity_info")) or path == "/v1":
                yield f"targets: {url}: wanted the address of the replica, not of one of its pages"
    file = settings.measurements.file
    measured = read_measurements(file) if file is not None else {}
    for model, card in settings.models.items():
        profiles = [one.profile for one in measured.get(model, ())]
        if card.profile is not None and card.profile not in profiles:
            known = ", ".join(profiles) or "none"
            yield f"models.{model}.profile: no measurement has it; those of the model: {known}"
    yield from _cluster_warnings(settings)


def _cluster_warnings(settings: Settings) -> Iterable[str]:
    owners = {card.owner for card in settings.models.values()}
    for owner in sorted(settings.owners.keys() - owners):
        yield f"owners.{owner}: no model has this owner"
    ranks = settings.classes.values()
    if settings.inventory.kubernetes is not None and any(isinstance(one, int) for one in ranks):
        yield "classes: no class names its PriorityClass, so ranks are not what the cluster goes by"
    nodes = settings.inventory.nodes.values()
    for name in RESOURCES if nodes else ():
        asked = any(getattr(card, name) for card in settings.models.values())
        if asked and all(getattr(node, name) is None for node in nodes):
            yield f"inventory.nodes: no node names {name}, so it is not limited"
    for model, card in settings.models.items():
        parts = {name: getattr(card, name) / card.nodes_per_replica for name in RESOURCES}
        if nodes and not any(
            card.where.admits(Node("", Resources(), labels=node.labels, taints=node.kept_taints))
            and all(
                (getattr(node, name) or 0) >= amount
                for name, amount in parts.items()
                if any(getattr(other, name) is not None for other in nodes)
            )
            for node in nodes
        ):
            yield f"models.{model}: no node could ever hold a replica"

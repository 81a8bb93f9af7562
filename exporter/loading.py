"""Where settings come from: a YAML file, then the environment, then flags; the later wins.

Every problem names its place (file and line, variable or flag), the key, what was found and what
is wanted, and all of them are told at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from exporter.settings import ContradictionError, Settings

ENV_PREFIX = "LORA_EXPORTER_"
FILE_VARIABLE = "LORA_EXPORTER_CONFIG__FILE"
DEFAULT_GROUP = "default"
"""Group of the targets that are given by `--target`."""

_Loc = tuple[int | str, ...]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_FILE = 32 * 2**20
_USER_INFO = re.compile(r"//[^/@\s]*@")
_WANTED = {
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "tuple_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
_INPUT = re.compile(r"^(Value error, |Input should be |Value should have )")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake."""

    place: str
    key: str
    found: str
    wanted: str

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        return f"{self.place}: {key}found {self.found}; wanted {self.wanted}"


class ConfigError(Exception):
    """The configuration cannot be used. `problems` has all that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class _Document:
    """A YAML file: its data, and its nodes for line numbers."""

    path: str
    data: dict[str, Any]
    root: yaml.Node | None

    def line(self, loc: _Loc) -> int:
        """The line of the key, or of what is nearest above it."""
        node = self.root
        line = 1
        for part in loc:
            step: yaml.Node | None = None
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == str(part):
                        line, step = key.start_mark.line + 1, value
            elif isinstance(node, yaml.SequenceNode) and part in range(len(node.value)):
                step = node.value[int(part)]
                line = step.start_mark.line + 1
            if step is None:
                break
            node = step
        return line


def load(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
) -> Settings:
    """All settings. `flags`: parsed flags, nested by section; `targets`: addresses to add.

    Raises ConfigError with every problem.
    """
    flags = dict(flags or {})
    document = _read(file) if file is not None else _Document("", {}, None)
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
            problems.append(_problem(place, item))
    if settings is not None:
        problems += _across(settings, document, environment, flags, listed)
    if problems or settings is None:
        raise ConfigError(problems)
    return settings


def _read(file: Path) -> _Document:
    """Raises ConfigError for a file that is no YAML mapping, or names a key twice."""
    path = str(file)
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_FILE + 1)
    except OSError as error:
        wanted = "a file that can be read"
        raise ConfigError([Problem(path, "", str(error.strerror), wanted)]) from None
    if len(raw) > _MAX_FILE:
        raise ConfigError([Problem(path, "", "a file over 32 MiB", "a smaller file")])
    try:
        loader = _Loader(raw)
        root = loader.get_single_node()
        data = loader.construct_document(root) if root is not None else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark is not None else path
        found = ": ".join(filter(None, (error.context, error.problem))) or "an error"
        raise ConfigError([Problem(place, "", found, "one YAML document")]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        found = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError([Problem(path, "", found, "YAML in UTF-8")]) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError([Problem(f"{path}:1", "", _show(data), "a mapping of sections")])
    problems = [
        Problem(f"{path}:{line}", key, "the key a second time", "each key once")
        for line, key in _repeated(root)
    ]
    if problems:
        raise ConfigError(problems)
    return _Document(path, data, root)


def _repeated(root: yaml.Node | None) -> Iterable[tuple[int, str]]:
    """Keys that stand twice in one mapping; YAML would silently keep the last."""
    seen_nodes: set[int] = set()
    stack = [(root, "")] if root is not None else []
    while stack:
        node, path = stack.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in keys:
                        yield key.start_mark.line + 1, path + key.value
                    keys.add(key.value)
                stack.append((value, f"{path}{key.value}."))
        elif isinstance(node, yaml.SequenceNode):
            stack.extend((item, f"{path}{n}.") for n, item in enumerate(node.value))


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
    loc: _Loc,
    document: _Document,
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


def _holds(source: Mapping[str, Any], loc: _Loc) -> bool:
    """Whether the source has a value on the way to `loc`, at least of the section's key."""
    value: Any = source
    for part in loc[:2]:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return isinstance(value, list)
    return bool(loc) and not (len(loc) == 1 and isinstance(value, Mapping))


def _problem(place: str, item: Any) -> Problem:
    loc: _Loc = item["loc"]
    if item["type"] == "extra_forbidden":
        known = ", ".join(_known_keys(loc[:-1]))
        # The value is not shown: who puts a secret under a wrong key must not find it in a log.
        return Problem(place, _key(loc), "an unknown key", f"one of {known}")
    if item["type"] == "missing":
        return Problem(place, _key(loc), "nothing", "a value")
    wanted = _WANTED.get(item["type"]) or _INPUT.sub("", item["msg"])
    cause = item.get("ctx", {}).get("error")
    found = cause.found if isinstance(cause, ContradictionError) else _show(item["input"])
    return Problem(place, _key(loc), found, wanted)


def _known_keys(loc: _Loc) -> Iterable[str]:
    """The keys of the section at `loc`."""
    model: Any = Settings
    for part in loc:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = next(iter(_models_in(annotation)))
    return tuple(model.model_fields)


def _models_in(annotation: Any) -> Iterable[Any]:
    if hasattr(annotation, "model_fields"):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def _key(loc: _Loc) -> str:
    return ".".join(map(str, loc))


def _show(value: object) -> str:
    """A value for people: short, and without credentials in an address."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value)
    text = _USER_INFO.sub("//***@", text)
    return text if len(text) <= 80 else text[:77] + "..."


def _across(
    settings: Settings,
    document: _Document,
    environment: Mapping[str, Any],
    flags: Mapping[str, Any],
    listed: int,
) -> Iterable[Problem]:
    """Mistakes that no single key shows."""
    names: set[str] = set()
    addresses: dict[str, str] = {}
    for at, group in enumerate(settings.targets):
        loc: _Loc = ("targets", at, "name")
        place = _place(loc, document, environment, flags, listed)
        if group.name in names:
            yield Problem(place, _key(loc), f"{group.name!r} a second time", "a name of its own")
        names.add(group.name)
        for n, url in enumerate(group.static):
            loc = ("targets", at, "static", n)
            if url in addresses:
                place = _place(loc, document, environment, flags, listed)
                found = f"{url!r}, which is already in group {addresses[url]!r}"
                yield Problem(place, _key(loc), found, "each target once")
            addresses.setdefault(url, group.name)

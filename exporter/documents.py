"""YAML files of people: read with line numbers, and every mistake told with its place."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, RootModel

from exporter.settings import ContradictionError

Loc = tuple[int | str, ...]
"""Where a value stands: keys and indices from the root."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_FILE = 32 * 2**20
_USER_INFO = re.compile(r"(^['\"]?(?:\w+:/*)?).*@")
_WANTED = {
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "tuple_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_from_float": "a whole number",
    "byte_size": "a size such as 16MiB",
    "byte_size_unit": "a size such as 16MiB",
    "missing": "a value, as it is required",
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
class Document:
    """A YAML file: its data, and its nodes for line numbers."""

    path: str
    data: dict[str, Any]
    root: yaml.Node | None

    def line(self, loc: Loc) -> int:
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


def read_document(file: Path) -> Document:
    """Raises ConfigError for a file that is no YAML mapping, or names a key twice."""
    path = str(file)
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            # A pipe would keep this thread for ever.
            raise ConfigError([Problem(path, "", "no regular file", "a file that can be read")])
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
    except Exception as error:  # noqa: BLE001 - the library raises what a bad tag makes it stumble on
        # Its text may quote a value.
        raise ConfigError([Problem(path, "", type(error).__name__, "YAML in UTF-8")]) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError([Problem(f"{path}:1", "", show(data), "a mapping of sections")])
    problems = [
        Problem(f"{path}:{line}", key, "the key a second time", "each key once")
        for line, key in _repeated(root)
    ]
    if problems:
        raise ConfigError(problems)
    return Document(path, data, root)


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


def problem_of(model: type[BaseModel], place: str, item: Any) -> Problem:
    """A mistake that the validation of `model` found, as an item of ValidationError.errors."""
    loc: Loc = item["loc"]
    if item["type"] == "extra_forbidden":
        known = ", ".join(_known_keys(model, loc[:-1]))
        # The value is not shown: who puts a secret under a wrong key must not find it in a log.
        return Problem(place, key_text(loc), "an unknown key", f"one of {known}")
    wanted = _WANTED.get(item["type"]) or _INPUT.sub("", item["msg"])
    cause = item.get("ctx", {}).get("error")
    found = cause.found if isinstance(cause, ContradictionError) else show(item["input"])
    if _may_be_secret(loc, item["input"]) and not isinstance(cause, ContradictionError):
        found = "something else"
    if item["type"] == "missing":
        found = "nothing"
    return Problem(place, key_text(loc), found, wanted)


def _known_keys(model: type[BaseModel], loc: Loc) -> Iterable[str]:
    """The keys of the section at `loc`."""
    annotation: Any = model
    if issubclass(model, RootModel):
        annotation = model.model_fields["root"].annotation
    for part in loc:
        section = next(iter(_models_in(annotation)), None)
        if section is annotation and isinstance(part, str):
            field = next(
                (f for name, f in section.model_fields.items() if (f.alias or name) == part), None
            )
            annotation = field.annotation if field is not None else None
        else:
            # An item of a list or of a mapping: the model of its values.
            annotation = section
    section = next(iter(_models_in(annotation)), None)
    fields = section.model_fields if section is not None else {}
    return tuple(field.alias or name for name, field in fields.items())


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def key_text(loc: Loc) -> str:
    return ".".join(map(str, loc))


def _may_be_secret(loc: Loc, value: object) -> bool:
    """Whether somebody may have put a secret itself at `loc`, where its file belongs."""
    if not any(part in ("auth", "basic", "state", "headers") for part in loc) or loc[-1] == "url":
        return False
    return not (str(loc[-1]).endswith("_file") and isinstance(value, str) and value[:1] in "/.")


def show(value: object) -> str:
    """A value for people: short, and without credentials in an address."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value)
    if "@" in text or "?" in text:
        # What stands before an at sign or after a question mark of an address may be a secret.
        text = _USER_INFO.sub(r"\1***@", text.partition("?")[0].rstrip("'\"") + "'")
    return text if len(text) <= 80 else text[:77] + "..."

"""Paths into the answers of endpoints that no reader knows: what they look like, what they find.

JSON: `slots.max`, `replicas[0].used`, `replicas[].used` (each item of a list, or each value of an
object), `loras{}` (the keys of an object), `["a.key"].x` (a key with dots).
Prometheus: `name` or `name{label="value",other="value"}`: all samples that have these labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any

JSON_EXAMPLE = "a path such as slots.max, replicas[].used or loras{}"
SELECTOR_EXAMPLE = 'a series such as slots_used or slots{state="used"}'

_STEP = re.compile(r'\.?([^.\[\]{}"\s]+)|\[(\d{0,9})\]|\["((?:[^"\\]|\\.)*)"\]|(\{\})')
_SELECTOR = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:\s*\w+\s*=\s*"[^"\\]*"\s*,?)*)\})?', re.ASCII)
_MATCHER = re.compile(r'(\w+)\s*=\s*"([^"\\]*)"', re.ASCII)
_LONGEST = 500


class Each(Enum):
    """A step to many values."""

    VALUE = auto()
    KEY = auto()


Step = str | int | Each


class NothingError(LookupError):
    """A path that found nothing. The message is the part of it that did."""


@dataclass(frozen=True, slots=True)
class Selector:
    """Samples of one series."""

    name: str
    labels: tuple[tuple[str, str], ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a sample has all the labels that are wanted."""
        return all(labels.get(name) == value for name, value in self.labels)


@lru_cache(maxsize=4096)
def json_path(text: str) -> tuple[Step, ...]:
    """The steps of a path. Raises ValueError for what is none."""
    steps: list[Step] = []
    at = 0
    while at < len(text) <= _LONGEST:
        match = _STEP.match(text, at)
        # Only the first key stands without a dot.
        dotted = text[at] == "."
        if match is None or (match[1] is not None and dotted is (at == 0)):
            raise ValueError(JSON_EXAMPLE)
        key, index, quoted, keys = match.groups()
        if key is not None:
            steps.append(key)
        elif quoted is not None:
            steps.append(re.sub(r"\\(.)", r"\1", quoted))
        elif keys is not None:
            steps.append(Each.KEY)
        else:
            steps.append(int(index) if index else Each.VALUE)
        at = match.end()
    if not steps or Each.KEY in steps[:-1]:
        raise ValueError(JSON_EXAMPLE)
    return tuple(steps)


@lru_cache(maxsize=4096)
def selector(text: str) -> Selector:
    """A series and its labels. Raises ValueError for what is none."""
    match = _SELECTOR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(SELECTOR_EXAMPLE)
    return Selector(match[1], tuple(_MATCHER.findall(match[2] or "")))


def find(document: object, path: str) -> list[Any]:
    """The values at a path. Raises NothingError where one step finds nothing.

    Steps to many find what there is: an empty list has no values, and that is no mistake.
    """
    values = [document]
    walked = ""
    for step in json_path(path):
        walked += _shown(step, walked)
        values = [found for value in values for found in _next(value, step, walked)]
    return values


def _next(value: object, step: Step, walked: str) -> Iterable[Any]:
    if step is Each.VALUE and isinstance(value, list):
        return value
    if step is Each.VALUE and isinstance(value, dict):
        return value.values()
    if step is Each.KEY and isinstance(value, dict):
        return value.keys()
    if isinstance(step, str) and isinstance(value, dict) and step in value:
        return (value[step],)
    if isinstance(step, int) and isinstance(value, list) and step < len(value):
        return (value[step],)
    raise NothingError(walked)


def _shown(step: Step, before: str) -> str:
    if isinstance(step, str):
        if re.search(r'[.\[\]{}"\s]', step):
            return f'["{step}"]'
        return f".{step}" if before else step
    return {Each.VALUE: "[]", Each.KEY: "{}"}[step] if isinstance(step, Each) else f"[{step}]"

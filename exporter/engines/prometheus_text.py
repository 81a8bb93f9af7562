"""Finds wanted samples in a Prometheus text exposition, without reading the rest.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4; the parts
that 1.0.0 and OpenMetrics share with it). A replica's exposition is mostly histograms that nobody
here wants, so names are searched in the raw bytes and only lines that carry them are parsed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from exporter.engines.base import count

_MAX_DIGITS = 64
_MOST_LABELS = 8192
_LONGEST_LINE = 512
# No white space can be shared out between two parts in two ways, so that a line is read in linear
# time; possessive quantifiers would say so, and match wrongly in Python 3.11.2 (Debian 12).
_PAIR = r'\s*[a-zA-Z_]\w*\s*=\s*"(?:[^"\\]|\\.)*"\s*(?:,|(?=\}))'
_REST = re.compile(
    rf"\s*(?:\{{((?:{_PAIR})*)\s*\}}\s*)?([^\s{{]\S*)(?:\s.*)?", re.ASCII | re.DOTALL
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"', re.ASCII | re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class Sample(NamedTuple):
    """One sample of a series. A tuple, as one body has hundreds."""

    labels: Mapping[str, str]
    value: float


Found = Mapping[str, Sequence[Sample]]
"""Samples by name, in the order of the body; each wanted name is there."""


class Finder:
    """Finds samples of some names in one pass over an exposition."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: name.encode() for name in names}
        # A literal start lets the search skip lines whose names begin otherwise; the longest name
        # first, as one may be the start of another.
        either = "|".join(map(re.escape, sorted(self._names, key=len, reverse=True)))
        self._lines = re.compile(rf"\n({either})(?=[ \t{{])([^\n]*)".encode())

    def find(self, body: bytes) -> Found:
        """All finite samples of exactly these names. Malformed lines are left out."""
        found: dict[bytes, list[Sample]] = {name: [] for name in self._names.values()}
        for name, rest in self._lines.findall(b"\n" + body):
            sample = _parse(rest)
            if sample is not None:
                found[name].append(sample)
        return {name: found[raw] for name, raw in self._names.items()}


def declared(body: bytes, name: str) -> bool:
    """Whether the exposition declares this family, with or without samples."""
    line = b"# TYPE " + name.encode() + b" "
    return body.startswith(line) or b"\n" + line in body


def has_family_prefix(body: bytes, prefix: str) -> bool:
    """Whether any sample's name starts with this prefix."""
    wanted = prefix.encode()
    return body.startswith(wanted) or b"\n" + wanted in body


def total(found: Iterable[Sample]) -> float | None:
    """The sum of the values; None where there is no sample, or no finite sum."""
    values = [sample.value for sample in found]
    added = sum(values)
    return added if values and math.isfinite(added) else None


def whole(value: float | None) -> int | None:
    """A value as a number of slots or adapters; None for anything that cannot be one."""
    return None if value is None or not value.is_integer() else count(int(value))


_LABELS: dict[bytes, dict[str, str]] = {}
"""Labels by their text: from poll to poll, and from replica to replica, most are the same."""


def _parse(rest: bytes) -> Sample | None:
    """Parses what follows the name on a sample's line."""
    text, _, number = rest.rpartition(b"} ")
    labels = _LABELS.get(text)
    try:
        if labels is None or b" " in number:
            return _parse_by_grammar(rest)
        return _sample(labels, number)
    except ValueError:
        return None


def _parse_by_grammar(rest: bytes) -> Sample | None:
    """Raises ValueError for what is no text or no number."""
    match = _REST.fullmatch(rest.decode())
    if match is None:
        return None
    inside, number = match.groups()
    labels = dict(_LABEL.findall(inside)) if inside else {}
    for name, escaped in labels.items():
        if "\\" in escaped:
            labels[name] = _ESCAPE.sub(lambda m: _UNESCAPED.get(m[1], m[0]), escaped)
    if rest == f"{{{inside}}} {number}".encode() and len(rest) <= _LONGEST_LINE:
        if len(_LABELS) >= _MOST_LABELS:
            _LABELS.clear()
        _LABELS[rest.rpartition(b"} ")[0]] = labels
    return _sample(labels, number.encode())


def _sample(labels: Mapping[str, str], number: bytes) -> Sample | None:
    """Raises ValueError for what is no number."""
    if len(number) > _MAX_DIGITS or b"_" in number:
        return None
    value = float(number)
    return Sample(labels, value) if math.isfinite(value) else None

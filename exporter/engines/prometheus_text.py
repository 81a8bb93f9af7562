"""Finds wanted samples in a Prometheus text exposition, without reading the rest.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4; the parts
that 1.0.0 and OpenMetrics share with it). A replica's exposition is mostly histograms that nobody
here wants, so names are searched in the raw bytes and only lines that carry them are parsed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

_LABEL = re.compile(rb'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*(,|\})')
_ESCAPE = re.compile(r"\\(.)")
_UNESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_MAX_DIGITS = 64


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a series."""

    labels: dict[str, str]
    value: float


def samples(body: bytes, name: str) -> list[Sample]:
    """All samples of exactly this name, in the order of the body. Malformed lines are left out."""
    wanted = name.encode()
    size = len(wanted)
    found = []
    at = body.find(wanted)
    while at >= 0:
        end = body.find(b"\n", at)
        if end < 0:
            end = len(body)
        if at == 0 or body[at - 1] == 10:
            sample = _parse(body[at + size : end])
            if sample is not None:
                found.append(sample)
            at = body.find(wanted, end)
        else:
            # In a HELP line, inside another name or a label value: the name may follow later.
            at = body.find(wanted, at + size)
    return found


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


def _parse(rest: bytes) -> Sample | None:
    """Parses what follows the name on a sample's line."""
    labels: dict[str, str] = {}
    if rest.startswith(b"{"):
        at = 1
        if rest[1:2] == b"}":
            at = 2
        else:
            while True:
                match = _LABEL.match(rest, at)
                if match is None:
                    return None
                try:
                    value = match[2].decode()
                except UnicodeDecodeError:
                    return None
                if "\\" in value:
                    value = _ESCAPE.sub(lambda m: _UNESCAPED.get(m[1], m[0]), value)
                labels[match[1].decode()] = value
                at = match.end()
                if match[3] == b"}":
                    break
                if rest[at : at + 1] == b"}":
                    at += 1
                    break
        rest = rest[at:]
    elif rest[:1] not in (b" ", b"\t"):
        return None
    fields = rest.split(None, 2)
    if not fields or len(fields[0]) > _MAX_DIGITS or b"_" in fields[0]:
        return None
    try:
        return Sample(labels, float(fields[0]))
    except ValueError:
        return None

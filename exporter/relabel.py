"""Names of models, as the operator wants them."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from exporter.fleet import Reading, Target

REFERENCE = re.compile(r"\$(?:(\d+)|\{(\d+)\})")
"""In a replacement: a group of the pattern, by its number."""


def relabelled(target: Target, reading: Reading) -> Reading:
    """The reading with the names of its models as the group wants them.

    The first pattern that matches a whole name gives what stands for it, so that two names of one
    model become one. A name that would be empty stays as it is.
    """
    if reading.table is None or not target.model_relabel:
        return reading
    rows = tuple(
        replace(row, model=relabel(row.model, target.model_relabel) or row.model)
        for row in reading.table.replicas
    )
    return replace(reading, table=replace(reading.table, replicas=rows))


def relabel(name: str, patterns: tuple[tuple[str, str], ...]) -> str:
    """What stands for a name: `$1` or `${1}` is what the pattern's first group matched."""
    for pattern, replacement in patterns:
        match = _compiled(pattern).fullmatch(name)
        if match is not None:
            return REFERENCE.sub(functools.partial(_group, match), replacement)
    return name


def _group(match: re.Match[str], reference: re.Match[str]) -> str:
    return match[int(reference[1] or reference[2])] or ""


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)

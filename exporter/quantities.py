"""How people write durations and sizes, and back."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(value: object) -> float:
    """Seconds of a duration such as `10s`, `1m30s` or `500ms`.

    Raises ValueError for anything else, a bare number included: it has no unit.
    """
    if isinstance(value, str) and len(value) <= 40 and _DURATION.fullmatch(value.strip()):
        return sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(value))
    raise ValueError("a duration with its unit, such as 10s, 1m30s or 500ms")


def show_duration(seconds: float) -> str:
    """A duration as `parse_duration` reads it: the largest units first, no part that is 0."""
    if seconds <= 0:
        return "0s"
    milliseconds = round(seconds * 1000)
    text = ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        n, milliseconds = divmod(milliseconds, size)
        if n:
            text += f"{n}{unit}"
    return text or "0s"


def show_size(size: int) -> str:
    """A size in the largest binary unit that divides it."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def _validate_duration(value: object) -> float:
    # pydantic hands defaults and already validated values back.
    return value if isinstance(value, float) else parse_duration(value)


Duration = Annotated[float, BeforeValidator(_validate_duration)]
"""Seconds, written as a duration."""

"""How people write durations and sizes, and back."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "B": 1} | {
    f"{letter}{form}": base**power
    for power, letter in enumerate("kMGTP", 1)
    for form, base in (("", 1000), ("B", 1000), ("i", 1024), ("iB", 1024))
}
_BYTES |= {name.upper(): size for name, size in _BYTES.items() if name[:1] == "k"}
_BYTES |= {"Ki": 1024, "KiB": 1024}
_MEMORY = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(filter(None, _BYTES))})?")
_COUNT = re.compile(r"(\d+(?:\.\d+)?)(m)?")
_LONGEST = 30
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


def parse_memory(value: object) -> int:
    """Bytes of an amount such as `40GiB`, `512Gi`, `1.5TB` or a number of bytes.

    Raises ValueError for anything else.
    """
    wanted = "an amount of memory, such as 40GiB, 512Gi, 1.5TB, or bytes"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or len(match[0]) > _LONGEST:
        raise ValueError(wanted)
    factor = _BYTES[match[2] or ""]
    return int(Fraction(match[1]) * factor)


def parse_thousandths(value: object) -> int:
    """Thousandths of a count such as `2`, `0.5` or `500m`, as Kubernetes writes CPUs.

    Raises ValueError for anything else.
    """
    wanted = "a count such as 2, 0.5 or 500m"
    text = str(value) if isinstance(value, int | float) else value
    match = _COUNT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or isinstance(value, bool) or len(match[0]) > _LONGEST:
        raise ValueError(wanted)
    thousandths = Fraction(match[1]) * (1 if match[2] else 1000)
    if thousandths.denominator != 1:
        raise ValueError(f"{wanted}, to a thousandth")
    return int(thousandths)


def show_size(size: int) -> str:
    """A size in the largest binary unit that divides it."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def show_thousandths(amount: int) -> int | str:
    """A count as `parse_thousandths` reads it."""
    return f"{amount}m" if amount % 1000 else amount // 1000


Memory = Annotated[int, BeforeValidator(parse_memory), PlainSerializer(show_size, when_used="json")]
"""Bytes, written as an amount of memory."""
Thousandths = Annotated[
    int, BeforeValidator(parse_thousandths), PlainSerializer(show_thousandths, when_used="json")
]
"""Thousandths of a core or a GPU, written as a count."""
Duration = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds, written as a duration."""

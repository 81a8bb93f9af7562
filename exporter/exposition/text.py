"""Lines of the Prometheus text format 0.0.4; OpenMetrics 1.0 has the same samples.

Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
"""

from __future__ import annotations

import hashlib

from exporter.catalogue.family import Family

WHOLE: dict[float, bytes] = {n: b"%d\n" % n for n in range(4096)}
"""Values that occur all the time, with their line ends."""
ONE = WHOLE[1]
_EXACT = 2.0**53
LONGEST_LABEL = 1024
"""Characters of a label value: a replica repeats its model's name on each of its lines."""
EOF = b"# EOF\n"


def escape(value: str) -> str:
    """A label value as it stands between quotes: only backslash, quote and newline are escaped.

    One that is too long is cut, and ends with a digest of the whole, so that two stay two.
    """
    if len(value) > LONGEST_LABEL:
        digest = hashlib.blake2b(value.encode(errors="replace"), digest_size=8).hexdigest()
        value = f"{value[:LONGEST_LABEL]}~{digest}"
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value


def number(value: float) -> bytes:
    """A sample's value with its line end."""
    if value in WHOLE:
        return WHOLE[value]
    if isinstance(value, int) or (value.is_integer() and abs(value) < _EXACT):
        return b"%d\n" % int(value)
    return repr(value).encode() + b"\n"


def series(family: Family, *values: str) -> bytes:
    """A sample's line up to its value."""
    labels = ",".join(
        f'{name}="{escape(value)}"' for name, value in zip(family.labels, values, strict=True)
    )
    # A lone surrogate is no text that UTF-8 could carry.
    return f"{family.name}{{{labels}}} ".encode(errors="replace")

"""Writes a Prometheus text exposition as the Python client of the engines does.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/. Each counter and histogram
has a family of its own for the unix time at which it was created.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Labels = Mapping[str, str]

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a series."""

    name: str
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """Samples that share a HELP and a TYPE line."""

    name: str
    kind: str
    help: str
    """Empty: no HELP line."""
    samples: tuple[Sample, ...]


def gauge(name: str, text: str, values: Iterable[tuple[Labels, float]]) -> Family:
    """A gauge, with a value for each set of labels."""
    return Family(name, "gauge", text, tuple(Sample(name, *value) for value in values))


def total(name: str, text: str, values: Iterable[tuple[Labels, float]]) -> Family:
    """A counter that does not tell when it was created."""
    return Family(name, "counter", text, tuple(Sample(name, *value) for value in values))


def counter(
    name: str, text: str, values: Sequence[tuple[Labels, float]], created: float
) -> Iterator[Family]:
    """A counter, whose name ends in `_total`, and when it was created (unix seconds)."""
    yield total(name, text, values)
    born = name.removesuffix("_total") + "_created"
    yield gauge(born, text, [(labels, created) for labels, _ in values])


def histogram(
    name: str,
    text: str,
    labels: Labels,
    bounds: Sequence[float],
    count: int,
    share: Callable[[float], float],
    mean: float,
    created: float,
) -> Iterator[Family]:
    """A histogram of `count` values, and when it was created (unix seconds).

    `share` tells for an upper bound how many of the values, 0 to 1, are not above it.
    """
    samples = [
        Sample(
            f"{name}_bucket",
            {**labels, "le": number(bound)},
            count if bound == math.inf else math.floor(count * share(bound)),
        )
        for bound in (*bounds, math.inf)
    ]
    samples += [Sample(f"{name}_count", labels, count), Sample(f"{name}_sum", labels, count * mean)]
    yield Family(name, "histogram", text, tuple(samples))
    yield gauge(f"{name}_created", text, [(labels, created)])


def render(families: Iterable[Family], names: frozenset[str] | None = None) -> str:
    """The exposition; with `names`, only samples of exactly these names."""
    lines = []
    for family in families:
        samples = family.samples
        if names is not None:
            samples = tuple(sample for sample in samples if sample.name in names)
            if not samples:
                continue
        if family.help:
            lines.append(f"# HELP {family.name} {family.help.translate(_HELP_ESCAPES)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += map(_line, samples)
    return "".join(f"{line}\n" for line in lines)


def number(value: float) -> str:
    """A number as the Python client writes it: `4.0`, `1.796e+09`, `+Inf`."""
    if value == math.inf:
        return "+Inf"
    text = repr(float(value))
    point = text.find(".")
    if value > 0 and point > 6:
        mantissa = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
        return f"{mantissa}e+0{point - 1}"
    return text


def _line(sample: Sample) -> str:
    labels = ",".join(
        f'{label}="{value.translate(_ESCAPES)}"' for label, value in sorted(sample.labels.items())
    )
    braced = f"{{{labels}}}" if labels else ""
    return f"{sample.name}{braced} {number(sample.value)}"

"""Thresholds with a meaning, and words in place of numbers."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import (
    DashboardSpecialValueMapOptions,
    SpecialValueMap,
    SpecialValueMatch,
    Threshold,
    ThresholdsConfig,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

GOOD, NOTICE, WARN, BAD, PLAIN, UNKNOWN = "green", "yellow", "orange", "red", "text", "#808080"
NOTHING_KNOWN = "Nothing is known: is an exporter up?"
NOT_WHOLE = "Not known: no exporter sees whole models"
"""With sidecars and /probe alone."""


def steps(first: str, *rest: tuple[float, str]) -> ThresholdsConfig:
    """Colours from a value on; `first` is below all."""
    parts = [Threshold(value=None, color=first)]
    parts += [Threshold(value=value, color=color) for value, color in rest]
    return ThresholdsConfig(mode=ThresholdsMode.ABSOLUTE, steps=parts)


NEUTRAL = steps(PLAIN)
FILL = steps(GOOD, (0.75, NOTICE), (0.9, WARN), (1, BAD))
"""Almost full from three quarters on, full at 1: the next adapter waits or is refused."""
FREE = steps(BAD, (1, WARN), (2, GOOD))
"""None is an outage for new adapters; one is gone with the next."""
ANY_IS_BAD = steps(GOOD, (1, BAD))
ANY_IS_WARNING = steps(GOOD, (1, WARN))
LOSS = steps(BAD, (0, GOOD))
"""Below 0, adapters of a lost replica find no slot elsewhere."""


def values(**words: tuple[str, str]) -> list[ValueMapping]:
    """Words and colours for values; names are `v` and the number."""
    return texts({name.removeprefix("v"): word for name, word in words.items()})


def texts(words: dict[str, tuple[str, str]]) -> list[ValueMapping]:
    """Words and colours for values, text included."""
    results = {
        value: ValueMappingResult(text=text, color=color, index=index)
        for index, (value, (text, color)) in enumerate(words.items())
    }
    return [ValueMap(options=results)]


def absent(text: str = "?", color: str = UNKNOWN) -> ValueMapping:
    """Words for null and NaN."""
    result = ValueMappingResult(text=text, color=color, index=99)
    options = DashboardSpecialValueMapOptions(match=SpecialValueMatch.NULL_AND_NAN, result=result)
    return SpecialValueMap(options=options)


NEXT_STEP = values(
    v8=("Full and a replica is down: bring it back", BAD),
    v7=("No room to add a replica: see what blocks", BAD),
    v6=("Add a replica; a lower class must stop", WARN),
    v5=("Add a replica: there is room", WARN),
    v4=("Add a replica; room is unknown", WARN),
    v3=("Full: add a replica if it stays so", WARN),
    v2=("Bring back the replica that is down", BAD),
    v1=("Slots unknown: see Replicas", NOTICE),
    v0=("Nothing to do", GOOD),
)
"""Words for promql.next_step."""
FITS = values(v1=("fits", GOOD), v0=("does not fit", BAD))
BLANK = values(**{"v-1": ("", PLAIN)})
"""For the row that says in words that there is nothing."""
STATE = values(
    v5=("waiting", BAD),
    v4=("active", GOOD),
    v3=("idle", "blue"),
    v2=("offloaded", "purple"),
    v1=("registered", UNKNOWN),
)
"""Words for promql.adapter_state."""
UP = values(v1=("answers", GOOD), v0=("silent", BAD))
SEVERITY = texts(
    {"critical": ("critical", BAD), "warning": ("warning", WARN), "info": ("info", "blue")}
)

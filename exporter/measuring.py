"""The file of what one replica of each model was measured to serve."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from exporter.documents import ConfigError, problem_of, read_document
from exporter.files import write_atomically
from exporter.planning.needed import Measurement
from exporter.settings import CardSettings

_ONE_LINE = 2**31
"""Columns without end, so that YAML breaks no line."""

LOG = logging.getLogger(__name__)


class Entry(BaseModel):
    """One measurement, as it stands in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    tokens: Literal["generation", "total"] = "generation"
    profile: str = ""
    slo: dict[str, Any] = {}
    measured_at: datetime.datetime | datetime.date | None = None
    how: str = ""


class _File(RootModel[dict[str, tuple[Entry, ...]]]):
    pass


def read_measurements(file: Path) -> dict[str, tuple[Measurement, ...]]:
    """All measurements by model, the newest first. Raises ConfigError with every problem."""
    document = read_document(file)
    try:
        entries = _File.model_validate(document.data).root
    except ValidationError as error:
        raise ConfigError(
            [
                problem_of(_File, f"{file}:{document.line(item['loc'])}", item)
                for item in error.errors(include_url=False)
            ]
        ) from None
    return {model: _newest_first(model, listed) for model, listed in entries.items()}


def add_measurement(file: Path, model: str, entry: Entry) -> None:
    """Adds a measurement as the model's first; all else in the file stays, comments too.

    The file is replaced whole or not at all. Raises ConfigError for a file that cannot be used,
    OSError for one that cannot be written.
    """
    read_measurements(file)
    text = file.read_text(encoding="utf-8")
    data = entry.model_dump(mode="json", exclude_defaults=True)
    item = yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=_ONE_LINE).strip()
    listed = _list_of(text, model)
    if listed is None:
        key = yaml.safe_dump(model, width=_ONE_LINE).partition("\n")[0]
        newline = "" if not text or text.endswith("\n") else "\n"
        text += f"{newline}{key}:\n  - {item}\n"
    elif listed.flow_style:
        at = listed.start_mark.index + 1
        text = f"{text[:at]}{item}{', ' if listed.value else ''}{text[at:]}"
    else:
        at = listed.start_mark.index
        indent = " " * listed.start_mark.column
        text = f"{text[:at]}- {item}\n{indent}{text[at:]}"
    write_atomically(file, text)


def _list_of(text: str, model: str) -> yaml.SequenceNode | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == model and isinstance(value, yaml.SequenceNode):
            return value
    return None


class MeasurementFile:
    """The file of measurements as it is now: read again when it changes.

    A file that turned bad does not take away what was known: the last good content stays in force.
    """

    def __init__(self) -> None:
        self._stamp: tuple[str, int, int, int] | None = None
        self._good: dict[str, tuple[Measurement, ...]] = {}

    def read(self, file: Path | None) -> dict[str, tuple[Measurement, ...]]:
        """All measurements by model."""
        if file is None:
            return {}
        try:
            stat = file.stat()
            stamp = (str(file), stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp != self._stamp:
                self._stamp = stamp
                self._good = read_measurements(file)
        except (ConfigError, OSError) as error:
            for line in str(error).splitlines():
                LOG.error("measurements refused", extra={"problem": line})
        return self._good


def all_in_force(
    measurements: Mapping[str, tuple[Measurement, ...]], cards: Mapping[str, CardSettings]
) -> dict[str, Measurement]:
    """Of each model the measurement with its card's profile, else the newest."""
    found = {}
    for model, listed in measurements.items():
        profile = cards[model].profile if model in cards else None
        for one in listed:
            if profile is None or one.profile == profile:
                found[model] = one
                break
    return found


def _newest_first(model: str, entries: tuple[Entry, ...]) -> tuple[Measurement, ...]:
    found = [
        Measurement(
            model=model,
            tokens_per_second=entry.tokens_per_second,
            tokens=entry.tokens,
            profile=entry.profile,
            measured_at=entry.measured_at.isoformat() if entry.measured_at is not None else "",
        )
        for entry in entries
    ]
    return tuple(sorted(found, key=lambda one: one.measured_at, reverse=True))

"""The file of what one replica of each model was measured to serve."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from exporter.documents import ConfigError, Problem, problem_of, read_document
from exporter.files import locked, write_atomically
from exporter.planning.needed import LEAST_RATE, MOST_RATE, Measurement
from exporter.settings import CardSettings

_ONE_LINE = 2**31
"""Columns without end, so that YAML breaks no line."""

LOG = logging.getLogger(__name__)


class Entry(BaseModel):
    """One measurement, as it stands in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens_per_second: Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE, allow_inf_nan=False)]
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

    The file is replaced whole or not at all, and writers wait for each other. Raises ConfigError
    for a file that cannot be used, or is written in a way that cannot be added to; OSError for one
    that cannot be written.
    """
    with locked(file):
        read_measurements(file)
        data = entry.model_dump(mode="json", exclude_defaults=True)
        item = yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=_ONE_LINE)
        try:
            before = file.read_bytes().decode()
        except UnicodeDecodeError:
            before = ""
        text = _added(before, model, item.strip())
        if text is None or not _is_added(_parsed(before), _parsed(text), model, _parsed(item)):
            found = "a style that nothing can be added to"
            hint = f"{json.dumps(model)} to have {item.strip()}, added by hand"
            raise ConfigError([Problem(str(file), model, found, hint)])
        write_atomically(file, text)


def _added(text: str, model: str, item: str) -> str | None:
    """The file's text with the measurement; None where it cannot be added."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    for key, listed in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == model:
            at = listed.start_mark.index
            if not isinstance(listed, yaml.SequenceNode):
                return None
            if listed.flow_style:
                more = ", " if listed.value else ""
                return f"{text[: at + 1]}{item}{more}{text[at + 1 :]}"
            indent = " " * listed.start_mark.column
            return f"{text[:at]}- {item}{end}{indent}{text[at:]}"
    if text and not text.endswith("\n"):
        text += end
    return f"{text}{json.dumps(model)}:{end}  - {item}{end}"


def _is_added(before: object, after: object, model: str, item: object) -> bool:
    """Whether the new text says what the old one does, and the measurement besides."""
    old = before if isinstance(before, dict) else {}
    return after == {**old, model: [item, *(old.get(model) or ())]}


def _parsed(text: str) -> object:
    """What the text says, with dates as they are written."""
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts only
    except yaml.YAMLError:
        return None


class MeasurementFile:
    """The file of measurements as it is now: read again when it changes.

    A file that turned bad does not take away what was known: the last good content stays in force.
    """

    def __init__(self) -> None:
        self._stamp: tuple[str, int, int, int] | None = None
        self._refused: str = ""
        self._good: dict[str, tuple[Measurement, ...]] = {}

    def read(self, file: Path | None) -> dict[str, tuple[Measurement, ...]]:
        """All measurements by model."""
        if file is None:
            return {}
        try:
            stat = file.stat()
            stamp = (str(file), stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp != self._stamp:
                self._good = read_measurements(file)
                self._stamp, self._refused = stamp, ""
        except (ConfigError, OSError) as error:
            # Tried again each time, as it may be the disk and not the file; told once.
            if str(error) != self._refused:
                self._refused = str(error)
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
    return tuple(
        Measurement(
            model=model,
            tokens_per_second=entry.tokens_per_second,
            tokens=entry.tokens,
            profile=entry.profile,
            measured_at=entry.measured_at.isoformat() if entry.measured_at is not None else "",
        )
        for entry in sorted(entries, key=_moment, reverse=True)
    )


def _moment(entry: Entry) -> datetime.datetime:
    """When it was measured; a time without zone is UTC, and a day begins at midnight."""
    at = entry.measured_at
    if at is None:
        return datetime.datetime.min.replace(tzinfo=datetime.UTC)
    if not isinstance(at, datetime.datetime):
        at = datetime.datetime.combine(at, datetime.time())
    return at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC)

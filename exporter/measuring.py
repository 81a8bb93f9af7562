"""The file of what one replica of each model was measured to serve."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from exporter.documents import ConfigError, problem_of, read_document
from exporter.planning.needed import Measurement

LOG = logging.getLogger(__name__)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    tokens: Literal["generation", "total"] = "generation"
    profile: str = ""
    slo: dict[str, Any] = {}
    measured_at: datetime.datetime | datetime.date | None = None
    how: str = ""


class _File(RootModel[dict[str, tuple[_Entry, ...]]]):
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


def in_force(
    measurements: Mapping[str, tuple[Measurement, ...]], model: str, profile: str | None
) -> Measurement | None:
    """The measurement with the card's profile, else the newest."""
    listed = measurements.get(model, ())
    if profile is not None:
        return next((one for one in listed if one.profile == profile), None)
    return listed[0] if listed else None


def _newest_first(model: str, entries: tuple[_Entry, ...]) -> tuple[Measurement, ...]:
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

"""What `inputs.yml` may say, and messages that name file, key and what is wanted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

T = TypeVar("T")
L = TypeVar("L", bound="AlertLimits")

RATE_WINDOW = "5m"
"""Part of the recorded names (`...:rate5m`), and therefore no input."""
FULL_WINDOW = "10m"
"""The same for `...:ratio10m`."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*\s*(=|!=|=~|!~)\s*"([^"\\]|\\.)*"'
_MATCHERS = re.compile(rf"({_MATCHER}\s*(,\s*{_MATCHER}\s*)*)?")
_OWN_LABELS = frozenset(
    {"model", "replica_id", "slot_kind", "target", "group", "instance", "job", "class", "owner"}
)


class InputError(Exception):
    """`inputs.yml` is not what is wanted. The message has a line for each problem."""


def seconds(duration: str) -> int:
    """Seconds of a duration such as 90s or 10m."""
    return int(duration[:-1]) * _UNITS[duration[-1]]


def _duration(value: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[smhdw]", value):
        raise ValueError("wanted a duration such as 30s, 10m, 1h or 1w")
    return value


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value) or value.startswith("__"):
        raise ValueError("wanted the name of a label")
    if value in _OWN_LABELS:
        raise ValueError("wanted a label that Prometheus adds, not one of the exporter's own")
    return value


def _matchers(value: str) -> str:
    if not _MATCHERS.fullmatch(value):
        raise ValueError('wanted matchers such as env="prod", region=~"eu-.*", without braces')
    return value


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://\S+[^\s/]", value):
        raise ValueError("wanted an http or https address without a slash at its end")
    return value


Duration = Annotated[str, AfterValidator(_duration)]
Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Factor = Annotated[float, Field(ge=1)]
Severity = Literal["critical", "warning", "info"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limit(_Strict, Generic[T]):
    """A number, and why it is that number."""

    value: T
    reason: str = Field(min_length=10)


class AlertLimits(_Strict):
    """What every alert has; each alert's module adds its own."""

    severity: Severity
    for_: Limit[Duration] = Field(alias="for")
    keep_firing_for: Limit[Duration] | None = None
    """None: the common one."""


class Common(_Strict):
    """Numbers that several rules share."""

    scrape_interval: Limit[Duration]
    keep_firing_for: Limit[Duration]
    dip: Limit[Duration]
    steady: Limit[Duration]
    full_share: Limit[Share]
    waiting: Limit[Share | Factor]
    waiting_window: Limit[Duration]

    @model_validator(mode="after")
    def _windows_hold_samples(self) -> Common:
        scrape = seconds(self.scrape_interval.value)
        if seconds(RATE_WINDOW) < 4 * scrape:
            raise ValueError(
                f"scrape_interval: wanted at most 75s, as rates are over {RATE_WINDOW}"
            )
        for key in ("dip", "steady", "waiting_window"):
            if seconds(getattr(self, key).value) < 2 * scrape:
                raise ValueError(f"{key}: wanted at least twice the scrape_interval")
        return self


class Inputs(_Strict):
    """The whole file."""

    aggregation_labels: tuple[Annotated[str, AfterValidator(_label)], ...]
    matchers: Annotated[str, AfterValidator(_matchers)]
    exporter_job: Annotated[str, Field(pattern=r"^[^\"\\\s]+$")]
    runbook_url: Annotated[str, AfterValidator(_url)]
    dashboard_url: Annotated[str, AfterValidator(_url)]
    common: Common
    alerts: dict[str, dict[str, Any]]
    """The numbers of each alert; its module says which."""
    file: str = Field(default="inputs.yml", exclude=True)

    def limits(self, alert: str, wanted: type[L]) -> L:
        """One alert's numbers."""
        if alert not in self.alerts:
            raise InputError(f"{self.file}: alerts.{alert}: wanted the numbers of this alert")
        try:
            return wanted.model_validate(self.alerts[alert])
        except ValidationError as error:
            raise InputError(_told(self.file, error, f"alerts.{alert}.")) from None

    def only(self, alerts: frozenset[str]) -> None:
        """Refuses numbers of alerts that there are not."""
        unknown = sorted(set(self.alerts) - alerts)
        if unknown:
            raise InputError(
                "\n".join(f"{self.file}: alerts.{name}: no such alert" for name in unknown)
            )


def _told(file: str, error: ValidationError, prefix: str = "") -> str:
    lines = []
    for problem in error.errors():
        key = prefix + ".".join(str(part) for part in problem["loc"])
        text = problem["msg"].removeprefix("Value error, ")
        found = problem["input"]
        shown = f", found {found!r}" if isinstance(found, (str, int, float)) else ""
        lines.append(f"{file}: {key.rstrip('.') or 'top'}: {text}{shown}")
    return "\n".join(lines)


def load(path: Path) -> Inputs:
    """Reads and validates the file."""
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path.name}: wanted YAML: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path.name}: wanted a mapping of keys")
    try:
        return Inputs.model_validate(document | {"file": path.name})
    except ValidationError as error:
        raise InputError(_told(path.name, error)) from None

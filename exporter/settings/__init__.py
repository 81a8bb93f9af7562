"""Every setting, and what a value must be. Where settings come from is `loading`'s business."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ByteSize, Field, model_validator
from pydantic_settings import (
    BaseSettings,
    CliSuppress,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from exporter.quantities import Duration, show_duration
from exporter.settings.access import Auth, BasicAuth, Header, Tls
from exporter.settings.cluster import (
    CardSettings,
    ClassRank,
    ClassSettings,
    InventorySettings,
    Measurements,
    NodeSettings,
    Planning,
    QuotaSettings,
)
from exporter.settings.group import Custom, Slots, State, TargetGroup
from exporter.settings.parts import ContradictionError, Section, normalise_url

__all__ = [
    "Auth",
    "BasicAuth",
    "CardSettings",
    "ClassRank",
    "ClassSettings",
    "ContradictionError",
    "Custom",
    "Header",
    "InventorySettings",
    "Log",
    "Measurements",
    "NodeSettings",
    "Planning",
    "Poll",
    "Probe",
    "QuotaSettings",
    "Settings",
    "Slots",
    "State",
    "TargetGroup",
    "Tls",
    "Web",
    "normalise_url",
]

_HOST_PATTERN = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def _listen_address(value: str) -> str:
    wanted = "an address to listen on, such as :10107, 127.0.0.1:10107 or [::1]:10107"
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(wanted)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(wanted)
    return value


def _telemetry_path(value: str) -> str:
    taken = value in ("/", "/probe", "/sd") or value.startswith(("/-/", "/api/"))
    if taken or not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", value):
        raise ValueError("a path such as /metrics that no other page has")
    return value


def _allowed(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        if _HOST_PATTERN.fullmatch(value) is not None:
            return value.lower()
    raise ValueError("a host name, *.domain, or a network such as 10.0.0.0/8")


class Web(Section):
    """The HTTP server."""

    listen_address: Annotated[str, AfterValidator(_listen_address)] = ":10107"
    """Host and port to listen on; without a host, on all addresses."""
    telemetry_path: Annotated[str, AfterValidator(_telemetry_path)] = "/metrics"
    """Path of the metrics."""
    enable_lifecycle: bool = False
    """Whether `POST /-/reload` reloads the configuration."""


class Poll(Section):
    """How targets are asked."""

    interval: Annotated[Duration, Field(gt=0)] = 10.0
    """Time between two polls of a target."""
    timeout: Annotated[Duration, Field(gt=0)] = 4.0
    """Deadline of one poll, all its requests together."""
    stale_after: Annotated[Duration, Field(gt=0)] = 30.0
    """Age at which the last table of a target that fails vanishes."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Most polls under way at once."""
    max_body: Annotated[ByteSize, Field(ge=1024)] = ByteSize(16 * 2**20)
    """Largest answer that is read, after decompression."""
    max_adapters: Annotated[int, Field(ge=0)] = 200
    """Most adapters of a replica that are named in `lora_adapter_state`; 0 names none."""

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.timeout > self.interval:
            raise ContradictionError(
                f"timeout {show_duration(self.timeout)}, interval {show_duration(self.interval)}",
                "timeout to be at most interval",
            )
        if self.stale_after < self.interval + self.timeout:
            raise ContradictionError(
                f"stale_after {show_duration(self.stale_after)}, "
                f"interval {show_duration(self.interval)}, timeout {show_duration(self.timeout)}",
                "stale_after to be at least interval + timeout",
            )
        return self


class Probe(Section):
    """What `/probe` may ask."""

    allow: tuple[Annotated[str, AfterValidator(_allowed)], ...] = ()
    """Hosts (`name`, `*.domain`) and networks (`10.0.0.0/8`, for addresses without a name) that
    `/probe` may ask besides the configured targets."""


class Log(Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is written."""
    format: Literal["logfmt", "json"] = "logfmt"
    """Form of a line."""


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="LORA_EXPORTER_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is handed over: `loading` merges the sources, to know which gave what."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    web: Web = Web()
    """The HTTP server."""
    poll: Poll = Poll()
    """How targets are asked."""
    probe: Probe = Probe()
    """What `/probe` may ask."""
    log: Log = Log()
    """What is written to standard error."""
    targets: CliSuppress[tuple[TargetGroup, ...]] = ()
    """Groups of targets."""
    classes: CliSuppress[dict[str, ClassRank]] = {}
    """Ranks by class: a class outranks every class of lower rank."""
    owners: CliSuppress[dict[str, QuotaSettings]] = {}
    """Quotas by owner."""
    models: CliSuppress[dict[str, CardSettings]] = {}
    """Cards by model."""
    planning: Planning = Planning()
    """How models are planned."""
    measurements: Measurements = Measurements()
    """What one replica was measured to serve."""
    inventory: InventorySettings = InventorySettings()
    """The cluster."""

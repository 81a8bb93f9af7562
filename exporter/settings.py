"""Every setting, and what a value must be. Where settings come from is `loading`'s business."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ByteSize, Field, model_validator
from pydantic_settings import (
    BaseSettings,
    CliSuppress,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from exporter.group_settings import (
    SECTION,
    Auth,
    BasicAuth,
    ContradictionError,
    Custom,
    Header,
    ReadableFile,
    Slots,
    State,
    TargetGroup,
    Text,
    Tls,
    normalise_url,
)
from exporter.quantities import Duration, Memory, Thousandths, show_duration

__all__ = [
    "Auth",
    "BasicAuth",
    "ContradictionError",
    "Custom",
    "Header",
    "Settings",
    "Slots",
    "State",
    "TargetGroup",
    "Tls",
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
    taken = value in ("/", "/probe") or value.startswith(("/-/", "/api/"))
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


class _Section(BaseModel):
    model_config = SECTION


class Web(_Section):
    """The HTTP server."""

    listen_address: Annotated[str, AfterValidator(_listen_address)] = ":10107"
    """Host and port to listen on; without a host, on all addresses."""
    telemetry_path: Annotated[str, AfterValidator(_telemetry_path)] = "/metrics"
    """Path of the metrics."""
    enable_lifecycle: bool = False
    """Whether `POST /-/reload` reloads the configuration."""


class Poll(_Section):
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


class Probe(_Section):
    """What `/probe` may ask."""

    allow: tuple[Annotated[str, AfterValidator(_allowed)], ...] = ()
    """Hosts (`name`, `*.domain`) and networks (`10.0.0.0/8`, for addresses without a name) that
    `/probe` may ask besides the configured targets."""


class Log(_Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is written."""
    format: Literal["logfmt", "json"] = "logfmt"
    """Form of a line."""


class CardSettings(_Section):
    """What is declared about a model: its card. Amounts are those of one replica."""

    class_name: Text | None = Field(default=None, alias="class")
    """Class: it may stop replicas of classes of lower rank. Without one, none stop and none are
    stopped."""
    owner: Text | None = None
    """Owner, who may have a quota."""
    memory: Memory = 0
    """Memory, such as `40GiB`."""
    cores: Thousandths = 0
    """Cores, such as `8` or `500m`."""
    gpus: Thousandths = 0
    """GPUs."""
    nodes_per_replica: Annotated[int, Field(ge=1, le=1000)] = 1
    """Nodes that one replica spans, in equal parts."""
    min_replicas: Annotated[int, Field(ge=0)] = 0
    """Fewest replicas."""
    max_replicas: Annotated[int, Field(ge=0)] | None = None
    """Most replicas."""
    spare_replicas: Annotated[int, Field(ge=0)] = 0
    """Replicas on top of what the load needs."""
    utilization: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of what a replica was measured to serve that is planned with."""
    target_tokens_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Tokens per second that the model is to serve; without it, what was observed counts."""
    reserve: Annotated[int, Field(ge=0)] | None = None
    """Slots of the model that are to stay free; by default 1 of exclusive slots, 0 of evictable
    ones."""
    profile: Text | None = None
    """Measurement in force; else the newest."""

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.min_replicas:
            raise ContradictionError(
                f"min_replicas {self.min_replicas}, max_replicas {self.max_replicas}",
                "min_replicas to be at most max_replicas",
            )
        return self


class QuotaSettings(_Section):
    """What an owner's replicas may hold together."""

    memory: Memory | None = None
    """Memory."""
    cores: Thousandths | None = None
    """Cores."""
    gpus: Thousandths | None = None
    """GPUs."""
    replicas: Annotated[int, Field(ge=0)] | None = None
    """Replicas."""


class NodeSettings(_Section):
    """A node: what it has for replicas, and which replicas are on it."""

    memory: Memory | None = None
    """Memory."""
    cores: Thousandths | None = None
    """Cores."""
    gpus: Thousandths | None = None
    """GPUs."""
    replicas: dict[str, Annotated[int, Field(ge=0, le=1_000_000)]] = {}
    """Replicas by model; of one that spans nodes, its parts."""


class InventorySettings(_Section):
    """The cluster."""

    nodes: CliSuppress[dict[str, NodeSettings]] = {}
    """Nodes by name."""


class Planning(_Section):
    """How models are planned."""

    interval: Annotated[Duration, Field(gt=0)] = 15.0
    """Time between two plannings."""
    demand_window: Annotated[Duration, Field(gt=0)] = 3600.0
    """Time within which the highest observed rate counts as demand. After a start it must pass
    before replicas that observed demand needs are told."""

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.demand_window < self.interval:
            raise ContradictionError(
                f"demand_window {show_duration(self.demand_window)}, "
                f"interval {show_duration(self.interval)}",
                "demand_window to be at least interval",
            )
        return self


class Measurements(_Section):
    """What one replica was measured to serve."""

    file: ReadableFile | None = None
    """YAML file: for each model a list of measurements."""


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
    classes: CliSuppress[dict[str, int]] = {}
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

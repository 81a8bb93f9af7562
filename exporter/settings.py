"""Every setting, and what a value must be. Where settings come from is `loading`'s business."""

from __future__ import annotations

import ipaddress
import re
import stat
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    CliSuppress,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from exporter.engines import AUTO, ENGINES
from exporter.quantities import Duration, Memory, Thousandths, show_duration


class ContradictionError(ValueError):
    """Keys that do not go together."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(wanted)
        self.found = found


_ADDRESS = "an address such as http://10.0.0.5:8000, without credentials, query or fragment"
_HOST_PATTERN = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def normalise_url(value: str) -> str:
    """An HTTP address in the one form in which it is compared and shown.

    Raises ValueError for what is no address, or carries credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(value.strip())
        port = parts.port
    except ValueError:
        raise ValueError(_ADDRESS) from None
    host = parts.hostname
    secret = "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not host or secret or parts.query or parts.fragment:
        raise ValueError(_ADDRESS)
    if any(character.isspace() or not character.isprintable() for character in value.strip()):
        raise ValueError(_ADDRESS)
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port is None else f"{shown}:{port}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def _readable_file(path: Path) -> Path:
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise ValueError("a file, not a pipe")
        with path.open("rb"):
            return path
    except OSError as error:
        raise ValueError(f"a file that can be read ({error.strerror})") from None


def _engine(value: str) -> str:
    if value != AUTO and value not in ENGINES:
        raise ValueError(f"one of {', '.join((AUTO, *ENGINES))}")
    return value


def _state_url(value: str) -> str:
    wanted = "redis://host:6379/0, rediss://host:6379/0 or file:///path/to/state.json"
    try:
        parts = urlsplit(value)
        has_host = (bool(parts.hostname) and parts.port is not None) or bool(parts.hostname)
    except ValueError:
        raise ValueError(wanted) from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{wanted}; credentials go to username and password_file")
    if parts.scheme in ("redis", "rediss") and has_host and re.fullmatch(r"(/\d*)?", parts.path):
        return value
    if parts.scheme == "file" and not parts.netloc and len(parts.path) > 1:
        return value
    raise ValueError(wanted)


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


def _user_name(value: str) -> str:
    if not value or ":" in value or not value.isprintable():
        raise ValueError("a user name without colon")
    return value


def _text(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("text that is not empty")
    return value


Url = Annotated[str, AfterValidator(normalise_url)]
ReadableFile = Annotated[Path, AfterValidator(_readable_file)]
Text = Annotated[str, BeforeValidator(_text)]


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=False
    )


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


class BasicAuth(_Section):
    """HTTP basic authentication."""

    username: Annotated[str, AfterValidator(_user_name)]
    """User name."""
    password_file: ReadableFile
    """File that holds the password; read again when it changes."""


class Auth(_Section):
    """Credentials that are sent to the targets of a group, and to no other address."""

    bearer_token_file: ReadableFile | None = None
    """File that holds the bearer token; read again when it changes."""
    basic: BasicAuth | None = None
    """User name and password instead of a token."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.bearer_token_file is not None and self.basic is not None:
            raise ContradictionError("bearer_token_file and basic", "one of them")
        return self


class Tls(_Section):
    """TLS towards the targets of a group."""

    ca_file: ReadableFile | None = None
    """Certificates to trust instead of the system's."""
    cert_file: ReadableFile | None = None
    """Client certificate."""
    key_file: ReadableFile | None = None
    """Its key."""
    server_name: Text | None = None
    """Name that the target's certificate must have, if it is not the address's host."""
    insecure_skip_verify: bool = False
    """Whether any certificate is accepted."""

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ContradictionError("only one of cert_file and key_file", "both or none")
        return self


class Slots(_Section):
    """What the operator knows of a replica's slots."""

    max: Annotated[int, Field(ge=1)] | None = None
    """Slots of one replica, used where the engine does not tell."""


class State(_Section):
    """A Twinkle server's state store. It is only read."""

    url: Annotated[str, AfterValidator(_state_url)]
    """`redis://host:6379/0`, `rediss://…` or `file:///path/to/state.json`."""
    key_prefix: str = ""
    """Prefix of the server's keys in Redis; the file has none."""
    username: Text | None = None
    """Redis user."""
    password_file: ReadableFile | None = None
    """File that holds the password of the Redis user."""


class TargetGroup(_Section):
    """Targets that are found and read in the same way."""

    name: Text
    """Name of the group; the model's name where nothing else gives one."""
    engine: Annotated[str, AfterValidator(_engine)] = AUTO
    """Engine, or `auto` to find out."""
    static: tuple[Url, ...] = ()
    """Addresses of the targets."""
    model: Text | None = None
    """Name of the model, where the replica's own is not wanted."""
    replica_name: Text | None = None
    """Value of `replica_id`, where host:port is not wanted; for a group of one target."""
    slots: Slots = Slots()
    """What the operator knows of a replica's slots."""
    auth: Auth = Auth()
    """Credentials."""
    tls: Tls = Tls()
    """TLS."""
    state: State | None = None
    """State store, for Twinkle."""
    ray_dashboard: Url | None = None
    """Address of Ray's dashboard, for Twinkle: joined with the state store."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.replica_name is not None and len(self.static) > 1:
            found = f"replica_name and {len(self.static)} targets"
            raise ContradictionError(found, "replica_name only in a group of one target")
        if self.state is not None and self.engine != "twinkle":
            raise ContradictionError(f"state and engine: {self.engine}", "engine: twinkle")
        if self.state is not None and self.replica_name is not None:
            wanted = "no replica_name, as the store names the replicas"
            raise ContradictionError("replica_name and state", wanted)
        if self.ray_dashboard is not None and self.state is None:
            wanted = "state too, as the two are joined"
            raise ContradictionError("ray_dashboard and no state", wanted)
        return self


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

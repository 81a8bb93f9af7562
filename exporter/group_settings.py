"""The settings of a group of targets, and the parts of which all settings are made."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from exporter.engines import AUTO, ENGINES


class ContradictionError(ValueError):
    """Keys that do not go together."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(wanted)
        self.found = found


_ADDRESS = "an address such as http://10.0.0.5:8000, without credentials, query or fragment"


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


SECTION = ConfigDict(
    extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=False
)
"""How each section is read: unknown keys are errors."""


class _Section(BaseModel):
    model_config = SECTION


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

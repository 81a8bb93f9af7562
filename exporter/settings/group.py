"""A group of targets: how they are found, reached and read."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from exporter.engines import AUTO, ENGINES
from exporter.engines.custom import KEYS
from exporter.engines.custom_paths import json_path, selector
from exporter.fleet import SlotKind
from exporter.relabel import REFERENCE
from exporter.settings.access import Auth, Header, Tls, header_name
from exporter.settings.discovery import (
    DnsDiscovery,
    FileDiscovery,
    HttpDiscovery,
    KubernetesDiscovery,
    RayDiscovery,
)
from exporter.settings.parts import ContradictionError, ReadableFile, Section, Text, Url

_WITH_BASE_SLOT = (AUTO, "sglang", "nim", "dynamo")
"""Engines of which the base model's requests may take a slot that is not counted."""
_WITHOUT_SERIES = ("twinkle", "tinker", "custom")
"""Engines that `metrics_path` means nothing to."""


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


def _path(value: str) -> str:
    if re.fullmatch(r"(/[A-Za-z0-9._~%:@!$&'()*+,;=-]+)+", value) is None or "/../" in f"{value}/":
        raise ValueError("a path such as /v1/metrics, without query")
    return value


class Slots(Section):
    """What the operator knows of a replica's slots."""

    max: Annotated[int, Field(ge=1)] | None = None
    """Slots of one replica, used where the engine does not tell."""
    base_uses_slot: bool = False
    """Whether requests of the base model take a slot too, which SGLang does not count."""


class Custom(Section):
    """How the answer of an endpoint is mapped: paths into JSON (`slots.max`, `replicas[].used`,
    `loras{}` for the keys), or series (`slots{state="used"}`). Many values are added up."""

    path: Annotated[str, AfterValidator(_path)]
    """Path of the endpoint, after the target's address."""
    format: Literal["json", "prometheus"] = "json"
    """What the endpoint answers: `json` or `prometheus`."""
    slot_kind: SlotKind
    """`exclusive`: full means refused. `evictable`: idle adapters give way."""
    max: Text | None = None
    """Slots of the replica."""
    used: Text | None = None
    """Slots that a new adapter cannot take now."""
    free: Text | None = None
    """Slots that a new adapter can take now, instead of `used`."""
    active: Text | None = None
    """Names of adapters at work. Without `used` and `free`, their number is used."""
    adapters: Text | None = None
    """Names of adapters of which nothing more is known."""
    adapter_label: Text | None = None
    """Label that names the adapter, for `active` and `adapters` in series."""
    resident: Text | None = None
    """Number of adapters whose weights sit in a slot."""
    waiting: Text | None = None
    """Number of adapters that have work but no slot."""
    registered: Text | None = None
    """Number of adapters that are accepted by name."""
    prompt_tokens: Text | None = None
    """Prompt tokens processed since the start."""
    generation_tokens: Text | None = None
    """Tokens generated since the start."""
    requests_running: Text | None = None
    """Requests in the running batch."""
    requests_waiting: Text | None = None
    """Requests that wait."""
    model: Text | None = None
    """Name of the model, in JSON."""

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """What is mapped, and the path to it."""
        told = ((key, getattr(self, key)) for key in KEYS)
        return tuple((key, path) for key, path in told if path is not None)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        mapped = dict(self.paths)
        for key, path in self.paths:
            try:
                json_path(path) if self.format == "json" else selector(path)
            except ValueError as error:
                raise ContradictionError(f"{key}: {path!r}", str(error)) from None
        if not mapped.keys() & {"max", "used", "free", "active", "adapters"}:
            raise ContradictionError("no path to slots or adapters", "max and used, or others")
        if {"used", "free"} <= mapped.keys():
            raise ContradictionError("used and free", "one of them, as max tells the other")
        named = mapped.keys() & {"active", "adapters"}
        if self.format == "prometheus" and "model" in mapped:
            raise ContradictionError("model and format: prometheus", "model of the group instead")
        if self.format == "prometheus" and named and self.adapter_label is None:
            raise ContradictionError(f"{min(named)} and no adapter_label", "the label of its name")
        if self.adapter_label is not None and not (named and self.format == "prometheus"):
            wanted = "format: prometheus and a path to active or adapters"
            raise ContradictionError("adapter_label", wanted)
        return self


class State(Section):
    """A Twinkle server's state store. It is only read."""

    url: Annotated[str, AfterValidator(_state_url)]
    """`redis://host:6379/0`, `rediss://…` or `file:///path/to/state.json`."""
    key_prefix: str = ""
    """Prefix of the server's keys in Redis; the file has none."""
    username: Text | None = None
    """Redis user."""
    password_file: ReadableFile | None = None
    """File that holds the password of the Redis user."""


class TargetGroup(Section):
    """Targets that are found and read in the same way."""

    name: Text
    """Name of the group; the model's name where nothing else gives one."""
    engine: Annotated[str, AfterValidator(_engine)] = AUTO
    """Engine, or `auto` to find out."""
    static: tuple[Url, ...] = ()
    """Addresses of the targets."""
    file: FileDiscovery | None = None
    """Files that list further targets."""
    http: HttpDiscovery | None = None
    """Address that lists further targets."""
    dns: DnsDiscovery | None = None
    """Names whose records are further targets."""
    ray: RayDiscovery | None = None
    """Ray Serve, whose nodes are further targets."""
    kubernetes: KubernetesDiscovery | None = None
    """Kubernetes, whose pods are further targets."""
    model: Text | None = None
    """Name of the model, where the replica's own is not wanted."""
    replica_name: Text | None = None
    """Value of `replica_id`, where host:port is not wanted; for a group of one target."""
    model_relabel: dict[str, str] = {}
    """Names of models by pattern: the first that matches a whole name gives what stands for it,
    with `$1` for its first group, so that aliases of one model join."""
    path_prefix: Annotated[str, AfterValidator(_path)] | None = None
    """Path before those of the engine, such as `/api/v1`, after each address of the group."""
    metrics_path: Annotated[str, AfterValidator(_path)] | None = None
    """Path of the engine's series, where another server passes them through."""
    slots: Slots = Slots()
    """What the operator knows of a replica's slots."""
    headers: dict[Annotated[str, AfterValidator(header_name)], Header] = {}
    """Further headers by name."""
    custom: Custom | None = None
    """Mapping of an endpoint, for `engine: custom`."""
    auth: Auth = Auth()
    """Credentials."""
    tls: Tls = Tls()
    """TLS."""
    state: State | None = None
    """State store, for Twinkle."""
    ray_dashboard: Url | None = None
    """Address of Ray's dashboard, for Twinkle: joined with the state store."""

    @property
    def discovered(self) -> bool:
        """Whether targets of the group come and go."""
        return any((self.file, self.http, self.dns, self.ray, self.kubernetes))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.replica_name is not None and (len(self.static) > 1 or self.discovered):
            found = f"replica_name and {len(self.static)} targets"
            found = "replica_name and discovery" if self.discovered else found
            raise ContradictionError(found, "replica_name only in a group of one target")
        if self.state is not None and self.engine != "twinkle":
            raise ContradictionError(f"state and engine: {self.engine}", "engine: twinkle")
        if self.state is not None and self.replica_name is not None:
            wanted = "no replica_name, as the store names the replicas"
            raise ContradictionError("replica_name and state", wanted)
        if self.ray_dashboard is not None and self.state is None:
            wanted = "state too, as the two are joined"
            raise ContradictionError("ray_dashboard and no state", wanted)
        if self.custom is not None and self.engine != "custom":
            raise ContradictionError(f"custom and engine: {self.engine}", "engine: custom")
        if self.slots.base_uses_slot and self.engine not in _WITH_BASE_SLOT:
            found = f"slots.base_uses_slot and engine: {self.engine}"
            raise ContradictionError(found, f"one of {', '.join(_WITH_BASE_SLOT)}")
        if self.metrics_path is not None and self.engine in _WITHOUT_SERIES:
            wanted = "an engine that is read from series"
            raise ContradictionError(f"metrics_path and engine: {self.engine}", wanted)
        if len({name.lower() for name in self.headers}) < len(self.headers):
            raise ContradictionError("a header in two spellings", "each header once")
        if self.model is not None and self.model_relabel:
            raise ContradictionError("model and model_relabel", "one of them")
        for pattern, replacement in self.model_relabel.items():
            _check_relabel(pattern, replacement)
        credentials = self.auth.bearer_token_file is not None or self.auth.basic is not None
        if credentials and any(name.lower() == "authorization" for name in self.headers):
            raise ContradictionError("auth and the header Authorization", "one of them")
        return self


def _check_relabel(pattern: str, replacement: str) -> None:
    """Raises ContradictionError for a pattern that is none, or a reference to a group it lacks."""
    try:
        groups = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        found = f"model_relabel: {pattern!r} ({error})"
        raise ContradictionError(found, "a regular expression") from None
    numbers = [int(match[1] or match[2]) for match in REFERENCE.finditer(replacement)]
    if max(numbers, default=0) > groups:
        found = f"model_relabel: ${max(numbers)} for a pattern with {groups} groups"
        raise ContradictionError(found, "references to groups that the pattern has")
    if not replacement.strip():
        raise ContradictionError(f"model_relabel: nothing for {pattern!r}", "a name")

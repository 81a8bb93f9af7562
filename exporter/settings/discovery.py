"""Ways to find the targets of a group, besides a list of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from exporter.quantities import Duration
from exporter.settings.access import Auth, Header, KubernetesAccess, Tls, header_name
from exporter.settings.kubernetes import LabelName, LabelSelector, Namespace
from exporter.settings.parts import ContradictionError, Section, Url


def _pattern(value: str) -> str:
    path = Path(value)
    if path.suffix not in (".json", ".yml", ".yaml"):
        raise ValueError("a path that ends with .json, .yml or .yaml")
    if any(sign in str(path.parent) for sign in "*?["):
        raise ValueError("a path with * only in the name of the file")
    return value


def _dns_name(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?", value) is None:
        raise ValueError("a name such as vllm.prod.svc.cluster.local")
    return value


def _some(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("at least one")
    return value


def _pod_port(value: object) -> object:
    number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535
    # The name of a port has a letter, so that it is never taken for a number.
    name = isinstance(value, str) and re.fullmatch(r"(?=.*[a-z])[a-z0-9-]{1,15}", value) is not None
    if not number and not name:
        raise ValueError("a port such as 8000, or the name of one, such as http")
    return value


class FileDiscovery(Section):
    """Files of targets, in the format of Prometheus's `file_sd`."""

    paths: Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], AfterValidator(_some)]
    """Paths of the files, JSON or YAML; the name of a file may have `*`. Read again when they
    change."""


class HttpDiscovery(Section):
    """An address that answers with targets, in the format of Prometheus's `http_sd`."""

    url: Url
    """The address."""
    refresh: Annotated[Duration, Field(gt=0)] = 60.0
    """Time between two questions."""
    auth: Auth = Auth()
    """Credentials for the address; the targets have their own."""
    headers: dict[Annotated[str, AfterValidator(header_name)], Header] = {}
    """Further headers by name."""
    tls: Tls = Tls()
    """TLS towards the address."""


class DnsDiscovery(Section):
    """Names whose records are the targets."""

    names: Annotated[tuple[Annotated[str, AfterValidator(_dns_name)], ...], AfterValidator(_some)]
    """Names to look up."""
    type: Literal["A", "AAAA", "SRV"] = "A"
    """Records: A and AAAA are addresses, SRV has ports too."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the targets, for A and AAAA."""
    scheme: Literal["http", "https"] = "http"
    """Scheme of the targets."""
    refresh: Annotated[Duration, Field(gt=0)] = 30.0
    """Time between two look-ups."""
    timeout: Annotated[Duration, Field(gt=0)] = 5.0
    """Deadline of a look-up."""

    @model_validator(mode="after")
    def _port(self) -> Self:
        if self.type == "SRV" and self.port is not None:
            raise ContradictionError("port and type: SRV", "no port, as the records have it")
        if self.type != "SRV" and self.port is None:
            raise ContradictionError(f"type: {self.type} and no port", "port too")
        return self


class RayDiscovery(Section):
    """Replicas that Ray Serve runs, from the dashboard's list of applications."""

    dashboard: Url
    """Address of Ray's dashboard."""
    application: str | None = None
    """Only this application's."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Port of the replicas' HTTP server."""
    scheme: Literal["http", "https"] = "http"
    """Scheme of the targets."""
    refresh: Annotated[Duration, Field(gt=0)] = 30.0
    """Time between two questions."""
    auth: Auth = Auth()
    """Credentials for the dashboard."""
    headers: dict[Annotated[str, AfterValidator(header_name)], Header] = {}
    """Further headers by name."""
    tls: Tls = Tls()
    """TLS towards the dashboard."""


class KubernetesDiscovery(KubernetesAccess):
    """Pods or endpoints of a Kubernetes cluster. They are watched: changes are seen at once."""

    role: Literal["pod", "endpointslice"] = "pod"
    """What is selected: pods, or the slices of Services' endpoints."""
    namespaces: tuple[Namespace, ...] = ()
    """Namespaces to look in; by default all."""
    selector: LabelSelector
    """Label selector, such as `app=vllm` or `app in (vllm,sglang)`."""
    port: Annotated[int | str, BeforeValidator(_pod_port)]
    """Port of the targets: a number, or the name of a container's port, or of a Service's for
    endpoints."""
    scheme: Literal["http", "https"] = "http"
    """Scheme of the targets."""
    ready_only: bool = True
    """Whether only ready pods or endpoints are targets; else all that run."""
    model_label: LabelName | None = None
    """Label of the pods or slices that has the model, or annotation, where a label cannot hold its
    name."""

"""Targets that are endpoints of Services. Shapes: the API's `discovery.k8s.io/v1.EndpointSlice`.

https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/ has what absent conditions
mean.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from exporter.discovery.base import Found
from exporter.kubernetes.pods import named
from exporter.settings.discovery import KubernetesDiscovery


def targets(settings: KubernetesDiscovery, one: dict[str, Any]) -> tuple[Found, ...]:
    """The endpoints of a slice as targets; none where it lacks the port."""
    meta, port = one["metadata"], _port(settings.port, one)
    if meta.get("deletionTimestamp") or one.get("addressType") == "FQDN" or port is None:
        return ()
    label = settings.model_label
    model = named(meta, label) if label is not None else None
    return tuple(_found(settings, one, port, model))


def _found(
    settings: KubernetesDiscovery, one: dict[str, Any], port: int, model: str | None
) -> Iterator[Found]:
    namespace = one["metadata"]["namespace"]
    for endpoint in one.get("endpoints") or ():
        if not _wanted(endpoint.get("conditions") or {}, settings.ready_only):
            continue
        # Consumers read the first address; the API's server accepts one.
        host = ipaddress.ip_address(endpoint["addresses"][0])
        shown = f"[{host}]" if host.version == 6 else str(host)
        behind = endpoint.get("targetRef") or {}
        pod = behind.get("name") if behind.get("kind") == "Pod" else None
        yield Found(
            f"{settings.scheme}://{shown}:{port}",
            replica=f"{namespace}/{pod}" if pod is not None else None,
            model=model,
            node=endpoint.get("nodeName") or "",
            namespace=namespace,
            pod=pod or "",
        )


def _wanted(conditions: dict[str, Any], ready_only: bool) -> bool:
    if conditions.get("terminating"):
        return False
    return not ready_only or conditions.get("ready") is not False


def _port(wanted: int | str, one: dict[str, Any]) -> int | None:
    if isinstance(wanted, int):
        return wanted
    for port in one.get("ports") or ():
        if port.get("name") == wanted and port.get("port") is not None:
            return int(port["port"])
    return None

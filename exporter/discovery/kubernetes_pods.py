"""Targets that are pods. Shapes: the API's `v1.Pod`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from exporter.discovery.base import Found
from exporter.kubernetes.pods import is_ready, named
from exporter.settings.discovery import KubernetesDiscovery


def targets(settings: KubernetesDiscovery, pod: dict[str, Any]) -> tuple[Found, ...]:
    """The pod as a target; none where it is none, or not yet, or no more."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    address, port = status.get("podIP"), _port(settings.port, spec)
    if meta.get("deletionTimestamp") or status.get("phase") != "Running" or not address:
        return ()
    if port is None or (settings.ready_only and not is_ready(status)):
        return ()
    host = ipaddress.ip_address(address)
    shown = f"[{host}]" if host.version == 6 else str(host)
    label = settings.model_label
    found = Found(
        f"{settings.scheme}://{shown}:{port}",
        replica=f"{meta['namespace']}/{meta['name']}",
        model=named(meta, label) if label is not None else None,
        node=spec.get("nodeName") or "",
        namespace=meta["namespace"],
        pod=meta["name"],
    )
    return (found,)


def _port(wanted: int | str, spec: dict[str, Any]) -> int | None:
    if isinstance(wanted, int):
        return wanted
    return next((port for name, port in _ports(spec) if name == wanted), None)


def _ports(spec: dict[str, Any]) -> Iterator[tuple[str | None, int]]:
    # Of the containers that run first, those that go on running are sidecars.
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        for port in container.get("ports") or ():
            yield port.get("name"), int(port["containerPort"])

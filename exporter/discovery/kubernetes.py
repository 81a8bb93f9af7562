"""Targets from Kubernetes: the pods that a label selector chooses, as they come and go."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Iterator
from typing import Any

from exporter.discovery.base import DiscoveryError, Found
from exporter.kubernetes.client import KubernetesError, Query, require
from exporter.kubernetes.mirror import PACE, Mirror, Pace
from exporter.kubernetes.pods import is_ready, named
from exporter.settings.discovery import KubernetesDiscovery

TELL_SECONDS = 15.0
"""Without a change after which what is there counts as found anew."""
_GATHER_SECONDS = 0.05
"""After a change, for those that come with it."""
_GATHER_EACH = 0.00005
"""The same for each pod that there is: what is made of a change is made of all of them."""


class Pods:
    """The pods of one namespace, or of all."""

    def __init__(
        self, settings: KubernetesDiscovery, namespace: str | None, pace: Pace = PACE
    ) -> None:
        """Raises DiscoveryError where the optional package is missing."""
        try:
            require()
        except KubernetesError as error:
            raise DiscoveryError(str(error)) from None
        self._settings = settings
        self._query = Query("pods", namespace, settings.selector)
        self._pace = pace
        self._changed = asyncio.Event()
        self._mirror: Mirror[Found] | None = None

    async def find(self) -> tuple[Found, ...]:
        """The pods as they are now. Raises DiscoveryError while they are not followed."""
        if self._mirror is None:
            self._mirror = Mirror(
                self._settings, self._query, self._target, self._changed.set, self._pace
            )
        await self._mirror.tried()
        if self._mirror.failure is not None:
            raise DiscoveryError(self._mirror.failure)
        return tuple(self._mirror.items.values())

    async def wait(self) -> None:
        """Until something changed, or long enough did not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await self._changed.wait()
                count = len(self._mirror.items) if self._mirror is not None else 0
                await asyncio.sleep(_GATHER_SECONDS + count * _GATHER_EACH)
        self._changed.clear()

    async def close(self) -> None:
        """Ends the watch."""
        mirror, self._mirror = self._mirror, None
        if mirror is not None:
            await mirror.close()

    def _target(self, pod: dict[str, Any]) -> Found | None:
        """The pod as a target; None where it is none, or not yet, or no more."""
        meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        address, port = status.get("podIP"), self._port(spec)
        if meta.get("deletionTimestamp") or status.get("phase") != "Running" or not address:
            return None
        if port is None or (self._settings.ready_only and not is_ready(status)):
            return None
        host = ipaddress.ip_address(address)
        shown = f"[{host}]" if host.version == 6 else str(host)
        label = self._settings.model_label
        return Found(
            f"{self._settings.scheme}://{shown}:{port}",
            replica=f"{meta['namespace']}/{meta['name']}",
            model=named(meta, label) if label is not None else None,
            node=spec.get("nodeName") or "",
            namespace=meta["namespace"],
            pod=meta["name"],
        )

    def _port(self, spec: dict[str, Any]) -> int | None:
        wanted = self._settings.port
        if isinstance(wanted, int):
            return wanted
        return next((port for name, port in _ports(spec) if name == wanted), None)


def _ports(spec: dict[str, Any]) -> Iterator[tuple[str | None, int]]:
    # Of the containers that run first, those that go on running are sidecars.
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        for port in container.get("ports") or ():
            yield port.get("name"), int(port["containerPort"])

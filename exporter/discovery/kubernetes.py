"""Targets from Kubernetes: what a label selector chooses, as it comes and goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from exporter.discovery import kubernetes_endpoints, kubernetes_pods
from exporter.discovery.base import DiscoveryError, Found
from exporter.kubernetes.client import KubernetesError, Query, require
from exporter.kubernetes.mirror import PACE, Mirror, Pace
from exporter.settings.discovery import KubernetesDiscovery

TELL_SECONDS = 15.0
"""Without a change after which what is there counts as found anew."""
_GATHER_SECONDS = 0.05
"""After a change, for those that come with it."""
_GATHER_EACH = 0.00005
"""The same for each object that there is: what is made of a change is made of all of them."""

Reduce = Callable[[KubernetesDiscovery, dict[str, Any]], tuple[Found, ...]]
ROLES: dict[str, tuple[str, Reduce]] = {
    "pod": ("pods", kubernetes_pods.targets),
    "endpointslice": ("endpointslices", kubernetes_endpoints.targets),
}
"""For each `role` the kind of object, and what makes targets of one."""


class KubernetesTargets:
    """The targets of one namespace, or of all."""

    def __init__(
        self, settings: KubernetesDiscovery, namespace: str | None, pace: Pace = PACE
    ) -> None:
        """Raises DiscoveryError where the optional package is missing."""
        try:
            require()
        except KubernetesError as error:
            raise DiscoveryError(str(error)) from None
        self._settings = settings
        kind, reduce = ROLES[settings.role]
        self._query = Query(kind, namespace, settings.selector)
        self._reduce = partial(reduce, settings)
        self._pace = pace
        self._changed = asyncio.Event()
        self._mirror: Mirror[tuple[Found, ...]] | None = None

    async def find(self) -> tuple[Found, ...]:
        """The targets as they are now. Raises DiscoveryError while they are not followed."""
        if self._mirror is None:
            self._mirror = Mirror(
                self._settings, self._query, self._reduce, self._changed.set, self._pace
            )
        await self._mirror.tried()
        if self._mirror.failure is not None:
            raise DiscoveryError(self._mirror.failure)
        return _each_once(self._mirror.items)

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


def _each_once(items: Mapping[str, tuple[Found, ...]]) -> tuple[Found, ...]:
    """Each replica once. Several Services, and slices of both versions of IP, may have the same
    pod: the address of version 4 is taken, and of those the first by the object's name."""
    found: dict[str, Found] = {}
    for name in sorted(items):
        for one in items[name]:
            key = one.replica or one.url
            known = found.get(key)
            if known is None or ("[" in known.url and "[" not in one.url):
                found[key] = one
    return tuple(found.values())

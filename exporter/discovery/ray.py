"""Targets from the list of applications on Ray's dashboard: the nodes that run their replicas.

Each node's metrics agent answers for all replicas on it, so a node is a target once. The list:
`GET /api/serve/applications/`, `applications.*.deployments.*.replicas[].{state,node_ip,node_id}`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from exporter.discovery.base import DiscoveryError, Found
from exporter.engines.base import Request, json_object
from exporter.fetching.http import GroupClient, HttpClient
from exporter.settings import normalise_url
from exporter.settings.discovery import RayDiscovery

DEADLINE_SECONDS = 20.0
PATH = "/api/serve/applications/"
_SERVING = ("RUNNING", "UPDATING")


class RayServe:
    """The nodes of one Ray Serve instance."""

    def __init__(self, settings: RayDiscovery, http: HttpClient) -> None:
        """Raises TlsError for certificate files that cannot be used."""
        self._settings = settings
        self._http = http
        self._client = GroupClient(settings)

    async def find(self) -> tuple[Found, ...]:
        """The nodes as they are now. Raises DiscoveryError."""
        deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
        request = Request("applications", self._settings.dashboard + PATH, confidential=True)
        answer = await self._http.get(request, self._client, deadline)
        if answer.reason is not None:
            raise DiscoveryError(answer.detail)
        document = json_object(answer.body)
        if document is None or not isinstance(document.get("applications"), dict):
            raise DiscoveryError("the answer is no list of applications")
        return tuple(self._nodes(document["applications"]))

    async def wait(self) -> None:
        """Until the next question."""
        await asyncio.sleep(self._settings.refresh)

    async def close(self) -> None:
        """The connections belong to the common pool."""

    def _nodes(self, applications: dict[str, Any]) -> Iterator[Found]:
        seen: set[str] = set()
        wanted = self._settings.application
        for name, application in applications.items():
            if wanted is not None and name != wanted:
                continue
            for replica in _replicas(application):
                host = replica.get("node_ip")
                if not isinstance(host, str) or not host or replica.get("state") not in _SERVING:
                    continue
                shown = f"[{host}]" if ":" in host else host
                try:
                    url = normalise_url(f"{self._settings.scheme}://{shown}:{self._settings.port}")
                except ValueError:
                    raise DiscoveryError("a replica's node_ip is no address") from None
                if url not in seen:
                    seen.add(url)
                    node = replica.get("node_id")
                    yield Found(url, node=node if isinstance(node, str) else "")


def _replicas(application: object) -> Iterable[dict[str, Any]]:
    deployments = application.get("deployments") if isinstance(application, dict) else None
    for deployment in deployments.values() if isinstance(deployments, dict) else ():
        replicas = deployment.get("replicas") if isinstance(deployment, dict) else None
        yield from (one for one in replicas or () if isinstance(one, dict))

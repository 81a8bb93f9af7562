"""Targets from an address, as Prometheus's `http_sd` has them."""

from __future__ import annotations

import asyncio

import orjson

from exporter.discovery import listed
from exporter.discovery.base import DiscoveryError, Found
from exporter.engines.base import Request
from exporter.fetching.http import GroupClient, HttpClient
from exporter.settings.discovery import HttpDiscovery

DEADLINE_SECONDS = 20.0


class HttpList:
    """The list at one address. It is sent again only when it changed, where the server can tell."""

    def __init__(self, settings: HttpDiscovery, http: HttpClient) -> None:
        """Raises TlsError for certificate files that cannot be used."""
        self._settings = settings
        self._http = http
        self._client = GroupClient(settings)
        self._etag = ""
        self._found: tuple[Found, ...] = ()

    async def find(self) -> tuple[Found, ...]:
        """The list as it is now. Raises DiscoveryError."""
        deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
        request = Request("list", self._settings.url, etag=self._etag)
        answer = await self._http.get(request, self._client, deadline)
        if answer.reason is not None:
            raise DiscoveryError(answer.detail)
        if answer.status == 304:
            return self._found
        try:
            data = orjson.loads(answer.body)
        except (orjson.JSONDecodeError, RecursionError):
            raise DiscoveryError("the answer is no JSON") from None
        self._found = listed.read(data)
        self._etag = answer.etag
        return self._found

    async def wait(self) -> None:
        """Until the next question."""
        await asyncio.sleep(self._settings.refresh)

    async def close(self) -> None:
        """The connections belong to the common pool."""

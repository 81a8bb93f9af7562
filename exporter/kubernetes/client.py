"""Connections to a Kubernetes API server, by the official asynchronous client.

Answers are taken as bytes: the client's own models take a hundred times as long to build as the few
fields that are wanted, and its own watch hides what a copy must know (410 Gone, bookmarks, ends).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp

from exporter import __version__
from exporter.settings.access import KubernetesAccess

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

MISSING = "Kubernetes needs the extra kubernetes: pip install 'lora-capacity-exporter[kubernetes]'"
_LARGEST_PAGE = 128 * 2**20
_LONGEST_PAUSE = 60.0
_PLUGIN_SECONDS = 30.0


class KubernetesError(Exception):
    """The API server could not be asked. The text says why, without anything confidential."""

    def __init__(self, text: str, status: int | None = None, pause: float = 0.0) -> None:
        """`status`: of HTTP, where one came; `pause`: seconds that the server asks for."""
        super().__init__(text)
        self.status = status
        self.pause = pause


class GoneError(KubernetesError):
    """The version that was asked for is too old; a new list is needed."""


@dataclass(frozen=True, slots=True)
class Query:
    """Objects of one kind, all or some."""

    kind: str
    """`pods`, `endpointslices`, `nodes` or `priorityclasses`."""
    namespace: str | None = None
    """None: all, or objects that are in none."""
    label_selector: str | None = None
    field_selector: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} in {self.namespace}" if self.namespace is not None else self.kind

    def call(self, client: ApiClient) -> Any:
        """The client's function for it, which takes the parameters of the request."""
        from kubernetes_asyncio.client import (  # noqa: PLC0415 - an extra, only where it is used
            CoreV1Api,
            DiscoveryV1Api,
            SchedulingV1Api,
        )

        if self.kind == "priorityclasses":
            return SchedulingV1Api(client).list_priority_class
        if self.kind == "nodes":
            return CoreV1Api(client).list_node
        if self.kind == "endpointslices":
            slices = DiscoveryV1Api(client)
            if self.namespace is None:
                return slices.list_endpoint_slice_for_all_namespaces
            return partial(slices.list_namespaced_endpoint_slice, self.namespace)
        pods = CoreV1Api(client)
        if self.namespace is None:
            return pods.list_pod_for_all_namespaces
        return partial(pods.list_namespaced_pod, self.namespace)


def require() -> None:
    """Raises KubernetesError where the optional package is missing."""
    if importlib.util.find_spec("kubernetes_asyncio") is None:
        raise KubernetesError(MISSING)


class ApiServer:
    """The API server of one cluster. Connects when it is first asked."""

    def __init__(self, access: KubernetesAccess, answer_seconds: float) -> None:
        """`answer_seconds`: deadline for an answer to begin, and for a page to be there."""
        self._access = access
        self._answer_seconds = answer_seconds
        self._client: ApiClient | None = None
        self._admitted = False
        """Whether the credentials were good once."""

    async def page(self, query: Query, **parameters: Any) -> bytes:
        """A whole answer. Raises KubernetesError."""
        async with self.open(query, self._answer_seconds, **parameters) as answer:
            body = bytearray()
            try:
                async with asyncio.timeout(self._answer_seconds):
                    async for chunk in answer.content.iter_any():
                        body += chunk
                        if len(body) > _LARGEST_PAGE:
                            raise KubernetesError(f"{query}: a page over 128 MiB")
            except (aiohttp.ClientError, OSError) as error:
                raise KubernetesError(f"{query}: half an answer {_why(error)}") from None
            return bytes(body)

    @contextlib.asynccontextmanager
    async def open(
        self, query: Query, silence: float, **parameters: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer whose body is still to be read. Raises KubernetesError, GoneError for 410.

        `silence`: seconds without a byte after which reading the body raises TimeoutError.
        """
        answer = await self._ask(query, silence, parameters)
        if answer.status == 401 and self._admitted:
            # Credentials that were good have expired; new ones may be there.
            answer.close()
            await self.close()
            answer = await self._ask(query, silence, parameters)
        try:
            if answer.status != 200:
                raise _refusal(query, answer)
            self._admitted = True
            yield answer
        finally:
            answer.close()

    async def close(self) -> None:
        """Ends the connections. The next question reads the credentials anew."""
        if self._client is not None:
            await self._client.close()
            self._client = None
            self._admitted = False

    async def _ask(
        self, query: Query, silence: float, parameters: dict[str, Any]
    ) -> aiohttp.ClientResponse:
        client = await self._connected()
        selectors = {
            "label_selector": query.label_selector,
            "field_selector": query.field_selector,
        }
        wanted = {name: text for name, text in selectors.items() if text is not None}
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._answer_seconds, sock_read=silence
        )
        try:
            async with asyncio.timeout(self._answer_seconds):
                answer: aiohttp.ClientResponse = await query.call(client)(
                    **wanted, **parameters, _preload_content=False, _request_timeout=timeout
                )
                return answer
        except Exception as error:  # noqa: BLE001 - a token's file or a plugin may fail here too
            raise KubernetesError(f"{query}: no answer {_why(error)}") from None

    async def _connected(self) -> ApiClient:
        if self._client is None:
            self._client = await _connect(self._access)
        return self._client


def _why(error: Exception) -> str:
    """What kind of error it was. Its text may quote what a proxy or a plugin said."""
    return "in time" if isinstance(error, TimeoutError) else f"({type(error).__name__})"


def _refusal(query: Query, answer: aiohttp.ClientResponse) -> KubernetesError:
    if answer.status == 410:
        return GoneError(f"{query}: status 410", 410)
    wanted = ""
    if answer.status == 401:
        wanted = "; wanted other credentials"
    elif answer.status == 403:
        wanted = f"; wanted the right to list and watch {query}"
    pause = answer.headers.get("Retry-After", "")
    seconds = min(float(pause), _LONGEST_PAUSE) if pause.isdecimal() else 0.0
    return KubernetesError(f"{query}: status {answer.status}{wanted}", answer.status, seconds)


async def _connect(access: KubernetesAccess) -> ApiClient:
    require()
    # It imports a thousand models: seconds that the loop must not stand still.
    client, config = await asyncio.to_thread(_modules)
    configuration = client.Configuration()
    try:
        if access.kubeconfig_file is None:
            place = "the cluster that the exporter runs in"
            config.load_incluster_config(client_configuration=configuration)
        else:
            place = str(access.kubeconfig_file)
            # The file may name a plugin, a program that may never end.
            async with asyncio.timeout(_PLUGIN_SECONDS):
                await config.load_kube_config(
                    config_file=place,
                    context=access.context,
                    client_configuration=configuration,
                    persist_config=False,
                )
        connected: ApiClient = client.ApiClient(configuration)
    except Exception as error:  # noqa: BLE001 - the file may be anything, and name plugins
        # The text may quote the file, which holds credentials.
        text = f"no access by {place} ({type(error).__name__})"
        if access.kubeconfig_file is None:
            text += "; outside a cluster, wanted kubeconfig_file"
        raise KubernetesError(text) from None
    connected.user_agent = f"lora-exporter/{__version__}"
    return connected


def _modules() -> tuple[Any, Any]:
    from kubernetes_asyncio import client, config  # noqa: PLC0415 - an extra, only where it is used

    return client, config

"""A Kubernetes API server on loopback: lists in pages, watches with bookmarks, and what goes wrong.

It does what https://kubernetes.io/docs/reference/using-api/api-concepts/ says of both: one version
for all objects, tokens that stand for a list at one version, events of what enters and leaves a
selection, 410 for versions that were compacted.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

Object = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = "token-of-the-service-account"
_KINDS = {
    "/api/v1/pods": "pods",
    "/api/v1/namespaces/{namespace}/pods": "pods",
    "/apis/discovery.k8s.io/v1/endpointslices": "endpointslices",
    "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices": "endpointslices",
    "/api/v1/nodes": "nodes",
    "/apis/scheduling.k8s.io/v1/priorityclasses": "priorityclasses",
}


@dataclass(slots=True)
class _Change:
    version: int
    kind: str
    before: Object | None
    after: Object | None


@dataclass(slots=True)
class FakeApi:
    """The server's objects, and what it does to whom."""

    objects: dict[str, dict[str, Object]] = field(
        default_factory=lambda: {kind: {} for kind in _KINDS.values()}
    )
    version: int = 1000
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Verb, path and query of each."""
    answers: dict[str, list[Answer]] = field(default_factory=lambda: {"list": [], "watch": []})
    """What the next lists and watches get instead."""
    always: dict[str, Answer] = field(default_factory=dict)
    """What all lists or watches get instead."""
    token: str = TOKEN
    gone_as_event: bool = True
    """Whether a watch of a compacted version is answered with an event, or with a status."""
    address: str = ""
    watching: int = 0
    _changes: list[_Change] = field(default_factory=list)
    _compacted: int = 0
    _lists: dict[str, list[Object]] = field(default_factory=dict)
    _watchers: dict[asyncio.Queue[bytes | None], tuple[str, web.Request]] = field(
        default_factory=dict
    )

    # -- what happens in the cluster

    def put(self, kind: str, one: Object) -> None:
        """Creates an object, or changes it."""
        meta = one["metadata"]
        key = f"{meta.get('namespace', '')}/{meta['name']}"
        before = self.objects[kind].get(key)
        after = copy.deepcopy(one)
        self._change(kind, key, before, after)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Removes an object."""
        key = f"{namespace}/{name}"
        self._change(kind, key, self.objects[kind][key], None)

    def compact(self) -> None:
        """Forgets all that happened: watches of older versions are refused."""
        self._compacted = self.version
        self._changes.clear()
        self._lists.clear()

    def bookmark(self) -> None:
        """Tells all watches how far they are."""
        self.version += 1
        for queue, (kind, _) in self._watchers.items():
            meta = {"resourceVersion": str(self.version), "creationTimestamp": None}
            queue.put_nowait(_line("BOOKMARK", {"kind": kind, "metadata": meta}))

    def say(self, raw: bytes) -> None:
        """Sends bytes to all watches."""
        for queue in self._watchers:
            queue.put_nowait(raw)

    def hang_up(self) -> None:
        """Ends all watches in an orderly way."""
        for queue in self._watchers:
            queue.put_nowait(None)

    def cut(self) -> None:
        """Cuts all connections of watches."""
        for _, request in self._watchers.values():
            assert request.transport is not None
            request.transport.abort()

    def _change(self, kind: str, key: str, before: Object | None, after: Object | None) -> None:
        self.version += 1
        if after is None:
            assert before is not None
            del self.objects[kind][key]
            before = copy.deepcopy(before)
            before["metadata"]["resourceVersion"] = str(self.version)
        else:
            after["metadata"]["resourceVersion"] = str(self.version)
            self.objects[kind][key] = after
        change = _Change(self.version, kind, before, after)
        self._changes.append(change)
        for queue, (its, request) in self._watchers.items():
            if its == kind:
                for line in _event(change, request):
                    queue.put_nowait(line)

    # -- what is answered

    async def handle(self, request: web.Request) -> web.StreamResponse:
        verb = _verb(request)
        self.requests.append((verb, request.path, dict(request.query)))
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return failure(401, "Unauthorized")
        if self.answers[verb]:
            return await self.answers[verb].pop(0)(request)
        if verb in self.always:
            return await self.always[verb](request)
        return await self.serve(request)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The answer when nothing goes wrong."""
        verb = _verb(request)
        assert request.match_info.route.resource is not None
        kind = _KINDS[request.match_info.route.resource.canonical]
        return await (self._watch if verb == "watch" else self._list)(request, kind)

    async def _list(self, request: web.Request, kind: str) -> web.StreamResponse:
        token = request.query.get("continue")
        if token is not None:
            if token not in self._lists:
                return failure(410, "Expired")
            version, rest = token.partition("/")[0], self._lists.pop(token)
        else:
            version = str(self.version)
            rest = [one for one in self.objects[kind].values() if _selects(request, one)]
        limit = int(request.query.get("limit", "0")) or len(rest) or 1
        page, rest = rest[:limit], rest[limit:]
        meta = {"resourceVersion": version}
        if rest:
            meta["continue"] = f"{version}/{len(self._lists)}-{len(rest)}-{len(self.requests)}"
            self._lists[meta["continue"]] = rest
        return web.json_response({"kind": "List", "metadata": meta, "items": page or None})

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        too_old = since < self._compacted
        if too_old and not self.gone_as_event:
            return failure(410, "Expired")
        response = await stream(request)
        if too_old:
            await response.write(_line("ERROR", status_of(410, "Expired")))
            return response
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for change in self._changes:
            if change.kind == kind and change.version > since:
                for line in _event(change, request):
                    queue.put_nowait(line)
        self._watchers[queue] = (kind, request)
        self.watching += 1
        try:
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(int(request.query.get("timeoutSeconds", "1800"))):
                    while (told := await queue.get()) is not None:
                        await response.write(told)
        finally:
            self.watching -= 1
            del self._watchers[queue]
        return response


def _verb(request: web.Request) -> str:
    return "watch" if request.query.get("watch", "").lower() == "true" else "list"


def status_of(code: int, reason: str) -> Object:
    """The object that tells of a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"a message that may quote {TOKEN}",
        "reason": reason,
        "code": code,
    }


def failure(code: int, reason: str, **headers: str) -> web.Response:
    """The answer that tells of a failure."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(status_of(code, reason), status=code, headers=sent)


async def stream(request: web.Request) -> web.StreamResponse:
    """An answer whose body comes bit by bit."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    # The real one flushes the head, so that a watch without events is known to be open.
    await response.write(b"\n")
    return response


def _line(kind: str, one: Object) -> bytes:
    return json.dumps({"type": kind, "object": one}).encode() + b"\n"


def _event(change: _Change, request: web.Request) -> list[bytes]:
    """The change as a watch of a selection sees it."""
    was = change.before is not None and _selects(request, change.before)
    now = change.after is not None and _selects(request, change.after)
    if now:
        assert change.after is not None
        return [_line("MODIFIED" if was else "ADDED", change.after)]
    if was:
        gone = copy.deepcopy(change.after or change.before)
        assert gone is not None
        return [_line("DELETED", gone)]
    return []


def _selects(request: web.Request, one: Object) -> bool:
    meta = one["metadata"]
    namespace = request.match_info.get("namespace")
    if namespace is not None and meta.get("namespace") != namespace:
        return False
    labels = meta.get("labels") or {}
    for term in filter(None, request.query.get("labelSelector", "").split(",")):
        key, _, value = term.partition("=")
        if labels.get(key) != value:
            return False
    for term in filter(None, request.query.get("fieldSelector", "").split(",")):
        path, _, value = term.partition("!=")
        found: Any = one
        for step in path.split("."):
            found = (found or {}).get(step, "")
        if found == value:
            return False
    return True


@contextlib.asynccontextmanager
async def kubernetes(
    api: FakeApi | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FakeApi]:
    """The server, until the block ends."""
    api = api or FakeApi()
    app = web.Application()
    for path in _KINDS:
        app.router.add_get(path, api.handle)
    port = int(api.address.rpartition(":")[2] or 0)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    api.address = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()


def kubeconfig(folder: Path, api: FakeApi, token: str = TOKEN) -> Path:
    """A kubeconfig for the server."""
    path = folder / "kubeconfig"
    named = {"name": "fake"}
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "fake",
                "clusters": [{**named, "cluster": {"server": api.address}}],
                "users": [{**named, "user": {"token": token}}],
                "contexts": [{**named, "context": {"cluster": "fake", "user": "fake"}}],
            }
        )
    )
    return path

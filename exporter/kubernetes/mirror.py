"""A small copy of the objects of one kind, kept current by list and watch.

What the API promises: https://kubernetes.io/docs/reference/using-api/api-concepts/ (pages, resource
versions, bookmarks, 410 Gone).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import aiohttp
import orjson

from exporter.kubernetes.client import ApiServer, GoneError, KubernetesError, Query
from exporter.settings.access import KubernetesAccess

LOG = logging.getLogger(__name__)

T = TypeVar("T")
Object = dict[str, Any]
"""An object as the API has it."""

_MOST_PAGES = 10_000
_LONGEST_LINE = 16 * 2**20
_BREATH = 50
"""Objects after which the loop may do other things."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient the copy is. Seconds, but for the size of a page."""

    page: int = 250
    """Objects of a page: few enough that reading one does not hold up the loop."""
    answer: float = 30.0
    """Until an answer begins, and until a page is there."""
    watch: float = 300.0
    """After which the server is asked to end a watch, a tenth more or less."""
    silence: float = 90.0
    """Without a byte after which a watch begins anew. A live server sends a bookmark each minute,
    and a dead one does not accept the new watch."""
    first_delay: float = 0.5
    """Between the first failure and the next attempt; twice as long after each further one."""
    longest_delay: float = 30.0
    steady: float = 5.0
    """A watch that lasted so long was a good one."""


PACE = Pace()


class Mirror(Generic[T]):
    """The copy. It stays as it was while the server cannot be asked. Used from one event loop."""

    def __init__(
        self,
        access: KubernetesAccess,
        query: Query,
        reduce: Callable[[Object], T | None],
        on_change: Callable[[], None] = lambda: None,
        pace: Pace = PACE,
    ) -> None:
        """`reduce` makes of an object what is kept of it; None: nothing. `on_change` is told when
        that changed, and of each failure and its end."""
        self.items: dict[str, T] = {}
        """What is kept, by `namespace/name`, or by name."""
        self.listed = False
        """Whether there was a whole list."""
        self.failure: str | None = None
        """Why the copy may be out of date; None: it is current."""
        self._server = ApiServer(access, pace.answer)
        self._query = query
        self._reduce = reduce
        self._on_change = on_change
        self._pace = pace
        self._version: str | None = None
        self._failures = 0
        self._tried = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"mirror {query}")

    async def tried(self) -> None:
        """Returns when the first list is there, or failed."""
        await self._tried.wait()

    async def close(self) -> None:
        """Ends the copy."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._server.close()

    async def _run(self) -> None:
        while True:
            try:
                pause = await self._step()
            except GoneError:
                self._version = None
                pause = self._delay()
            except KubernetesError as error:
                if error.status is not None:
                    # What the server does not answer for this version, it may never answer.
                    self._version = None
                pause = max(self._delay(), error.pause)
                await self._fail(str(error))
            except Exception as error:
                LOG.exception("a copy failed", extra={"kind": str(self._query)})
                self._version = None
                pause = self._delay()
                await self._fail(f"a mistake of the exporter's own: {type(error).__name__}")
            await asyncio.sleep(pause)

    async def _step(self) -> float:
        """Lists, or watches from the last version on until that ends. Gives the pause after it."""
        if self._version is None:
            await self._list()
            return 0.0
        loop = asyncio.get_running_loop()
        began, version = loop.time(), self._version
        try:
            await self._watch(version)
        finally:
            if loop.time() - began >= self._pace.steady:
                self._failures = 0
        if self._version != version or loop.time() - began >= self._pace.steady:
            return 0.0
        # It ended at once, and told nothing: no reason to hammer.
        return self._delay()

    def _delay(self) -> float:
        """Seconds until the next attempt, longer after each, and never the same for all of us."""
        longest = min(self._pace.first_delay * 2**self._failures, self._pace.longest_delay)
        self._failures = min(self._failures + 1, 30)
        return float(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

    async def _fail(self, text: str) -> None:
        self.failure = text
        self._tried.set()
        self._on_change()
        # The next attempt reads credentials, certificates and names anew.
        await self._server.close()

    async def _list(self) -> None:
        found: dict[str, T] = {}
        token: str | None = None
        for _ in range(_MOST_PAGES):
            body = await self._server.page(self._query, limit=self._pace.page, _continue=token)
            version, token, objects = self._read_page(body)
            for number, one in enumerate(objects, 1):
                key, kept = self._read(one)
                if kept is not None:
                    found[key] = kept
                if number % _BREATH == 0:
                    await asyncio.sleep(0)
            if not token:
                break
        else:
            raise KubernetesError(f"{self._query}: a list without end")
        changed = found != self.items or not self.listed or self.failure is not None
        self.items, self._version, self.listed, self.failure = found, version, True, None
        self._tried.set()
        if changed:
            self._on_change()

    async def _watch(self, version: str) -> None:
        """Follows until the server ends it, or is silent. Raises KubernetesError."""
        pace = self._pace
        seconds = max(int(pace.watch * random.uniform(0.9, 1.1)), 1)  # noqa: S311 - no secret
        async with self._server.open(
            self._query,
            pace.silence,
            watch=True,
            resource_version=version,
            allow_watch_bookmarks=True,
            timeout_seconds=seconds,
        ) as answer:
            if self.failure is not None:
                self.failure = None
                self._on_change()
            try:
                number = 0
                async for line in _lines(answer.content):
                    self._take(line)
                    number += 1
                    if number % _BREATH == 0:
                        await asyncio.sleep(0)
            except (aiohttp.ClientError, OSError):
                # Silence, or a connection that ended: the next watch shows whether all is well.
                return

    def _take(self, line: bytes) -> None:
        """One event of the watch."""
        try:
            event = orjson.loads(line)
            kind, one = event["type"], event["object"]
            if kind == "ERROR":
                raise self._error(one)
            version = one["metadata"]["resourceVersion"]
            if not isinstance(version, str) or not version:
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError):
            self._version = None
            raise KubernetesError(f"{self._query}: the watch sends what is no event") from None
        if kind != "BOOKMARK":
            key, kept = self._read(one)
            if kind == "DELETED":
                kept = None
            before = self.items.get(key)
            if kept is None:
                self.items.pop(key, None)
            else:
                self.items[key] = kept
            if kept != before:
                self._on_change()
        self._version = version

    def _error(self, status: Object) -> KubernetesError:
        code = status.get("code")
        if code == 410 or status.get("reason") in ("Expired", "Gone"):
            return GoneError(f"{self._query}: the watch is too old", 410)
        number = code if isinstance(code, int) else 500
        return KubernetesError(f"{self._query}: the watch ends with status {number}", number)

    def _read_page(self, body: bytes) -> tuple[str, str | None, list[Object]]:
        try:
            page = orjson.loads(body)
            meta, objects = page["metadata"], page["items"]
            if objects is None:
                # As an empty list is written by some.
                objects = []
            version, token = meta["resourceVersion"], meta.get("continue") or None
            good = isinstance(version, str) and version and isinstance(objects, list)
            if not good or not isinstance(token, str | None):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise KubernetesError(f"{self._query}: the answer is no list") from None
        return version, token, objects

    def _read(self, one: Object) -> tuple[str, T | None]:
        """The object's key, and what is kept of it."""
        try:
            meta = one["metadata"]
            namespace = meta.get("namespace")
            key = f"{namespace}/{meta['name']}" if namespace else str(meta["name"])
            return key, self._reduce(one)
        except (ValueError, KeyError, TypeError, AttributeError):
            self._version = None
            raise KubernetesError(f"{self._query}: an object that is none") from None


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a body as they come. What is cut off at the end is no line."""
    rest = bytearray()
    async for chunk in content.iter_any():
        head, mark, tail = chunk.rpartition(b"\n")
        if not mark:
            rest += chunk
        else:
            rest += head
            for line in bytes(rest).split(b"\n"):
                if line.strip():
                    yield line
            rest = bytearray(tail)
        if len(rest) > _LONGEST_LINE:
            raise KubernetesError("the watch sends a line over 16 MiB", 500)

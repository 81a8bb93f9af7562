"""State stores of training servers, read only: a JSON file, or keys in Redis.

The Redis client is an optional dependency, imported where it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from exporter.engines.base import Answer, Request
from exporter.fetching.secrets import SecretError, SecretFile
from exporter.fleet import Reason
from exporter.settings import TargetGroup

_BATCH = 500
_MAX_KEYS = 200_000
_GLOB = str.maketrans({character: "\\" + character for character in "\\*?[]^-"})

Store = Callable[[Request], Awaitable[Answer]]


class StateClient:
    """The state store of one group."""

    def __init__(self, group: TargetGroup, max_body: int) -> None:
        self.max_body = max_body
        self._state = group.state
        self._tls = group.tls
        self._redis: Any = None
        self._reading: threading.Thread | None = None

    async def close(self) -> None:
        """Ends the connection to the store."""
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None

    async def get(self, request: Request, deadline: float) -> Answer:
        """Reads, until `deadline` (the loop's clock). Never raises but for cancellation."""
        read: Store = self._file if request.url.startswith("file:") else self._keys
        try:
            async with asyncio.timeout_at(deadline):
                return await read(request)
        except TimeoutError:
            await self.close()
            return Answer(reason=Reason.TIMEOUT, detail="state store: no answer in time")

    async def _file(self, request: Request) -> Answer:
        # Reopened each time: the server replaces it at every write.
        path = Path(unquote(urlsplit(request.url).path))
        if self._reading is not None and self._reading.is_alive():
            return Answer(reason=Reason.TIMEOUT, detail="state file: the last read still hangs")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()

        def tell(answer: Answer) -> None:
            if not done.done():
                done.set_result(answer)

        def read() -> None:
            answer = self._read_file(path)
            # The loop may be closed by now.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, answer)

        # Of its own, and a daemon: a file system that hangs must hold up neither other work nor
        # the end of the process.
        self._reading = threading.Thread(target=read, name="state file", daemon=True)
        self._reading.start()
        return await done

    def _read_file(self, path: Path) -> Answer:
        try:
            # Before it is opened: a pipe would keep this thread for ever.
            if not stat.S_ISREG(path.stat().st_mode):
                return Answer(reason=Reason.FORMAT, detail="state file: not a regular file")
            with path.open("rb") as stream:
                body = stream.read(self.max_body + 1)
        except ValueError:
            return Answer(reason=Reason.CONNECT, detail="state file: not a path")
        except OSError as error:
            reason = Reason.AUTH if isinstance(error, PermissionError) else Reason.CONNECT
            return Answer(reason=reason, detail=f"state file: {error.strerror}")
        if len(body) > self.max_body:
            detail = f"state file: over poll.max_body ({self.max_body} bytes)"
            return Answer(reason=Reason.TOO_LARGE, detail=detail)
        return Answer(body)

    async def _keys(self, request: Request) -> Answer:
        try:
            from redis import exceptions  # noqa: PLC0415 - an optional dependency
        except ImportError:
            detail = "state store: pip install 'lora-capacity-exporter[redis]'"
            return Answer(reason=Reason.UNSUPPORTED, detail=detail)
        try:
            client = self._client(request.url)
            return await self._scan(client, request)
        except SecretError as error:
            return Answer(reason=Reason.AUTH, detail=str(error))
        except (exceptions.AuthenticationError, exceptions.NoPermissionError):
            await self.close()
            detail = "state store: the account may not scan and read the keys"
            return Answer(reason=Reason.AUTH, detail=detail)
        except exceptions.TimeoutError:
            await self.close()
            return Answer(reason=Reason.TIMEOUT, detail="state store: no answer in time")
        except (exceptions.ConnectionError, OSError):
            await self.close()
            return Answer(reason=Reason.CONNECT, detail="state store: cannot connect")
        except exceptions.RedisError as error:
            await self.close()
            # The text of a Redis error may quote keys.
            detail = f"state store: {type(error).__name__}"
            return Answer(reason=Reason.FORMAT, detail=detail)

    def _client(self, url: str) -> Any:
        if self._redis is None:
            from redis.asyncio import Redis  # noqa: PLC0415 - an optional dependency

            options: dict[str, Any] = {}
            state = self._state
            if state is not None:
                options["username"] = state.username
                if state.password_file is not None:
                    options["password"] = SecretFile(state.password_file).read()
            if url.startswith("rediss:") and self._tls.ca_file is not None:
                options["ssl_ca_certs"] = str(self._tls.ca_file)
            self._redis = Redis.from_url(url, max_connections=32, **options)
        return self._redis

    async def _scan(self, client: Any, request: Request) -> Answer:
        prefix = request.key_prefix.encode()
        keys: set[bytes] = set()
        for pattern in request.patterns:
            match = request.key_prefix.translate(_GLOB) + pattern
            async for key in client.scan_iter(match=match, count=1000):
                keys.add(key)
                if len(keys) > _MAX_KEYS:
                    detail = f"state store: over {_MAX_KEYS} keys"
                    return Answer(reason=Reason.TOO_LARGE, detail=detail)
        entries: dict[str, bytes] = {}
        size = 0
        ordered = sorted(keys)
        for at in range(0, len(ordered), _BATCH):
            batch = ordered[at : at + _BATCH]
            for key, value in zip(batch, await client.mget(batch), strict=True):
                # None: removed since the scan, or of another type.
                if value is not None:
                    size += len(value)
                    entries[key.removeprefix(prefix).decode(errors="replace")] = value
            if size > self.max_body:
                detail = f"state store: over poll.max_body ({self.max_body} bytes)"
                return Answer(reason=Reason.TOO_LARGE, detail=detail)
        return Answer(entries=entries)

"""State stores of training servers, read only: a JSON file, or keys in Redis.

The Redis client is an optional dependency, imported where it is used.
"""

from __future__ import annotations

import asyncio
import stat
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
        return await asyncio.to_thread(self._read_file, Path(unquote(urlsplit(request.url).path)))

    def _read_file(self, path: Path) -> Answer:
        try:
            # Before it is opened: a pipe would keep this thread for ever.
            if not stat.S_ISREG(path.stat().st_mode):
                return Answer(reason=Reason.FORMAT, detail="state file: not a regular file")
            with path.open("rb") as stream:
                body = stream.read(self.max_body + 1)
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
            self._redis = Redis.from_url(url, max_connections=2, **options)
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

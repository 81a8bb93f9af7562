"""GET over one connection pool, with bounded bodies and a reason for each way to fail.

Redirects are not followed: credentials belong to the address that the operator gave.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import os
import ssl
import zlib
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from aiohttp import hdrs

from exporter.engines.base import Answer, Request
from exporter.fetching.secrets import SecretError, SecretFile
from exporter.fleet import Reason
from exporter.settings import Auth, Header, Tls

_CHUNK = 64 * 1024
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class TlsError(Exception):
    """A certificate file cannot be used."""


class Access(Protocol):
    """Settings of how addresses are reached."""

    @property
    def auth(self) -> Auth:
        """Credentials."""

    @property
    def headers(self) -> Mapping[str, Header]:
        """Further headers by name."""

    @property
    def tls(self) -> Tls:
        """TLS."""


class GroupClient:
    """How one group's targets, or another address, are reached: credentials and TLS."""

    def __init__(self, group: Access) -> None:
        """Raises TlsError for certificate files that cannot be used."""
        auth: Auth = group.auth
        self._token = SecretFile(auth.bearer_token_file) if auth.bearer_token_file else None
        self._user = auth.basic.username if auth.basic else ""
        self._password = SecretFile(auth.basic.password_file) if auth.basic else None
        self._plain = {name: h.value for name, h in group.headers.items() if h.value is not None}
        self._secret = {
            name: SecretFile(header.value_file)
            for name, header in group.headers.items()
            if header.value_file is not None
        }
        self.ssl = _context(group.tls)
        self.server_name = group.tls.server_name

    def headers(self) -> dict[str, str]:
        """The headers of the group, those that carry credentials too. Raises SecretError."""
        headers = {**self._plain, **{name: file.read() for name, file in self._secret.items()}}
        if self._token is not None:
            headers[hdrs.AUTHORIZATION] = f"Bearer {self._token.read()}"
        elif self._password is not None:
            credentials = f"{self._user}:{self._password.read()}".encode()
            headers[hdrs.AUTHORIZATION] = f"Basic {base64.b64encode(credentials).decode()}"
        return headers


@functools.cache
def _default_context() -> ssl.SSLContext:
    """The system's certificates, which take some milliseconds to load."""
    return ssl.create_default_context()


def _context(tls: Tls) -> ssl.SSLContext:
    if tls == Tls():
        return _default_context()
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except (OSError, ValueError) as error:
        raise TlsError(f"tls: {error}") from None
    if tls.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class HttpClient:
    """The one connection pool."""

    def __init__(self, max_body: int) -> None:
        """`max_body`: most bytes of a body that are read, before and after decompression."""
        self.max_body = max_body
        self._session = aiohttp.ClientSession(
            # The poller bounds how much is under way.
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=30),
            # Compressed bodies are unpacked here, where their size is bounded.
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            headers={hdrs.ACCEPT_ENCODING: "identity", hdrs.USER_AGENT: "lora-exporter"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections."""
        await self._session.close()

    async def get(self, request: Request, client: GroupClient, deadline: float) -> Answer:
        """Asks, until `deadline` (the loop's clock). Never raises but for cancellation."""
        where = _where(request.url)
        try:
            headers = client.headers() if request.credentials else {}
            if request.etag:
                headers[hdrs.IF_NONE_MATCH] = request.etag
            async with asyncio.timeout_at(deadline):
                return await self._get(request.url, where, client, headers)
        except TimeoutError:
            return Answer(reason=Reason.TIMEOUT, detail=f"{where}: no answer in time")
        except SecretError as error:
            return Answer(reason=Reason.AUTH, detail=str(error))
        except (aiohttp.ClientSSLError, ssl.SSLError) as error:
            return Answer(reason=Reason.TLS, detail=f"{where}: {_tls_text(error)}")
        except aiohttp.ClientConnectorError as error:
            return Answer(reason=Reason.CONNECT, detail=f"{where}: {_os_text(error.os_error)}")
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
            detail = f"{where}: the connection ended in the middle of the answer"
            return Answer(reason=Reason.CONNECT, detail=detail)
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL, ValueError):
            return Answer(reason=Reason.FORMAT, detail=f"{where}: the answer is no HTTP")
        except OSError as error:
            return Answer(reason=Reason.CONNECT, detail=f"{where}: {_os_text(error)}")
        except aiohttp.ClientError as error:
            return Answer(reason=Reason.CONNECT, detail=f"{where}: {type(error).__name__}")

    async def _get(
        self, url: str, where: str, client: GroupClient, headers: dict[str, str]
    ) -> Answer:
        async with self._session.get(
            url,
            headers=headers,
            ssl=client.ssl,
            server_hostname=client.server_name,
            allow_redirects=False,
        ) as response:
            status = response.status
            if status in (401, 403):
                detail = f"{where}: HTTP {status}, credentials are missing or wrong"
                return Answer(status=status, reason=Reason.AUTH, detail=detail)
            if status == 304 and hdrs.IF_NONE_MATCH in headers:
                return Answer(status=status, etag=headers[hdrs.IF_NONE_MATCH])
            if 300 <= status < 400:
                detail = f"{where}: HTTP {status}, redirects are not followed"
                return Answer(status=status, reason=Reason.STATUS, detail=detail)
            if status != 200:
                detail = f"{where}: HTTP {status}"
                return Answer(status=status, reason=Reason.STATUS, detail=detail)
            encoding = response.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
            if encoding != "identity" and encoding not in _WINDOW_BITS:
                detail = f"{where}: unknown Content-Encoding"
                return Answer(status=status, reason=Reason.FORMAT, detail=detail)
            try:
                body = await self._body(response, encoding)
            except zlib.error:
                detail = f"{where}: the body is not {encoding}"
                return Answer(status=status, reason=Reason.FORMAT, detail=detail)
            if body is None:
                detail = f"{where}: the body is over poll.max_body ({self.max_body} bytes)"
                return Answer(status=status, reason=Reason.TOO_LARGE, detail=detail)
            return Answer(
                body,
                status=status,
                etag=response.headers.get(hdrs.ETAG, ""),
                date=_date(response.headers.get(hdrs.DATE)),
            )

    async def _body(self, response: aiohttp.ClientResponse, encoding: str) -> bytes | None:
        """The body; None as soon as it is larger than allowed, packed or unpacked.

        Raises zlib.error for a body that is not what its encoding says.
        """
        announced = response.content_length
        if announced is not None and announced > self.max_body:
            return None
        inflate = None if encoding == "identity" else zlib.decompressobj(_WINDOW_BITS[encoding])
        chunks: list[bytes] = []
        received = size = 0
        async for packed in response.content.iter_chunked(_CHUNK):
            received += len(packed)
            chunk = packed
            if inflate is not None:
                chunk = inflate.decompress(packed, self.max_body + 1 - size)
            chunks.append(chunk)
            size += len(chunk)
            if size > self.max_body or received > self.max_body:
                return None
        if inflate is not None and not inflate.eof:
            raise zlib.error
        return b"".join(chunks)


def _where(url: str) -> str:
    """What is asked, without host and query."""
    return "GET /" + url.partition("://")[2].partition("/")[2].partition("?")[0]


def _date(value: str | None) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp() if value else None
    except (ValueError, OverflowError):
        return None


def _os_text(error: OSError) -> str:
    # asyncio writes addresses into strerror.
    return os.strerror(error.errno) if error.errno and error.errno > 0 else "cannot connect"


def _tls_text(error: Exception) -> str:
    inner: BaseException | None = getattr(error, "certificate_error", None)
    inner = inner or getattr(error, "os_error", None) or error
    message = getattr(inner, "verify_message", "") or getattr(inner, "reason", "")
    return str(message or "TLS failed")

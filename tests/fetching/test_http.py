"""Each way in which an answer can be bad has its reason, and nothing is read without bounds."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from exporter.engines.base import Answer, Request
from exporter.fetching.http import GroupClient, HttpClient, TlsError
from exporter.fleet import Reason
from exporter.settings import Auth, BasicAuth, TargetGroup, Tls
from tests.support import servers
from tests.support.servers import http_server, raw_server, text_handler

MAX_BODY = 1_000_000


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(MAX_BODY) as client:
        yield client


async def get(
    http: HttpClient, url: str, group: TargetGroup | None = None, seconds: float = 5.0
) -> Answer:
    client = GroupClient(group or TargetGroup(name="g"))
    deadline = asyncio.get_running_loop().time() + seconds
    return await http.get(Request("key", url), client, deadline)


async def test_a_good_answer(http: HttpClient) -> None:
    async with http_server({"/x": text_handler("hello")}) as url:
        answer = await get(http, f"{url}/x")
    assert answer.ok
    assert answer.body == b"hello"
    assert answer.status == 200
    assert answer.date is not None


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (servers.never_answers, Reason.TIMEOUT),
        (servers.headers_then_nothing, Reason.TIMEOUT),
        (servers.dies_in_mid_body, Reason.CONNECT),
        (servers.endless_body, Reason.TOO_LARGE),
        (servers.no_http, Reason.FORMAT),
        (servers.endless_headers, Reason.FORMAT),
    ],
)
async def test_bad_servers(http: HttpClient, serve: servers.Raw, reason: Reason) -> None:
    async with raw_server(serve) as url:
        answer = await get(http, url, seconds=0.5 if reason is Reason.TIMEOUT else 20.0)
    assert answer.reason is reason
    assert answer.body == b""
    assert url.removeprefix("http://") not in answer.detail


async def test_nobody_listens(http: HttpClient) -> None:
    async with raw_server(servers.no_http) as url:
        pass
    answer = await get(http, url)
    assert answer.reason is Reason.CONNECT
    assert answer.detail == "GET /: Connection refused"


async def test_a_name_that_does_not_exist(http: HttpClient) -> None:
    assert (await get(http, "http://replica.invalid:1")).reason is Reason.CONNECT


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, Reason.AUTH), (403, Reason.AUTH), (404, Reason.STATUS), (500, Reason.STATUS)],
)
async def test_statuses(http: HttpClient, status: int, reason: Reason) -> None:
    async with http_server({"/": text_handler("secret traceback", status)}) as url:
        answer = await get(http, url)
    assert (answer.reason, answer.status) == (reason, status)
    assert "secret" not in answer.detail


async def test_redirect_loops_are_not_followed(http: HttpClient) -> None:
    asked: list[str] = []

    async def loop(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/"})

    async with http_server({"/": loop}) as url:
        answer = await get(http, url)
    assert answer.reason is Reason.STATUS
    assert answer.detail == "GET /: HTTP 302, redirects are not followed"
    assert asked == ["/"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_compressed_bodies_are_unpacked(http: HttpClient, encoding: str) -> None:
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    handler = text_handler(pack(b"hello" * 1000), Content_Encoding=encoding)
    async with http_server({"/": handler}) as url:
        assert (await get(http, url)).body == b"hello" * 1000


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"not packed", "gzip"), (gzip.compress(b"x" * 1000, mtime=0)[:-9], "gzip"), (b"x", "br")],
)
async def test_bodies_that_are_not_what_their_encoding_says(
    http: HttpClient, body: bytes, encoding: str
) -> None:
    async with http_server({"/": text_handler(body, Content_Encoding=encoding)}) as url:
        assert (await get(http, url)).reason is Reason.FORMAT


async def test_a_gzip_bomb_is_not_unpacked(http: HttpClient) -> None:
    bomb = servers.gzip_bomb()
    async with http_server({"/": text_handler(bomb, Content_Encoding="gzip")}) as url:
        tracemalloc.start()
        answer = await get(http, url, seconds=20.0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert answer.reason is Reason.TOO_LARGE
    assert peak < 20 * MAX_BODY


async def test_a_body_of_exactly_the_limit_is_read(http: HttpClient) -> None:
    async with http_server(
        {"/at": text_handler(b"x" * MAX_BODY), "/over": text_handler(b"x" * (MAX_BODY + 1))}
    ) as url:
        assert len((await get(http, f"{url}/at")).body) == MAX_BODY
        assert (await get(http, f"{url}/over")).reason is Reason.TOO_LARGE


async def _echo(request: web.Request) -> web.Response:
    return web.Response(text=request.headers.get("Authorization", "none"))


async def test_credentials_come_from_files_and_follow_them(
    http: HttpClient, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text("first\n")
    token = TargetGroup(name="g", auth=Auth(bearer_token_file=secret))
    basic = TargetGroup(name="g", auth=Auth(basic=BasicAuth(username="u", password_file=secret)))
    async with http_server({"/": _echo}) as url:
        assert (await get(http, url, token)).body == b"Bearer first"
        assert (await get(http, url, basic)).body == b"Basic dTpmaXJzdA=="
        client = GroupClient(token)
        deadline = asyncio.get_running_loop().time() + 5
        assert (await http.get(Request("k", url), client, deadline)).body == b"Bearer first"
        secret.write_text("the second")
        assert (await http.get(Request("k", url), client, deadline)).body == b"Bearer the second"
        elsewhere = Request("k", url, credentials=False)
        assert (await http.get(elsewhere, client, deadline)).body == b"none"


@pytest.mark.parametrize("content", [b"", b"two\nlines", b"t\xc3\xa4", b"a\0b"])
async def test_a_secret_that_is_no_header_is_told_and_not_shown(
    http: HttpClient, tmp_path: Path, content: bytes
) -> None:
    secret = tmp_path / "token"
    secret.write_bytes(content)
    group = TargetGroup(name="g", auth=Auth(bearer_token_file=secret))
    async with http_server({"/": _echo}) as url:
        answer = await get(http, url, group)
    assert answer.reason is Reason.AUTH
    assert answer.detail == f"{secret}: not one line of printable ASCII"


async def test_a_secret_that_vanished(http: HttpClient, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("first")
    group = TargetGroup(name="g", auth=Auth(bearer_token_file=secret))
    secret.unlink()
    async with http_server({"/": _echo}) as url:
        answer = await get(http, url, group)
    assert answer.reason is Reason.AUTH
    assert answer.detail == f"{secret}: No such file or directory"


class _Pki:
    """A certificate authority, a server of the given name, and a client."""

    def __init__(self, folder: Path, name: str) -> None:
        ca = trustme.CA()
        self.ca = folder / "ca.pem"
        ca.cert_pem.write_to_path(str(self.ca))
        self.cert, self.key = folder / "client.pem", folder / "client.key"
        issued = ca.issue_cert("client@example.org")
        issued.cert_chain_pems[0].write_to_path(str(self.cert))
        issued.private_key_pem.write_to_path(str(self.key))
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert(name).configure_cert(self.server)
        ca.configure_trust(self.server)


async def test_tls_with_a_ca_of_its_own(http: HttpClient, tmp_path: Path) -> None:
    pki = _Pki(tmp_path, "127.0.0.1")
    async with http_server({"/": text_handler("ok")}, pki.server) as url:
        good = TargetGroup(name="g", tls=Tls(ca_file=pki.ca))
        assert (await get(http, url, good)).body == b"ok"
        answer = await get(http, url)
        assert answer.reason is Reason.TLS
        assert "certificate" in answer.detail
        blind = TargetGroup(name="g", tls=Tls(insecure_skip_verify=True))
        assert (await get(http, url, blind)).body == b"ok"


async def test_tls_with_a_wrong_name(http: HttpClient, tmp_path: Path) -> None:
    pki = _Pki(tmp_path, "replica.example.org")
    async with http_server({"/": text_handler("ok")}, pki.server) as url:
        answer = await get(http, url, TargetGroup(name="g", tls=Tls(ca_file=pki.ca)))
        assert answer.reason is Reason.TLS
        assert "mismatch" in answer.detail
        tls = Tls(ca_file=pki.ca, server_name="replica.example.org")
        assert (await get(http, url, TargetGroup(name="g", tls=tls))).body == b"ok"


async def test_client_certificates(http: HttpClient, tmp_path: Path) -> None:
    pki = _Pki(tmp_path, "127.0.0.1")
    pki.server.verify_mode = ssl.CERT_REQUIRED
    async with http_server({"/": text_handler("ok")}, pki.server) as url:
        with_one = Tls(ca_file=pki.ca, cert_file=pki.cert, key_file=pki.key)
        assert (await get(http, url, TargetGroup(name="g", tls=with_one))).body == b"ok"
        without = TargetGroup(name="g", tls=Tls(ca_file=pki.ca))
        assert (await get(http, url, without)).reason in (Reason.TLS, Reason.CONNECT)


async def test_tls_to_a_server_that_speaks_plain_http(http: HttpClient) -> None:
    async with http_server({"/": text_handler("ok")}) as url:
        answer = await get(http, url.replace("http:", "https:"))
    assert answer.reason is Reason.TLS


def test_certificate_files_that_are_none(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    with pytest.raises(TlsError, match="tls: "):
        GroupClient(TargetGroup(name="g", tls=Tls(ca_file=junk)))

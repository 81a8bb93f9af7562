"""Servers on loopback that answer well or badly. They are real: what they do goes over TCP."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LORA_INFO = "vllm:lora_requests_info"


@contextlib.asynccontextmanager
async def http_server(
    routes: dict[str, Handler], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """An HTTP server with GET handlers by path; gives its address."""
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def raw_server(serve: Raw) -> AsyncIterator[str]:
    """A TCP server that says what it likes; gives its HTTP address."""
    tasks: set[asyncio.Task[None]] = set()
    writers: set[asyncio.StreamWriter] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled, a handler is done; and a client that gives up before it asked is no mistake
        # of the server's.
        with contextlib.suppress(
            ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError
        ):
            await serve(reader, writer)
        writers.discard(writer)
        writer.close()

    def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Known at once, so that one whose task has not begun yet is closed too.
        writers.add(writer)
        task = asyncio.create_task(answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.close()
        # Transports are closed in the loop's next round.
        await asyncio.sleep(0)


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """The head of one request."""
    return await reader.readuntil(b"\r\n\r\n")


def text_handler(body: str | bytes, status: int = 200, **headers: str) -> Handler:
    """Always the same answer."""
    raw = body.encode() if isinstance(body, str) else body

    async def handle(request: web.Request) -> web.Response:
        del request
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=raw, status=status, headers=sent)

    return handle


def vllm_text(
    running: str = "a", max_lora: int = 4, at: float = 1.0e9, tokens: int = 100, model: str = "base"
) -> str:
    """What matters of a replica's exposition."""
    return (
        f'vllm:num_requests_running{{engine="0",model_name="{model}"}} 0.0\n'
        f'vllm:generation_tokens_total{{engine="0",model_name="{model}"}} {tokens}.0\n'
        f'{LORA_INFO}{{max_lora="{max_lora}",running_lora_adapters="{running}",'
        f'waiting_lora_adapters=""}} {at}\n'
    )


def vllm_routes(text: str | None = None, version: str = "0.10.2") -> dict[str, Handler]:
    """A replica that filters by name like the real one, on the path with a slash only."""
    exposition = text if text is not None else vllm_text()

    async def filtered(request: web.Request) -> web.Response:
        names = tuple(request.query.getall("name[]", []))
        lines = [line for line in exposition.splitlines(True) if line.startswith(names)]
        return web.Response(text="".join(lines))

    return {
        "/metrics/": filtered,
        "/metrics": text_handler(exposition),
        "/v1/models": text_handler(
            '{"data":[{"id":"base","parent":null,"owned_by":"vllm"},{"id":"a","parent":"base"},'
            '{"id":"b","parent":"base"}]}'
        ),
        "/version": text_handler(f'{{"version":"{version}"}}'),
    }


async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accepts the request and stays silent."""
    del writer
    await read_head(reader)
    await reader.read()


async def headers_then_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Promises a body and stays silent."""
    await read_head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    await writer.drain()
    await reader.read()


async def dies_in_mid_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends half of the body that it promised, then the connection ends."""
    await read_head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
    await writer.drain()


async def endless_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends 200 MB in chunks, without telling its length."""
    await read_head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for _ in range(200_000_000 // 65536):
        writer.write(chunk)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def no_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks another protocol."""
    await read_head(reader)
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    await writer.drain()


async def endless_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends header lines for ever."""
    await read_head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000_000):
        writer.write(b"X-%d: %s\r\n" % (number, b"y" * 1000))
        await writer.drain()


def gzip_bomb(size: int = 200_000_000) -> bytes:
    """A small body that unpacks to `size` bytes."""
    return gzip.compress(b"\0" * size, compresslevel=9)

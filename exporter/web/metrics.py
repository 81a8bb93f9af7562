"""The metrics: text that was rendered before, joined, and compressed off the event loop."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from aiohttp import hdrs, web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder

from exporter.exposition.text import EOF
from exporter.web.keys import STATE

CONTENT_TYPE_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_GZIP_WINDOW = 31
_GZIP_LEVEL = 1
# Threads of their own, as the loop's may all wait for name servers.
_PACKERS = ThreadPoolExecutor(2, "gzip")


async def handle(request: web.Request) -> web.StreamResponse:
    """One consistent fleet, and the exporter's own series."""
    state = request.app[STATE]
    openmetrics = wants_openmetrics(request.headers.get(hdrs.ACCEPT, ""))
    fleet = state.fleet.text(openmetrics, state.clock())
    text = (*fleet, state.live.text(openmetrics), state.self_metrics.text(openmetrics))
    return await answer(request, text, openmetrics)


async def answer(
    request: web.Request, text: Sequence[bytes], openmetrics: bool
) -> web.StreamResponse:
    """An exposition, in the format and the encoding that were asked for."""
    pieces = (*text, EOF) if openmetrics else text
    content_type = CONTENT_TYPE_OPENMETRICS if openmetrics else CONTENT_TYPE_PLAIN_0_0_4
    headers = {hdrs.CONTENT_TYPE: content_type, hdrs.VARY: "Accept, Accept-Encoding"}
    if accepts_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        return web.Response(
            body=await asyncio.get_running_loop().run_in_executor(_PACKERS, gzip, pieces),
            headers=headers,
        )
    response = web.StreamResponse(headers=headers)
    response.content_length = sum(map(len, pieces))
    await response.prepare(request)
    for piece in pieces if request.method != hdrs.METH_HEAD else ():
        await response.write(piece)
    await response.write_eof()
    return response


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept header prefers OpenMetrics; the default is the text format."""
    content_type: str = choose_encoder(accept)[1]
    return content_type.startswith("application/openmetrics-text")


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header names gzip with a weight above 0."""
    for item in accept_encoding.lower().split(","):
        name, _, weight = item.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def gzip(pieces: Iterable[bytes]) -> bytes:
    """The pieces in gzip's form. zlib lets other threads run meanwhile."""
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return b"".join([*map(packer.compress, pieces), packer.flush()])

"""A scrape of 100,000 samples from a running service, and what it does to the event loop."""

from __future__ import annotations

import asyncio
import sys
import time
import zlib

from aiohttp import web

from exporter.current import CurrentFleet
from exporter.discovery.finding import Finding
from exporter.exposition.fleet import Exposition
from exporter.fetching.http import HttpClient
from exporter.live import LivePlans
from exporter.self_metrics import SelfMetrics
from exporter.settings import Settings
from exporter.web.app import make_app
from exporter.web.keys import WebState
from exporter.web.metrics import gzip
from tests.benchmarks.measure import cpu_seconds, shown, tick
from tests.benchmarks.rendering import Joins, filled, status

REPLICAS = 1000
SCRAPES = 60
SCRAPE = """
import sys, urllib.request
for number in range(int(sys.argv[2])):
    encoding = "gzip" if number % 2 else "identity"
    request = urllib.request.Request(sys.argv[1], headers={"Accept-Encoding": encoding})
    with urllib.request.urlopen(request) as response:
        response.read()
"""
HEADER = ("What", "Figure")


def rows() -> list[tuple[str, ...]]:
    """The parts of a scrape, and the longest stall of the loop."""
    join = Joins(filled(REPLICAS))
    pieces = join()
    text = b"".join(pieces)
    samples = sum(not line.startswith(b"#") for line in text.splitlines())
    packed = gzip(pieces)
    assert zlib.decompress(packed, 31) == text
    stall, scrapes = asyncio.run(_stall())
    own = SelfMetrics(lambda: REPLICAS)
    return [
        ("The exporter's own series (CPU)", shown(cpu_seconds(lambda: own.text(False)))),
        (f"Joining {samples:,} samples after a change (CPU)", shown(cpu_seconds(join))),
        (
            f"gzip of the {len(text) / 1e6:.1f} MB, off the loop (CPU)",
            shown(cpu_seconds(lambda: gzip(pieces), 3)),
        ),
        ("Size after gzip", f"{len(packed) / 1e6:.2f} MB"),
        (
            f"Longest stall of the loop in {scrapes} scrapes, half of them with gzip, "
            f"while {REPLICAS:,} tables change",
            shown(stall),
        ),
    ]


async def _stall() -> tuple[float, int]:
    """The longest time for which the loop did nothing else, and the number of scrapes."""
    exposition = filled(REPLICAS)
    fleet = CurrentFleet(exposition, 30.0, "here")
    async with HttpClient(1024) as http:
        state = WebState(
            fleet=fleet,
            self_metrics=SelfMetrics(lambda: REPLICAS),
            http=http,
            settings=Settings,
            telemetry_path="/metrics",
            reload=_never,
            clock=time.time,
            this_host="here",
            live=LivePlans(fleet, Settings, lambda *_: None),
            finding=Finding(lambda: None, lambda *_: None),
        )
        runner = web.AppRunner(make_app(state), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
        others = [
            asyncio.create_task(_change(exposition)),
            asyncio.create_task(tick(gaps := [0.0])),
        ]
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SCRAPE, url, str(SCRAPES)
        )
        assert await client.wait() == 0
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await runner.cleanup()
    return max(gaps), SCRAPES


async def _never() -> None:
    raise AssertionError


async def _change(exposition: Exposition) -> None:
    """Every table changes each ten seconds, evenly, as with the poller's own spread."""
    number = 0
    while True:
        exposition.update(status(number % REPLICAS, number // REPLICAS + 1))
        number += 1
        await asyncio.sleep(10 / REPLICAS)

"""A fleet whose totals are known, and exporters that watch it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from exporter.demo.course import Shift
from exporter.demo.scenario import PERIOD, ServingReplica
from exporter.demo.vllm_server import vllm_app
from tests.support.process import Process, started
from tests.support.programs import free_port

EXPORTER = Path(sys.executable).with_name("lora-exporter")
QUICK = ("--poll.interval", "1s", "--poll.timeout", "900ms", "--planning.interval", "1s")


@dataclass(frozen=True, slots=True)
class Total:
    """Of one model."""

    max: int
    used: int
    free: int
    waiting: int
    replicas: int


def _replica(name: str, slots: int, adapters: Iterable[str]) -> ServingReplica:
    """A replica on which the same adapters are at work for ever."""
    shifts = tuple(Shift(adapter, 0.0, PERIOD) for adapter in adapters)
    model = name.rpartition("-")[0]
    return ServingReplica(name, model, "0.10.2.post2", slots, 0.0, shifts, ("spare",))


REPLICAS = (
    _replica("chat-0", 8, "abc"),
    _replica("chat-1", 8, "abcdefgh"),
    _replica("chat-2", 4, "cdefgh"),  # two of them wait
    _replica("chat-3", 4, "x"),
    _replica("tuner-0", 2, "t"),
    _replica("tuner-1", 2, "tu"),
)
TOTALS = {
    "chat": Total(max=24, used=16, free=8, waiting=2, replicas=4),
    "tuner": Total(max=4, used=3, free=1, waiting=0, replicas=2),
}
PLACES = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 1), (1, 0))
"""Shard and exporter of each replica: each model lies in both shards."""


def hashmod(text: str, modulus: int) -> int:
    """What Prometheus's relabelling makes of a text."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "big") % modulus


@contextlib.asynccontextmanager
async def replicas(host: str) -> AsyncIterator[tuple[str, ...]]:
    """The fleet, in order; gives addresses with this host, by which this machine is reached.

    Ports are drawn until the replicas spread over shards and exporters as PLACES says: which part
    of a model a shard has must not be a matter of luck.
    """
    async with contextlib.AsyncExitStack() as stack:
        urls = []
        for replica, place in zip(REPLICAS, PLACES, strict=True):
            runner = web.AppRunner(
                vllm_app(replica, time.time, time.time() - 5), access_log=None, shutdown_timeout=0.1
            )
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            while True:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                url = f"http://{host}:{runner.addresses[0][1]}"
                if (hashmod(url, 2), hashmod(f"{url};lora-probe", 2)) == place:
                    break
                await site.stop()
            urls.append(url)
        yield tuple(urls)


@dataclass(frozen=True, slots=True)
class Places:
    """Where exporter-0 and exporter-1 listen: addresses of this machine with one port, so that
    they can be told by a number, as the configurations do."""

    port: int

    @classmethod
    def found(cls) -> Places:
        """A port that is free on both."""
        while True:
            port = free_port()
            with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
                for number in (0, 1):
                    tried = stack.enter_context(socket.socket())
                    tried.bind((f"127.0.0.1{number}", port))
                return cls(port)

    def address(self, number: int) -> str:
        """Of one of them."""
        return f"127.0.0.1{number}:{self.port}"

    def pair(self) -> dict[str, str]:
        """What stands for their addresses in the text of a configuration."""
        return {"exporter-": "127.0.0.1", ":10107": f":{self.port}"}

    def shard(self, number: int) -> dict[str, str]:
        """The same in that of a shard."""
        return self.pair() | {'"0"': f'"{number}"'}


@contextlib.asynccontextmanager
async def exporter(
    address: str, urls: Collection[str] = (), *options: str, pod: str = ""
) -> AsyncIterator[Process]:
    """An exporter that watches these replicas, in a group for each model of REPLICAS.

    It need not listen yet: several start in the time of one.
    """
    by_model: dict[str, list[str]] = {}
    for replica, url in zip(REPLICAS, urls, strict=False):
        by_model.setdefault(replica.model, []).append(url)
    groups = [
        {"name": model, "engine": "vllm", "static": addresses}
        for model, addresses in by_model.items()
    ]
    command = ("serve", "--web.listen-address", address, *QUICK, *options)
    targets = json.dumps(groups)
    async with started(EXPORTER, *command, LORA_EXPORTER_TARGETS=targets, POD_NAME=pod) as process:
        yield process

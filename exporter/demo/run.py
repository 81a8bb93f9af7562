"""Runs the demo: a simulated fleet, and the exporter that watches it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pydantic import ValidationError

from exporter import logs
from exporter.demo.cast import TRAINING, VLLM_REPLICAS
from exporter.demo.http_server import serving
from exporter.demo.mixed import OTHERS, Simulated
from exporter.demo.pages import pages_app
from exporter.demo.scenario import ServingReplica, TwinkleServer
from exporter.demo.twinkle_server import RunningTwinkle, twinkle_server
from exporter.demo.vllm_server import vllm_app
from exporter.documents import ConfigError, Problem, read_document
from exporter.engines import ENGINES
from exporter.service import Service
from exporter.settings import Measurements, Poll, Settings, State, TargetGroup, Web

_HERE = Path(__file__).parent


async def run_demo(listen_address: str) -> None:
    """Serves until SIGINT or SIGTERM, as `listen_address` (host:port) says.

    Raises ConfigError for an address that is none, OSError for one that cannot be listened on.
    """
    web = _web(listen_address)
    logs.set_up("warning", "logfmt")
    async with simulated_fleet(time.time) as groups:
        settings = Settings(
            web=web,
            poll=Poll(interval="2s", timeout="1s", stale_after="10s"),
            targets=groups,
            measurements=Measurements(file=_HERE / "measurements.yml"),
            **read_document(_HERE / "cluster.yml").data,
        )
        await Service(settings, lambda: settings).run(on_ready=_announce)


@asynccontextmanager
async def simulated_fleet(clock: Callable[[], float]) -> AsyncIterator[tuple[TargetGroup, ...]]:
    """Runs the replicas until the context ends. Gives a group for each. `clock`: unix seconds."""
    started = clock()
    async with AsyncExitStack() as stack:
        groups = []
        for replica in VLLM_REPLICAS:
            address = await stack.enter_async_context(serving(vllm_app(replica, clock, started)))
            groups.append(vllm_group(replica, address))
        twinkle = await stack.enter_async_context(twinkle_server(TRAINING, clock, started))
        groups.append(twinkle_group(TRAINING, twinkle))
        for other in OTHERS:
            app = pages_app(other.pages(started), clock, started)
            address = await stack.enter_async_context(serving(app))
            groups.append(other_group(other, address))
        yield tuple(groups)


def vllm_group(replica: ServingReplica, address: str) -> TargetGroup:
    """A group of one replica, whose name stays the same from start to start."""
    return TargetGroup(
        name=replica.name, engine="vllm", static=(address,), replica_name=replica.name
    )


def twinkle_group(server: TwinkleServer, running: RunningTwinkle) -> TargetGroup:
    """A group of one server, read from its state file and its Ray dashboard."""
    return TargetGroup(
        name=server.name,
        engine="twinkle",
        static=(running.gateway,),
        state=State(url=f"file://{running.state.path}"),
        ray_dashboard=running.dashboard,
    )


def other_group(other: Simulated, address: str) -> TargetGroup:
    """A group of one server of another engine."""
    name = f"{other.engine}-{other.replicas[0].model}"
    return TargetGroup(name=name, engine=other.engine, static=(address,), **other.options)


def _web(listen_address: str) -> Web:
    try:
        return Web(listen_address=listen_address)
    except ValidationError as error:
        wanted = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        problem = Problem(
            "flag --web.listen-address", "web.listen_address", repr(listen_address), wanted
        )
        raise ConfigError([problem]) from None


def _announce(address: str) -> None:
    print(
        f"A simulated fleet of {len(ENGINES)} engines is watched. "
        f"Its llama-3.1-8b runs out of slots 40 s from now.\n"
        f"Page:    {address}/\n"
        f"Metrics: {address}/metrics\n"
        f"Try:     curl -s {address}/metrics | grep '^lora_free'\n"
        f"Ctrl-C ends it.",
        flush=True,
    )

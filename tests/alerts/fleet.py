"""A small fleet, the real exporter, Prometheus and Alertmanager: the shipped rules, made faster."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from alerts.generator import product, render
from alerts.generator.inputs import load, seconds
from alerts.generator.recordings import recordings
from exporter.demo.course import Shift
from exporter.demo.scenario import PERIOD, Run, ServingReplica, Tenant, TwinkleServer
from exporter.demo.twinkle_server import twinkle_server
from exporter.demo.vllm_server import vllm_app
from tests.support.alertmanager import Alertmanager, alertmanager
from tests.support.process import Process, started
from tests.support.programs import free_port, program, running, until
from tests.support.servers import http_server, text_handler

FASTER = 24
"""Each duration of the inputs is divided by it; scrapes and evaluations come each second."""
QUIET, ALMOST_FULL, FULL, RELEASED = 0.0, 20.0, 40.0, 60.0
"""Seconds into the story of the training server: 3, 5, 6 and 2 of its 6 slots are held."""

_A, _B = "m4k2vq8t", "x7d1hn5c"
TRAINING = TwinkleServer(
    name="training",
    model="tuner",
    organisation="Example",
    max_loras=3,
    live=(_A, _B),
    ghost="p0rz6wle",
    ghost_adapters=(),
    tenants=(
        Tenant(
            "research",
            starts=0,
            ends=PERIOD,
            runs=(
                Run("sft-1", _A, 0, PERIOD),
                Run("sft-2", _B, 0, PERIOD),
                Run("sft-3", _A, 0, RELEASED),
                Run("dpo-1", _B, ALMOST_FULL, RELEASED),
                Run("dpo-2", _A, ALMOST_FULL, RELEASED),
                Run("dpo-3", _B, FULL, RELEASED),
            ),
        ),
    ),
)
SERVING = tuple(
    ServingReplica(
        name=f"chat-{n}",
        model="chat",
        version="0.32.0",
        slots=4,
        first_step=0.0,
        shifts=(Shift("acme", 0, PERIOD), Shift("globex", 0, PERIOD)),
    )
    for n in range(2)
)

PLANNED = """\
lora_model_info{model="tuner",class="gold",owner="training"} 1
lora_model_headroom_replicas{model="tuner",room="free"} 1
lora_model_headroom_replicas{model="tuner",room="preempting"} 2
"""


@dataclass(slots=True)
class Story:
    """The training server's time, which stands still until the test moves it."""

    at: float = QUIET
    started: float = field(default_factory=time.time)

    def __call__(self) -> float:
        """Unix seconds."""
        return self.started + self.at


@dataclass(slots=True)
class Replica:
    """A vLLM server that can be killed, and comes again at the same address."""

    app: ServingReplica
    port: int = field(default_factory=free_port)
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Serves until it is killed."""
        app = vllm_app(self.app, time.time, time.time())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def kill(self) -> None:
        """Nobody answers at its address from now on."""
        if self._runner is not None:
            await self._runner.cleanup()


def faster_inputs(folder: Path) -> Path:
    """The shipped inputs with shorter durations."""

    def faster(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: faster(value) for key, value in node.items()}
        if isinstance(node, str) and re.fullmatch(r"[0-9]+[smhdw]", node):
            return f"{math.ceil(seconds(node) / FASTER)}s"
        return node

    document = faster(yaml.safe_load(product.INPUTS.read_text()))
    document["common"]["scrape_interval"]["value"] = "1s"
    file = folder / "inputs.yml"
    file.write_text(yaml.safe_dump(document))
    return file


@dataclass(slots=True)
class Prometheus:
    """A running Prometheus."""

    port: int
    session: aiohttp.ClientSession

    async def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            async with self.session.get(f"http://127.0.0.1:{self.port}/-/ready") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False

    async def query(self, expression: str, at: float | None = None) -> list[dict[str, str]]:
        """The labels of what the query gives, now or at a time (unix seconds)."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query"
        parameters = {"query": expression} | ({} if at is None else {"time": str(at)})
        async with self.session.get(url, params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", answer
        return [row["metric"] for row in answer["data"]["result"]]

    async def has(self, expression: str, within: float = 60) -> None:
        """Waits until the query gives something."""

        async def is_so() -> bool:
            return bool(await self.query(expression))

        await until(is_so, within)

    async def firing(self) -> set[str]:
        """Alerts that fire now."""
        return {row["alertname"] for row in await self.query('ALERTS{alertstate="firing"}')}

    async def fired(self) -> set[str]:
        """Alerts that have fired since the test began."""
        query = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))'
        return {row["alertname"] for row in await self.query(query)}

    async def evaluated(self, times: int) -> None:
        """Waits until all rules were evaluated so often since the start of this process."""

        async def is_so() -> bool:
            return await self._evaluations() >= times

        await until(is_so, 100)

    async def _evaluations(self) -> int:
        async with self.session.get(f"http://127.0.0.1:{self.port}/metrics") as response:
            text = await response.text()
        found = re.findall(r"^prometheus_rule_group_iterations_total\{.*\} (\S+)$", text, re.M)
        return int(min(map(float, found), default=0))


@dataclass(slots=True)
class Site:
    """Where everything listens and keeps its files. Whatever ends starts again at its place."""

    folder: Path
    story: Story = field(default_factory=Story)
    replicas: tuple[Replica, ...] = field(default_factory=lambda: tuple(map(Replica, SERVING)))
    exporter_port: int = field(default_factory=free_port)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """All replicas, and the exporter's settings, which name them."""
        async with twinkle_server(TRAINING, self.story, self.story.started) as twinkle:
            groups = [
                {
                    "name": "training",
                    "engine": "twinkle",
                    "static": [twinkle.gateway],
                    "state": {"url": f"file://{twinkle.state.path}"},
                    "ray_dashboard": twinkle.dashboard,
                },
                {
                    "name": "serving",
                    "engine": "vllm",
                    "static": [replica.url for replica in self.replicas],
                },
            ]
            document = {
                "poll": {"interval": "1s", "timeout": "700ms", "stale_after": "3s"},
                "targets": groups,
            }
            (self.folder / "exporter.yml").write_text(json.dumps(document))
            try:
                for replica in self.replicas:
                    await replica.start()
                yield
            finally:
                for replica in self.replicas:
                    await replica.kill()

    @contextlib.asynccontextmanager
    async def exporter(self) -> AsyncIterator[Process]:
        """The real exporter."""
        arguments = (
            *("-m", "exporter", "serve", "--config.file", str(self.folder / "exporter.yml")),
            *("--web.listen-address", f"127.0.0.1:{self.exporter_port}"),
        )
        async with started(Path(sys.executable), *arguments) as process:
            yield process

    @contextlib.asynccontextmanager
    async def planner(self) -> AsyncIterator[str]:
        """Stands in for an exporter that has cards and plans."""
        async with http_server({"/metrics": text_handler(PLANNED)}) as url:
            yield url.removeprefix("http://")

    @contextlib.asynccontextmanager
    async def prometheus(self, alertmanager_port: int, planner: str) -> AsyncIterator[Prometheus]:
        """The real Prometheus with the shipped rules."""
        port = free_port()
        inputs = load(faster_inputs(self.folder))
        rules = {
            "lora-recording.yml": [render.recording_group(recordings(inputs))],
            "lora-alerts.yml": [
                render.alert_group(name, group, inputs)
                for name, group in product.alerts(inputs).items()
            ],
        }
        for name, groups in rules.items():
            (self.folder / name).write_text(render.to_yaml({"groups": groups}))
        target = {"targets": [f"127.0.0.1:{self.exporter_port}"]}
        notified = {"targets": [f"127.0.0.1:{alertmanager_port}"]}
        document = {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "1s",
            },
            "rule_files": list(rules),
            "scrape_configs": [
                {"job_name": "lora", "static_configs": [target]},
                {"job_name": "planner", "static_configs": [{"targets": [planner]}]},
            ],
            "alerting": {"alertmanagers": [{"static_configs": [notified]}]},
        }
        file = self.folder / "prometheus.yml"
        file.write_text(json.dumps(document))
        command = (
            program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            # By default 5m, for which what a restart leaves behind is still seen.
            f"--query.lookback-delta={math.ceil(300 / FASTER)}s",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        async with running(*command), aiohttp.ClientSession() as session:
            it = Prometheus(port, session)
            await until(it.ready, 60)
            yield it


@dataclass(slots=True)
class Watched:
    """A fleet that is watched."""

    site: Site
    exporter: Process
    prometheus: Prometheus
    alertmanager: Alertmanager


@contextlib.asynccontextmanager
async def watching(site: Site) -> AsyncIterator[Watched]:
    """The exporter, Prometheus and Alertmanager, which watch the site's replicas."""
    async with (
        site.exporter() as exporter,
        alertmanager(site.folder, group_wait="2s", group_interval="2s") as notified,
        site.planner() as planner,
        site.prometheus(notified.port, planner) as prometheus,
    ):
        yield Watched(site, exporter, prometheus, notified)


@contextlib.asynccontextmanager
async def watched_fleet(folder: Path) -> AsyncIterator[Watched]:
    """Everything, once the rules have seen all replicas."""
    site = Site(folder)
    async with site.serving(), watching(site) as watched:
        await watched.prometheus.has("sum(target:lora_target_up:max) == 3")
        await watched.prometheus.has('model:lora_free:sum{model="tuner"} == 3')
        await watched.prometheus.evaluated(10)
        yield watched

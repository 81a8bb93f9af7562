"""Real Prometheus servers, set up by the files in `deploy/prometheus/`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.support.programs import free_port, program, running, until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "prometheus"

Config = dict[str, Any]
Labels = tuple[tuple[str, str], ...]


def shipped(name: str, places: dict[str, str] | None = None, pods: Config | None = None) -> Config:
    """A shipped configuration with a scrape each second.

    `places`: what stands for parts of its text, such as addresses. `pods`: a static list that
    stands for what Kubernetes lists, as Debian's Prometheus is built without Kubernetes.
    """
    text = (DEPLOY / name).read_text()
    for part, place in (places or {}).items():
        assert part in text, (name, part)
        text = text.replace(part, place)
    config: Config = yaml.safe_load(text)
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    if "rule_files" in config:
        config["global"]["evaluation_interval"] = "1s"
        config["rule_files"] = [str((DEPLOY / file).resolve()) for file in config["rule_files"]]
    for job in config.get("scrape_configs", ()):
        if job.pop("kubernetes_sd_configs", None) is not None:
            assert pods is not None, name
            job["static_configs"] = pods[job["job_name"]]
        for listed in job.get("http_sd_configs", ()):
            listed["refresh_interval"] = "1s"
    return config


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server that runs."""

    session: aiohttp.ClientSession
    url: str

    async def ready(self) -> bool:
        """Whether it answers queries; it listens some time before."""
        try:
            async with self.session.get(f"{self.url}/-/ready") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def answer(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the API."""
        async with self.session.get(f"{self.url}/api/v1/{path}", params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", (parameters, answer["error"])
        return answer["data"]

    async def query(self, expression: str) -> dict[Labels, float]:
        """Values by labels."""
        data = await self.answer("query", query=expression)
        return {
            tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in data["result"]
        }

    async def has(self, expression: str, seconds: float = 40.0) -> None:
        """Waits until the query gives something."""

        async def is_so() -> bool:
            return bool(await self.query(expression))

        await until(is_so, seconds)

    async def asked(self) -> set[str]:
        """The addresses that it scrapes."""
        targets = (await self.answer("targets", state="active"))["activeTargets"]
        return {target["scrapeUrl"] for target in targets}


@contextlib.asynccontextmanager
async def prometheus(
    folder: Path, config: Config, *options: str, agent: bool = False
) -> AsyncIterator[Prometheus]:
    """A server with this configuration, in a folder of its own, until the block ends."""
    folder.mkdir()  # noqa: ASYNC240 - a local disk
    file = folder / "prometheus.yml"
    # JSON is YAML.
    file.write_text(json.dumps(config))
    storage = ("--enable-feature=agent", "--storage.agent.path") if agent else ()
    data = (*storage, str(folder / "data")) if agent else ("--storage.tsdb.path", str(folder))
    port = free_port()
    command = (
        program("prometheus"),
        f"--config.file={file}",
        *data,
        f"--web.listen-address=127.0.0.1:{port}",
        *options,
    )
    async with running(*command) as process, aiohttp.ClientSession() as session:
        it = Prometheus(session, f"http://127.0.0.1:{port}")

        async def is_ready() -> bool:
            assert process.returncode is None, f"Prometheus ended: {file.read_text()}"
            return await it.ready()

        await until(is_ready, 40)
        yield it

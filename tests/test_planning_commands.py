"""`plan`, `target` and `measured` as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import pytest

from exporter.loading import load
from exporter.measuring import read_measurements
from tests.support.example import MEASURED, write_example
from tests.support.servers import http_server, vllm_routes
from tests.support.service import serving


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_example(tmp_path)


async def ask(*arguments: str) -> tuple[int, str, str]:
    """Runs the command; status, standard output, standard error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "exporter",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


async def test_plan_prints_one_json_or_a_table(config: Path) -> None:
    status, output, _ = await ask("plan", str(config), "--json")
    assert status == 0
    chat = json.loads(output)["models"]["chat"]
    wanted = {"current", "needed", "headroom", "room", "fits", "blocked", "preempts", "unplanned"}
    assert wanted <= chat.keys()
    assert (chat["class"], chat["headroom"]) == ("gold", {"free": 2, "preempting": 4})
    status, table, _ = await ask("plan", str(config))
    assert status == 0
    row = next(line for line in table.splitlines() if line.startswith("chat"))
    assert row.split()[1:6] == ["1", "4", "2", "4", "yes"]


async def test_nodes_of_any_shape_are_added(config: Path) -> None:
    status, output, _ = await ask(
        "plan", str(config), "--json", "--demand-factor", "2", "--add-nodes", "gpus:500m=4"
    )
    assert (status, json.loads(output)["models"]["chat"]["fits"]) == (0, False)
    status, output, _ = await ask(
        "plan", str(config), "--json", "--demand-factor", "2", "--add-nodes", "gpus:8=1"
    )
    assert (status, json.loads(output)["models"]["chat"]["headroom"]["free"]) == (0, 10)
    for text, told in (
        ("gpus:many=1", "gpus: wanted a count such as 2"),
        ("a", "wanted SHAPE=N, such as a=2 for nodes like a, or gpus:8,memory:1TiB=2"),
        ("x=1", "no node 'x'; known: a, b, c"),
    ):
        status, _, errors = await ask("plan", str(config), "--add-nodes", text)
        assert status != 0
        assert told in errors


async def test_a_measurement_is_noted_and_everything_else_in_the_file_stays(config: Path) -> None:
    file = config.with_name("measurements.yml")
    file.write_text("# ours\n" + MEASURED + "embed:\n  - tokens_per_second: 5 # slow\n")
    common = ("--tokens-per-sec", "1200", "--config.file", str(config))
    for model, *rest in (
        ("embed", "--profile", "h100", "--how", "vllm bench, it's: new"),
        ("chat", "--tokens", "total"),
        ("batch-llm",),
        ("yes",),
    ):
        status, output, errors = await ask("measured", model, *rest, *common)
        assert (status, errors) == (0, "")
        assert f"{model} serves 1200 tokens per second" in output
    text = file.read_text()
    assert text.startswith("# ours\n")
    assert "tokens_per_second: 5 # slow" in text
    found = read_measurements(file)
    assert {
        model: [one.tokens_per_second for one in listed] for model, listed in found.items()
    } == {
        "chat": [1200.0, 2400.0],
        "embed": [1200.0, 5.0],
        "batch-llm": [1200.0],
        "yes": [1200.0],
    }
    assert (found["embed"][0].profile, found["chat"][0].tokens) == ("h100", "total")
    status, output, _ = await ask(
        "target", "embed", "--tokens-per-sec", "2000", *common[2:], "--offline"
    )
    assert (status, "Needed:             2 replicas, 1 current, 1 more" in output) == (0, True)


async def test_without_a_file_for_them_a_measurement_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text("models: {chat: {}}\n")
    status, _, errors = await ask(
        "measured", "chat", "--tokens-per-sec", "5", "--config.file", str(file)
    )
    assert status == 1
    assert errors == f"lora-exporter: {file}: wanted measurements.file, the file that they go to\n"


async def test_online_a_target_counts_what_answers(tmp_path: Path) -> None:
    async with http_server(vllm_routes()) as one, http_server(vllm_routes()) as two:
        targets = f"targets: [{{name: g, static: [{one!r}, {two!r}]}}]\n"
        config = write_example(tmp_path, "base", targets)
        common = ("--tokens-per-sec", "14400", "--config.file", str(config), "--json")
        status, output, _ = await ask("target", "base", *common)
        assert (status, json.loads(output)["current"]) == (0, 2)
        status, output, _ = await ask("target", "base", *common, "--offline")
        assert (status, json.loads(output)["current"]) == (0, 1)


async def test_a_snapshot_is_taken_of_a_running_exporter_and_planned_later(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yml"
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_server(vllm_routes()))
        listen = "web: {listen_address: '127.0.0.1:0'}"
        targets = f"targets: [{{name: g, static: [{url!r}]}}]\n{listen}\n"
        config = write_example(tmp_path, "base", targets)
        client = await stack.enter_async_context(serving(load(config)))
        await client.ready()
        status, output, errors = await ask(
            "plan", str(config), "--snapshot", str(file), "--url", client.address, "--json"
        )
        assert (status, errors) == (0, "")
        live = json.loads(output)["models"]["base"]
    assert live["slots"] == [{"slot_kind": "evictable", "used": 1, "waiting": 0, "per_replica": 4}]
    status, output, _ = await ask("plan", str(file), "--json")
    assert (status, json.loads(output)["models"]["base"]) == (0, live)
    status, output, _ = await ask("plan", str(file), "--json", "--adapters-factor", "5")
    assert json.loads(output)["models"]["base"]["needed_by"]["slots"] == 2
    status, _, errors = await ask("plan", str(file), "--snapshot", str(file), "--url", url)
    assert status == 1
    assert "wanted a running exporter" in errors

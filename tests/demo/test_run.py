"""`lora-exporter demo` from start to end, as a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from exporter.demo.run import run_demo
from exporter.documents import ConfigError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_the_demo_tells_where_to_look_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "exporter",
        "demo",
        "--web.listen-address",
        "127.0.0.1:0",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    try:
        told = (await process.stdout.readuntil(b"Ctrl-C ends it.\n")).decode()
        page, metrics = re.findall(r"^(?:Page|Metrics): +(\S+)$", told, re.MULTILINE)
        assert f"curl -s {metrics} |" in told
        assert names(tmp_path) != []
        async with aiohttp.ClientSession() as session:
            async with session.get(page) as answer:
                assert answer.status == 200
            async with session.get(metrics) as answer:
                assert "lora_target_polls_total" in await answer.text()
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = await process.communicate()
    assert process.returncode == 0
    assert rest == b""
    # As root the exporter advises against it, and says nothing else.
    lines = errors.decode().splitlines()
    assert [line for line in lines if "running as root" not in line] == []
    assert names(tmp_path) == []


async def test_an_address_that_is_none_is_told_as_a_flag() -> None:
    with pytest.raises(ConfigError) as caught:
        await run_demo("nowhere")
    (problem,) = caught.value.problems
    assert problem.place == "flag --web.listen-address"
    assert "nowhere" in problem.found

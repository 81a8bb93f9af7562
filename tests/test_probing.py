"""`lora-exporter probe`: whose settings one address is read with, and what is printed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from exporter.probing import ProbeError, settings_of
from exporter.settings import Auth, Custom, Header, Settings, TargetGroup
from tests.support.servers import http_server, text_handler, vllm_routes

MAPPED = """
targets:
  - name: mine
    engine: custom
    custom: {path: /stats, slot_kind: exclusive, max: slots.max, used: "workers[].used"}
"""
STATS = '{"slots": {"max": 8}, "workers": [{"used": 2}, {"used": 3}]}'


def group(name: str, **more: object) -> TargetGroup:
    return TargetGroup.model_validate({"name": name, **more})


def mapped(name: str, path: str = "/stats") -> TargetGroup:
    custom = Custom.model_validate({"path": path, "slot_kind": "evictable", "max": "m"})
    return TargetGroup(
        name=name,
        engine="custom",
        custom=custom,
        headers={"X-Key": Header(value="k")},
        auth=Auth(bearer_token_file=Path("/dev/null")),
    )


def only(settings: Settings) -> TargetGroup:
    (found,) = settings.targets
    return found


def test_an_address_of_no_group_is_read_without_settings() -> None:
    settings = Settings(targets=(group("a", static=["http://h:1"], model="m"),))
    found = only(settings_of(settings, "h:2", None, None))
    assert (found.engine, found.static, found.model) == ("auto", ("http://h:2",), None)


def test_an_address_of_a_group_is_read_as_that_group() -> None:
    settings = Settings(targets=(group("a", static=["http://h:1", "http://h:2"], model="m"),))
    found = only(settings_of(settings, "http://h:2/", "sglang", None))
    assert (found.engine, found.static, found.model) == ("sglang", ("http://h:2",), "m")


def test_a_group_may_be_named() -> None:
    settings = Settings(targets=(group("a"), mapped("b")))
    found = only(settings_of(settings, "h:2", None, "b"))
    assert found.custom is not None
    assert found.headers


def test_a_mapping_is_tried_elsewhere_without_its_credentials() -> None:
    settings = Settings(targets=(group("a"), mapped("b")))
    found = only(settings_of(settings, "h:2", "custom", None))
    assert found.custom is not None
    assert (found.headers, found.auth) == ({}, Auth())


@pytest.mark.parametrize(
    ("address", "engine", "name", "message"),
    [
        ("ftp://h", None, None, "ftp://h: wanted an address"),
        ("h:1", "vlm", None, "--engine: wanted one of auto, "),
        ("h:1", None, "c", "--group: no group c; there are: a, b"),
        ("h:1", "custom", None, "several groups map an answer (a, b); choose one with --group"),
    ],
)
def test_what_cannot_be_probed_is_told(
    address: str, engine: str | None, name: str | None, message: str
) -> None:
    settings = Settings(targets=(mapped("a"), mapped("b", "/other")))
    with pytest.raises(ProbeError) as caught:
        settings_of(settings, address, engine, name)
    assert str(caught.value).startswith(message)


def test_a_mapping_must_be_given() -> None:
    with pytest.raises(ProbeError) as caught:
        settings_of(Settings(), "h:1", "custom", None)
    assert "--config.file" in str(caught.value)


async def run(*arguments: str) -> tuple[int, str, str]:
    """The command in a process of its own, while the test serves."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "exporter",
        "probe",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_a_mapping_is_tried_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "lora.yml"
    file.write_text(MAPPED)
    mapping = ("--engine", "custom", "--config.file", str(file))
    async with http_server({"/stats": text_handler(STATS)}) as url:
        status, table, errors = await run(url, *mapping)
        json_status, document, _ = await run(url, *mapping, "--json")
    assert (status, errors, json_status) == (0, "", 0)
    header, line = table.splitlines()
    assert header.split()[:2] == ["Model", "Replica"]
    assert line.split()[2:8] == ["custom", "exclusive", "up", "8", "5", "3"]
    (told,) = json.loads(document)["targets"]
    (row,) = told["replicas"]
    assert (row["max"], row["used"], row["free"], row["source"]) == (8, 5, 3, "slots")


async def test_a_path_that_finds_nothing_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "lora.yml"
    file.write_text(MAPPED.replace("slots.max", "slots.maximum"))
    async with http_server({"/stats": text_handler(STATS)}) as url:
        status, out, _ = await run(url, "--engine", "custom", "--config.file", str(file))
    assert status == 1
    assert "down: format" in out
    assert "/stats: max: found nothing at slots.maximum" in out


async def test_any_engine_may_be_probed() -> None:
    async with http_server(vllm_routes()) as url:
        found, table, _ = await run(url)
        wrong, reason, _ = await run(url, "--engine", "llamacpp")
    assert found == 0
    assert table.splitlines()[1].split()[2:8] == ["vllm", "evictable", "up", "4", "1", "3"]
    assert wrong == 1
    assert "GET /lora-adapters: HTTP 404" in reason
    status, _, errors = await run("ftp://h")
    assert (status, errors.startswith("lora-exporter: ftp://h: wanted an address")) == (1, True)

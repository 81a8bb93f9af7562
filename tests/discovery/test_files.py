"""Files of targets, replaced while they are watched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from exporter.discovery.base import DiscoveryError, Found
from exporter.discovery.files import Files
from exporter.settings.discovery import FileDiscovery


def files(*paths: Path) -> Files:
    return Files(FileDiscovery(paths=tuple(map(str, paths))))


def replace(path: Path, text: str) -> None:
    """As Prometheus's writers do it: a new file in the place of the old one."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


async def test_json_and_yaml_and_what_is_replaced(tmp_path: Path) -> None:
    one, two = tmp_path / "a.json", tmp_path / "b.yml"
    one.write_text(json.dumps([{"targets": ["10.0.0.5:8000", "https://x.test:8443/llm/"]}]))
    two.write_text("- {targets: ['10.0.0.6:8000'], labels: {model: qwen3, node: n1, team: x}}\n")
    found = files(one, two)
    assert await found.find() == (
        Found("http://10.0.0.5:8000"),
        Found("https://x.test:8443/llm"),
        Found("http://10.0.0.6:8000", model="qwen3", node="n1"),
    )
    replace(one, "[]")
    replace(two, "- {targets: ['10.0.0.7:8000'], labels: {__scheme__: https, replica_id: r}}\n")
    assert await found.find() == (Found("https://10.0.0.7:8000", replica="r"),)


async def test_a_star_in_the_name_takes_what_comes(tmp_path: Path) -> None:
    found = files(tmp_path / "*.json")
    assert await found.find() == ()
    (tmp_path / "b.json").write_text('[{"targets": ["b:1"]}]')
    (tmp_path / "a.json").write_text('[{"targets": ["a:1", "b:1"]}]')
    assert await found.find() == (Found("http://a:1"), Found("http://b:1"))
    (tmp_path / "a.json").unlink()
    assert await found.find() == (Found("http://b:1"),)


async def test_a_file_that_stays_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('[{"targets": ["a:1"]}]')
    found = files(file)
    first = await found.find()
    stamp = file.stat()
    file.write_bytes(b"x" * stamp.st_size)
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert await found.find() == first


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"targets": ["a:1"', "{file}:2: wanted JSON or YAML"),
        ("{}", "{file}: wanted a list of {{targets, labels}}"),
        ('[{"target": ["a:1"]}]', "{file}: entry 0: wanted targets, a list"),
        ("[[1]]", "{file}: entry 0: wanted targets, a list"),
        ('[{"targets": ["a:1"], "labels": {"model": 5}}]', "{file}: entry 0: wanted labels, a"),
        ('[{"targets": []}, {"targets": [5]}]', "{file}: entry 1: wanted targets such as 10.0"),
        ('[{"targets": ["u:secret@a:1"]}]', "{file}: entry 0: wanted targets such as 10.0.0.5"),
        ("!!python/object:os.system x", "{file}:1: wanted JSON or YAML"),
    ],
)
async def test_what_is_no_list_is_told_with_its_place(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(DiscoveryError) as caught:
        await files(file).find()
    assert str(caught.value).startswith(told.format(file=file))
    assert "secret" not in str(caught.value)


async def test_what_cannot_be_read(tmp_path: Path) -> None:
    missing, pipe = tmp_path / "a.json", tmp_path / "p.json"
    with pytest.raises(DiscoveryError, match="No such file"):
        await files(missing).find()
    os.mkfifo(pipe)
    with pytest.raises(DiscoveryError, match="wanted a regular file"):
        await files(pipe).find()

"""Names of models: aliases join, and nothing else changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from exporter.discovery.targets import make_target
from exporter.fetching.ask import Asker, Memory
from exporter.fetching.http import HttpClient
from exporter.fleet import AdapterTable, Reading, Reason, Target
from exporter.relabel import relabel, relabelled
from exporter.settings import TargetGroup
from tests.support.servers import http_server, vllm_routes, vllm_text
from tests.support.tables import replica

MAP = (("(.*)-(instruct|latest)", "$1"), ("org/(.+)", "${1}x"), (".+@old", "new"))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("qwen3-8b-instruct", "qwen3-8b"),
        ("qwen3-8b-latest", "qwen3-8b"),
        ("qwen3-8b-latest-2", "qwen3-8b-latest-2"),  # a pattern matches the whole name
        ("org/m-instruct", "org/m"),  # the first that matches, and no further one
        ("org/m", "mx"),
        ("m@old", "new"),
        ("m", "m"),
    ],
)
def test_the_first_pattern_that_matches_a_whole_name_gives_the_name(name: str, wanted: str) -> None:
    assert relabel(name, MAP) == wanted


def test_a_group_that_took_no_part_is_empty() -> None:
    assert relabel("b", (("(a)?b", "x$1y"),)) == "xy"


def test_a_name_never_becomes_empty() -> None:
    table = AdapterTable((replica(model="abc"), replica(model="x", name="other")))
    target = Target("http://h:1", "g", model_relabel=(("a(.*)bc", "$1"),))
    renamed = relabelled(target, Reading(table)).table
    assert renamed is not None
    assert [row.model for row in renamed.replicas] == ["abc", "x"]


def test_a_reading_without_a_table_stays_as_it_is() -> None:
    target = Target("http://h:1", "g", model_relabel=MAP)
    reading = Reading(None, Reason.CONNECT, "refused")
    assert relabelled(target, reading) is reading


def test_without_patterns_nothing_is_made_anew() -> None:
    reading = Reading(AdapterTable((replica(),)))
    assert relabelled(Target("http://h:1", "g"), reading) is reading


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(1_000_000) as client:
        yield client


async def test_aliases_of_one_model_join(http: HttpClient) -> None:
    group = TargetGroup(name="g", model_relabel={"(.*)-(instruct|latest)": "$1"})
    asker = Asker(http, group, 30.0)
    names = set()
    for alias in ("qwen-instruct", "qwen-latest", "qwen"):
        async with http_server(vllm_routes(vllm_text(model=alias))) as url:
            asked = await asker.ask(make_target(group, url), Memory(), 5.0)
        assert asked.reading.table is not None
        names |= {row.model for row in asked.reading.table.replicas}
    await asker.close()
    assert names == {"qwen"}


def test_a_target_with_other_patterns_is_another_target() -> None:
    target = Target("http://h:1", "g", model_relabel=MAP)
    assert target != replace(target, model_relabel=MAP[:1])

"""What holds for each engine because it is registered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.discovery.targets import make_target
from exporter.engines import AUTO, ENGINES
from exporter.engines.base import Answer, Answers, Engine
from exporter.fetching.ask import Asker, Memory
from exporter.fetching.http import HttpClient
from exporter.fleet import CustomMap, Reading, Reason, SlotKind, Source, Target
from exporter.settings import Custom, TargetGroup
from tests.support import servers
from tests.support.captures import Case, cases
from tests.support.hostile import (
    answers_with,
    check,
    deterministic,
    mutated,
    mutated_json,
)
from tests.support.servers import raw_server

ROOT = Path(__file__).parents[2]
MAPPING = CustomMap(
    "/stats",
    "json",
    SlotKind.EXCLUSIVE,
    (("max", "slots.max"), ("used", "workers[].used"), ("active", "names[]"), ("free", "f")),
)
MOST_REQUESTS = 8

each_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda one: str(one.name))


def recorded(engine: Engine) -> list[Case]:
    return [case for case in cases() if case.target.engine == engine.name]


def target_of(engine: Engine) -> Target:
    return Target("http://replica-0.test:8000", "serving", engine.name, custom=MAPPING)


def is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


@each_engine
def test_it_has_recordings_and_their_keys_are_asked_for(engine: Engine) -> None:
    found = recorded(engine)
    assert found
    for case in found:
        asked = {request.key for request in engine.requests(case.target)}
        assert case.answers.keys() <= asked | {"routes", "capabilities", "health"}
    assert any(case.read().table is not None for case in found)


@each_engine
def test_each_folder_of_recordings_says_whether_they_were_recorded_or_made(engine: Engine) -> None:
    for case in recorded(engine):
        if engine.name in ("vllm", "twinkle") and not case.path.startswith("vllm-"):
            continue
        folder = (ROOT / "tests" / "captures" / case.path).parent
        text = (folder / "README.md").read_text()
        assert "ecorded" in text or "Made by" in text


@each_engine
def test_it_declares_its_slot_kind_and_its_sources(engine: Engine) -> None:
    assert engine.name == engine.name.lower() != AUTO
    for case in recorded(engine):
        table = case.read().table
        for row in () if table is None else table.replicas:
            kind = case.target.custom.slot_kind if case.target.custom else engine.slot_kind
            assert row.engine == engine.name
            assert row.slot_kind is kind
            assert row.source in engine.sources
            if not engine.has_slots:
                assert (row.max, row.used, row.free) == (None, None, None)
    assert len(set(engine.sources)) == len(engine.sources)


@each_engine
def test_it_is_in_the_readmes_table_and_has_a_chapter(engine: Engine) -> None:
    readme = (ROOT / "README.md").read_text()
    table = readme.split("<!-- engines -->")[1].split("<!-- end of engines -->")[0]
    assert f"| {engine.about.title} | `{engine.name}` |" in table
    chapters = (ROOT / "docs" / "engines.md").read_text().split("\n## ")[1:]
    named = f"`engine: {engine.name}`"
    (chapter,) = (text for text in chapters if text.split("\n\n")[1].startswith(named))
    assert "slots" in chapter.lower()
    assert "used" in chapter


@each_engine
def test_its_module_says_what_it_maps_to_what(engine: Engine) -> None:
    text = " ".join((__import__(engine.read.__module__, fromlist=["x"]).__doc__ or "").split())
    assert "Wire format:" in text
    if engine.name != "twinkle":
        assert "What is mapped to what:" in text


@each_engine
def test_reading_twice_gives_the_same(engine: Engine) -> None:
    for case in recorded(engine):
        assert case.read() == case.read()
        assert engine.requests(case.target) == engine.requests(case.target)


@each_engine
def test_what_it_asks_is_bounded_and_below_the_address(engine: Engine) -> None:
    target = replace(target_of(engine), prefix="/some/prefix")
    for requests in (engine.requests(target), engine.detection(target)):
        assert len(requests) <= MOST_REQUESTS
        assert len({request.key for request in requests}) == len(requests)
        for request in requests:
            in_prefix = request.url.startswith("http://replica-0.test:8000/some/prefix/")
            assert in_prefix or request.key == "routes"


@each_engine
@pytest.mark.parametrize("reason", [Reason.CONNECT, Reason.TIMEOUT, Reason.AUTH, Reason.STATUS])
def test_refused_everywhere_it_has_no_table(engine: Engine, reason: Reason) -> None:
    target = target_of(engine)
    refused = Answer(reason=reason, detail="refused")
    answers = {request.key: refused for request in engine.requests(target)}
    assert engine.read(target, answers, 0.0) == Reading(None, reason, "refused")
    assert not engine.claims(target, answers)


@each_engine
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", b"0", b"<html>", b"# nothing\n"])
def test_of_an_empty_answer_it_makes_no_numbers(engine: Engine, body: bytes) -> None:
    target = target_of(engine)
    reading = engine.read(
        target, {request.key: Answer(body) for request in engine.requests(target)}, 0.0
    )
    check(reading)
    for row in () if reading.table is None else reading.table.replicas:
        assert (row.max, row.used, row.free, row.waiting) == (None, None, None, None)
        assert (row.prompt_tokens, row.generation_tokens) == (None, None)
    assert not engine.claims(
        target, {request.key: Answer(body) for request in engine.detection(target)}
    )


@each_engine
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"data": [' + b"1," * 300_000 + b"1]}",
        b"a" * 1_000_000,
        b"vllm:lora_requests_info{" + b'a="' * 300_000,
        b"ray_vllm_x{" * 100_000,
        b"\n" * 1_000_000,
    ],
    ids=["lists", "objects", "rows", "a line", "labels", "names", "lines"],
)
@pytest.mark.timeout(20)
def test_large_nonsense_does_not_hold_it_up(engine: Engine, body: bytes) -> None:
    target = target_of(engine)
    answers = {request.key: Answer(body) for request in engine.requests(target)}
    check(engine.read(target, answers, 0.0))
    engine.claims(target, {request.key: Answer(body) for request in engine.detection(target)})


@each_engine
@settings(deterministic, max_examples=60)
@given(data=st.data())
def test_it_never_raises_whatever_the_bytes(engine: Engine, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(recorded(engine)))
    bodies = {}
    for key, answer in case.answers.items():
        body = answer.body[-6000:] if len(answer.body) > 20_000 else answer.body
        changed = st.binary(max_size=60) | st.just(body) | mutated(st.just(body))
        if is_json(body):
            changed |= mutated_json(st.just(body))
        bodies[key] = changed
    answers: Answers = data.draw(answers_with(bodies))
    told: dict[str, Any] = {
        "max": data.draw(st.none() | st.integers(1, 9)),
        "model": data.draw(st.none() | st.just("renamed")),
        "base_uses_slot": data.draw(st.booleans()),
    }
    target = replace(case.target, **told)
    reading = engine.read(target, answers, data.draw(st.floats(0, 2e10)))
    check(reading)
    assert isinstance(engine.claims(target, answers), bool)
    assert reading.table is None or all(row.source in Source for row in reading.table.replicas)


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(10_000) as client:
        yield client


def group_of(engine: Engine) -> TargetGroup:
    custom = Custom(path="/stats", slot_kind=SlotKind.EXCLUSIVE, max="slots.max")
    return TargetGroup(
        name="g", engine=engine.name, custom=custom if engine.name == "custom" else None
    )


@each_engine
@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (servers.never_answers, Reason.TIMEOUT),
        (servers.dies_in_mid_body, Reason.CONNECT),
        (servers.endless_body, Reason.TOO_LARGE),
    ],
)
async def test_it_keeps_to_the_deadline_and_to_the_largest_body(
    engine: Engine, serve: servers.Raw, reason: Reason, http: HttpClient
) -> None:
    group = group_of(engine)
    asker = Asker(http, group, 30.0)
    seconds = 0.3 if reason is Reason.TIMEOUT else 20.0
    async with raw_server(serve) as url:
        asked = await asker.ask(make_target(group, url), Memory(), seconds)
    await asker.close()
    assert (asked.reading.table, asked.reading.reason) == (None, reason)
    assert asked.seconds < seconds + 2.0

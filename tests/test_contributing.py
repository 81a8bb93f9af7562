"""The example of CONTRIBUTING.md does what it says."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

from exporter.engines.base import Answer, Engine
from exporter.fleet import Reading, Reason, Target
from tests.support.hostile import check

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
TARGET = Target("http://h:1", "serving", "acme")


@pytest.fixture(scope="module")
def engine() -> Engine:
    (source,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    module = types.ModuleType("acme")
    exec(source, module.__dict__)  # noqa: S102 - the example is ours
    found = module.__dict__["ENGINE"]
    assert isinstance(found, Engine)
    return found


def test_the_example_reads_what_it_says_it_reads(engine: Engine) -> None:
    body = b'{"limit": 4, "loaded": [{"name": "a", "busy": true}, {"name": "b"}]}'
    answers = {"adapters": Answer(body)}
    reading = engine.read(TARGET, answers, 0.0)
    check(reading)
    assert reading.table is not None
    (row,) = reading.table.replicas
    assert (row.max, row.used, row.free, row.resident) == (4, 1, 3, 2)
    assert engine.claims(TARGET, answers)
    assert row.source in engine.sources


@pytest.mark.parametrize("body", [b"", b"[]", b'{"loaded": [1]}', b'{"loaded": [{"name": ""}]}'])
def test_the_example_never_raises(engine: Engine, body: bytes) -> None:
    reading = engine.read(TARGET, {"adapters": Answer(body)}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)
    assert not engine.claims(TARGET, {"adapters": Answer(body)})


def test_the_example_tells_why_it_could_not_be_read(engine: Engine) -> None:
    refused = Answer(reason=Reason.CONNECT, detail="refused")
    reading = engine.read(TARGET, {"adapters": refused}, 0.0)
    assert reading == Reading(None, Reason.CONNECT, "refused")

"""The traps of llama.cpp's answers, each by its name. Facts: recorded from build 11434."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer, Answers
from exporter.fleet import AdapterState, Reading, Reason, ReplicaTable, Target
from tests.support.captures import Case, folder_case, folder_cases

LLAMACPP = ENGINES["llamacpp"]
TARGET = Target("http://replica-0.test:8080", "serving", "llamacpp")
REFUSED = Answer(status=501, reason=Reason.STATUS, detail="HTTP 501")
RECORDED = [case for case in folder_cases() if case.path.startswith("llamacpp/")]


def read(
    adapters: object, slots: object = None, metrics: str | None = None, target: Target = TARGET
) -> Reading:
    answers: Answers = {
        "adapters": Answer(json.dumps(adapters).encode()),
        "slots": REFUSED if slots is None else Answer(json.dumps(slots).encode()),
        "metrics": REFUSED if metrics is None else Answer(metrics.encode()),
    }
    return LLAMACPP.read(target, answers, 0.0)


def row(reading: Reading) -> ReplicaTable:
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


def adapter(number: int, path: str, scale: float = 1.0) -> dict[str, object]:
    return {"id": number, "path": path, "scale": scale}


def slot(*used: int, busy: bool = True) -> dict[str, object]:
    return {"is_processing": busy, "params": {"lora": [{"id": n, "scale": 1.0} for n in used]}}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case.path))
def test_request_slots_are_never_taken_for_lora_slots(case: Case) -> None:
    reading = case.read()
    for table in () if reading.table is None else reading.table.replicas:
        assert (table.max, table.used, table.free) == (None, None, None)


def test_the_operators_max_makes_no_slots_either() -> None:
    table = row(read([adapter(0, "a.gguf")], [slot(0)], target=replace(TARGET, max=4)))
    assert (table.max, table.used, table.free) == (None, None, None)
    assert not LLAMACPP.has_slots


def test_all_adapters_are_resident_and_registered() -> None:
    table = row(folder_case("llamacpp/b11434/before").read())
    assert (table.resident, table.registered) == (2, 2)
    assert {state for _, state in table.adapters} == {AdapterState.IDLE}


def test_an_adapter_is_named_by_its_file_and_the_folders_stay_secret() -> None:
    reading = read([adapter(0, "/secret/loras/a.gguf"), adapter(1, "C:\\secret\\b.gguf")])
    assert [name for name, _ in row(reading).adapters] == ["a.gguf", "b.gguf"]
    assert "secret" not in repr(reading)


def test_two_files_of_one_name_are_two_adapters() -> None:
    table = row(read([adapter(0, "x/a.gguf"), adapter(1, "y/a.gguf")], [slot(1)]))
    assert table.resident == 2
    states = dict(table.adapters)
    assert states == {"a.gguf": AdapterState.IDLE, "a.gguf#1": AdapterState.ACTIVE}


def test_a_request_in_progress_makes_its_adapters_active() -> None:
    states = dict(row(folder_case("llamacpp/b11434/busy").read()).adapters)
    assert states["lora-alpha.gguf"] is AdapterState.ACTIVE
    assert states["lora-beta.gguf"] is AdapterState.IDLE


def test_what_a_slot_says_after_its_end_is_old() -> None:
    case = folder_case("llamacpp/b11434/after")
    assert b'"lora":[{"id":0' in case.answers["slots"].body
    assert AdapterState.ACTIVE not in dict(row(case.read()).adapters).values()


def test_an_adapter_of_scale_0_does_nothing() -> None:
    slots = [{"is_processing": True, "params": {"lora": [{"id": 0, "scale": 0.0}]}}]
    table = row(read([adapter(0, "a.gguf")], slots))
    assert dict(table.adapters) == {"a.gguf": AdapterState.IDLE}


def test_the_servers_scale_does_not_tell_whether_an_adapter_is_used() -> None:
    assert (
        dict(row(folder_case("llamacpp/b11434/after-post").read()).adapters).keys()
        == dict(row(folder_case("llamacpp/b11434/after").read()).adapters).keys()
    )
    assert row(read([adapter(0, "a.gguf", scale=0.0)], [])).resident == 1


def test_without_the_slots_nothing_is_known_of_an_adapters_work() -> None:
    table = row(read([adapter(0, "a.gguf")]))
    assert dict(table.adapters) == {"a.gguf": AdapterState.REGISTERED}
    assert table.requests_running is None


def test_deferred_requests_wait_for_anything_and_not_for_an_adapter() -> None:
    metrics = "llamacpp:requests_deferred 3\nllamacpp:requests_processing 2\n"
    table = row(read([adapter(0, "a.gguf")], [], metrics))
    assert (table.requests_waiting, table.requests_deferred, table.waiting) == (3, None, None)
    assert table.requests_running == 2


def test_without_metrics_the_slots_tell_what_runs() -> None:
    table = row(read([adapter(0, "a.gguf")], [slot(0), slot(), slot(busy=False)]))
    assert table.requests_running == 2
    assert table.prompt_tokens is None


def test_a_server_without_adapters_runs_without_lora() -> None:
    reading = read([], [])
    assert reading.reason is Reason.NO_LORA


def test_a_key_is_asked_for_all_but_health() -> None:
    reading = folder_case("llamacpp/b11434/key-refused").read()
    assert (reading.table, reading.reason) == (None, Reason.AUTH)


@pytest.mark.parametrize(
    "adapters",
    [
        {},
        [1],
        "x",
        [{"id": 0}],
        [{"path": "a"}],
        [{"id": -1, "path": "a"}],
        [{"id": 0, "path": "/"}],
    ],
)
def test_what_is_no_list_of_adapters_is_a_matter_of_format(adapters: object) -> None:
    reading = read(adapters)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)


def test_adapters_are_only_read_and_answers_with_prompts_or_paths_never_shown() -> None:
    by_key = {request.key: request for request in LLAMACPP.requests(TARGET)}
    assert by_key["adapters"].url.endswith("/lora-adapters")
    for key in ("adapters", "slots", "props"):
        assert by_key[key].confidential

"""Engines that tell next to nothing: what they do not tell is unknown. Each trap by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.fleet import Reading, Reason, ReplicaTable, SlotKind, Source, Target
from tests.support.captures import Case, folder_case, folder_cases

LORAX, TENSORRT, TINKER = (ENGINES[name] for name in ("lorax", "tensorrtllm", "tinker"))
QUIET = [
    case for case in folder_cases() if case.target.engine in ("lorax", "tensorrtllm", "tinker")
]
TARGET = Target("http://replica-0.test:8000", "serving")
NOT_THERE = Answer(status=404, reason=Reason.STATUS, detail="HTTP 404")


def row(reading: Reading) -> ReplicaTable:
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


@pytest.mark.parametrize("limit", [None, 8])
@pytest.mark.parametrize("case", QUIET, ids=lambda case: str(case.path))
def test_only_the_operator_knows_max_and_nobody_knows_used(case: Case, limit: int | None) -> None:

    engine = ENGINES[case.target.engine]
    reading = engine.read(replace(case.target, max=limit), case.answers, case.now)
    table = row(reading)
    assert reading.up
    assert (table.max, table.used, table.free, table.source) == (limit, None, None, Source.OPERATOR)
    assert (table.resident, table.waiting, table.registered, table.adapters) == (
        None,
        None,
        None,
        (),
    )
    assert "unknown" in reading.detail


def test_lorax_names_its_model_and_its_queue() -> None:
    table = row(folder_case("lorax/made/traffic").read())
    assert (table.model, table.version) == ("mistralai/Mistral-7B-Instruct-v0.1", "0.12.1")
    assert table.requests_waiting == 3


def test_loraxs_model_may_be_a_folder_of_which_only_the_last_part_is_told() -> None:
    answers = {
        "metrics": Answer(b"lorax_queue_length 0\n"),
        "info": Answer(b'{"model_id": "/secret/models/mistral-7b"}'),
    }
    assert row(LORAX.read(TARGET, answers, 0.0)).model == "mistral-7b"


def test_a_server_without_loraxs_series_is_another() -> None:
    reading = LORAX.read(TARGET, {"metrics": Answer(b"tgi_queue_size 0\n")}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.NO_STATS)


def test_tensorrtllms_own_metrics_are_never_asked_as_reading_empties_them() -> None:
    for asked in (*TENSORRT.requests(TARGET), *TENSORRT.detection(TARGET)):
        assert asked.url != "http://replica-0.test:8000/metrics"


def test_tensorrtllms_tokens_are_passed_through() -> None:
    table = row(folder_case("tensorrtllm/made/serve").read())
    assert (table.prompt_tokens, table.generation_tokens) == (7000, 4100)
    assert (table.model, table.version) == ("base-model", "1.1.0")


def test_tritons_requests_are_told_by_their_kind() -> None:
    table = row(folder_case("tensorrtllm/made/triton").read())
    assert (table.requests_running, table.requests_waiting) == (12, 4)


def test_another_engines_models_are_not_tensorrtllms() -> None:
    answers = {
        "metrics": NOT_THERE,
        "models": Answer(b'{"data": [{"id": "m", "owned_by": "vllm"}]}'),
    }
    reading = TENSORRT.read(TARGET, answers, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.STATUS)


@pytest.mark.parametrize("reason", [Reason.CONNECT, Reason.TIMEOUT])
def test_a_list_that_was_kept_does_not_keep_a_dead_server_up(reason: Reason) -> None:
    answers = {
        "metrics": Answer(reason=reason, detail="gone"),
        "models": Answer(b'{"data": [{"id": "m", "owned_by": "tensorrt_llm"}]}'),
    }
    assert TENSORRT.read(TARGET, answers, 0.0) == Reading(None, reason, "gone")


def test_training_slots_are_exclusive() -> None:
    table = row(folder_case("tinker/made/one-model").read())
    assert (table.slot_kind, table.model) == (SlotKind.EXCLUSIVE, "Qwen/Qwen3-4B")


def test_several_trained_models_share_the_groups_name() -> None:
    assert row(folder_case("tinker/made/two-models").read()).model == "serving"


@pytest.mark.parametrize(
    ("url", "prefix", "asked"),
    [
        ("http://h:1", "", "http://h:1/api/v1/get_server_capabilities"),
        ("http://h:1/x", "", "http://h:1/x/get_server_capabilities"),
        ("http://h:1", "/y", "http://h:1/y/get_server_capabilities"),
    ],
)
def test_tinkers_prefix(url: str, prefix: str, asked: str) -> None:
    (request,) = TINKER.requests(Target(url, "g", prefix=prefix))
    assert request.url == asked


@pytest.mark.parametrize("body", [b"", b"{}", b'{"supported_models": "m"}', b"<html>"])
def test_capabilities_that_are_none_are_a_matter_of_format(body: bytes) -> None:
    reading = TINKER.read(TARGET, {"capabilities": Answer(body)}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)

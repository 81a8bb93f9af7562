"""Servers that pass another engine through: NIM, Dynamo's workers, Ray Serve. Each trap by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.fleet import AdapterState, Reading, Reason, ReplicaTable, Source, Target
from tests.support.captures import MOMENT, folder_case, vllm_case
from tests.support.vllm_lines import info, running

NIM, DYNAMO, RAY = ENGINES["nim"], ENGINES["dynamo"], ENGINES["rayserve"]
TARGET = Target("http://replica-0.test:8000", "serving", "nim")


def row(reading: Reading) -> ReplicaTable:
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


def rows(reading: Reading) -> dict[str | None, ReplicaTable]:
    assert reading.table is not None
    return {table.replica: table for table in reading.table.replicas}


# NIM


@pytest.mark.parametrize("capture", ["0.32.0/main/04-traffic.at1.6s", "0.27.1/main/00-start"])
def test_vllm_behind_nim_is_read_as_vllm(capture: str) -> None:
    case = vllm_case(capture)
    behind = {key: case.answers[key] for key in ("metrics", "models")}
    direct = row(ENGINES["vllm"].read(TARGET, behind, case.now))
    passed = row(NIM.read(TARGET, behind, case.now))
    assert passed == replace(direct, engine="nim")


def test_sglang_behind_nim_is_read_as_sglang() -> None:
    table = row(folder_case("nim/2/sglang").read())
    assert (table.engine, table.max, table.used, table.registered) == ("nim", 4, 2, 2)


def test_nims_series_are_under_v1() -> None:
    urls = {request.key: request.url for request in NIM.requests(TARGET)}
    assert urls == {
        "metrics": "http://replica-0.test:8000/v1/metrics",
        "models": "http://replica-0.test:8000/v1/models",
    }


def test_neither_engines_series_are_no_statistics() -> None:
    reading = folder_case("nim/2/neither").read()
    assert (reading.table, reading.reason) == (None, Reason.NO_STATS)


@pytest.mark.parametrize("name", ["vllm", "sglang", "lorax"])
def test_any_engines_series_may_be_under_another_path(name: str) -> None:
    target = replace(TARGET, engine=name, metrics_path="/engine/metrics", prefix="/a")
    (asked,) = (request for request in ENGINES[name].requests(target) if request.key == "metrics")
    assert asked.url == "http://replica-0.test:8000/a/engine/metrics"
    assert asked.fallback is None


# Dynamo's workers


def test_a_workers_adapters_are_registered() -> None:
    table = row(folder_case("dynamo/1.6/alone").read())
    assert table.registered == 2
    assert dict(table.adapters) == dict.fromkeys("ab", AdapterState.REGISTERED)
    # Which of them are in use is not told: unknown, not 0 and not 2.
    assert (table.max, table.used, table.free, table.resident) == (4, None, None, None)
    assert table.source is Source.OPERATOR


def test_a_worker_without_adapters_uses_no_slot() -> None:
    table = row(folder_case("dynamo/1.6/empty").read())
    assert (table.max, table.used, table.free, table.registered) == (4, 0, 4, 0)


def test_a_workers_max_is_not_guessed() -> None:
    case = folder_case("dynamo/1.6/alone")
    assert row(DYNAMO.read(replace(case.target, max=None), case.answers, 0.0)).max is None


def test_a_workers_engine_tells_the_slots_where_it_is_passed_through() -> None:
    table = row(folder_case("dynamo/1.6/vllm").read())
    assert (table.engine, table.max, table.used, table.free) == ("dynamo", 4, 1, 3)
    assert table.registered == 3
    assert dict(table.adapters)["a"] is AdapterState.ACTIVE
    assert dict(table.adapters)["c"] is AdapterState.REGISTERED


def test_churn_counters_that_are_reset_are_never_rates() -> None:
    body = (
        b"dynamo_frontend_lora_churn_loads_total 3\n"
        b"dynamo_frontend_lora_churn_unloads_total 2\n"
        b"dynamo_component_uptime_seconds 1\n"
    )
    answers = {"loras": Answer(b'{"loras": {"a": 1}, "count": 1}'), "metrics": Answer(body)}
    table = row(DYNAMO.read(TARGET, answers, 0.0))
    assert (table.prompt_tokens, table.generation_tokens) == (None, None)
    (asked,) = (one for one in DYNAMO.requests(TARGET) if one.key == "metrics")
    assert not any("churn" in name for name in asked.shown)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"loras": []}', b'{"status": "error"}'])
def test_a_list_that_is_none_is_a_matter_of_format(body: bytes) -> None:
    reading = DYNAMO.read(TARGET, {"loras": Answer(body)}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)


# Ray Serve LLM

LABELS = 'application="chat",deployment="LLMServer:base-model",replica="{}"'


def held(replica: str, models: int) -> str:
    return f"ray_serve_num_multiplexed_models{{{LABELS.format(replica)}}} {models}\n"


def model(replica: str, name: str, value: int) -> str:
    labels = f'{LABELS.format(replica)},model_id="{name}"'
    return f"ray_serve_registered_multiplexed_model_id{{{labels}}} {value}\n"


def of_ray(lines: str, replica: str) -> str:
    """vLLM's lines as its wrapper for Ray names and labels them."""
    return "".join(
        line.replace("vllm:", "ray_vllm_").replace("}", f',ReplicaId="{replica}"}}') + "\n"
        for line in lines.splitlines()
    )


def read_ray(body: str, limit: int | None = 16) -> dict[str | None, ReplicaTable]:
    target = Target("http://node-0.test:8080", "serving", "rayserve", max=limit)
    return rows(RAY.read(target, {"metrics": Answer(body.encode())}, MOMENT))


def test_series_of_unloaded_models_stay_at_0() -> None:
    table = rows(folder_case("rayserve/2.60/serve-only").read())["r7x2k9pq"]
    assert table.resident == 2
    assert dict(table.adapters).keys() == {"base-model:a", "base-model:b"}


def test_multiplexed_models_are_held_and_not_used() -> None:
    table = read_ray(held("r1", 16) + model("r1", "a", 1))["r1"]
    # All places of Serve's cache are taken, and idle ones give way: not full, but unknown.
    assert (table.max, table.used, table.free, table.resident) == (16, None, None, 16)


def test_a_replica_that_holds_nothing_uses_no_slot() -> None:
    table = read_ray(held("r1", 0))["r1"]
    assert (table.max, table.used, table.free) == (16, 0, 16)


def test_serves_maximum_is_the_operators() -> None:
    assert read_ray(held("r1", 0), None)["r1"].max is None


def test_twinkles_multiplexed_models_are_clients_and_no_adapters() -> None:
    tables = rows(folder_case("rayserve/2.60/serve-only").read())
    assert tables.keys() == {"r7x2k9pq", "w3m8d1zc"}


def test_one_node_tells_of_all_its_replicas() -> None:
    tables = read_ray(held("r1", 0) + held("r2", 1))
    assert tables.keys() == {"r1", "r2"}
    assert {table.model for table in tables.values()} == {"base-model"}


def test_vllm_behind_ray_tells_its_own_slots_of_each_replica() -> None:
    lines = "\n".join([info("a,b", at=MOMENT), running(2)])
    tables = read_ray(held("r1", 3) + held("r2", 3) + of_ray(lines, "r1"))
    table = tables["r1"]
    assert (table.max, table.used, table.free, table.resident) == (2, 2, 0, 3)
    assert (table.engine, table.source) == ("rayserve", Source.ACTIVITY)
    assert (tables["r2"].max, tables["r2"].used) == (16, None)


def test_vllm_of_a_replica_that_serve_does_not_know_is_left_out() -> None:
    lines = "\n".join([info("a", at=MOMENT), running(1)])
    assert read_ray(held("r1", 0) + of_ray(lines, "r9")).keys() == {"r1"}


def test_a_port_that_is_not_rays_is_no_statistics() -> None:
    reading = RAY.read(TARGET, {"metrics": Answer(b"node_load1 1\n")}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.NO_STATS)


def test_names_of_adapters_come_from_both() -> None:
    body = json.dumps({"loras": {"x,y": 1, "x": 2}, "count": 2}).encode()
    metrics = "\n".join([info("x,y", at=MOMENT), running(1), ""]).encode()
    answers = {"loras": Answer(body), "metrics": Answer(metrics)}
    table = row(DYNAMO.read(TARGET, answers, MOMENT))
    # The worker's list tells that the comma is part of a name.
    assert (table.used, dict(table.adapters)["x,y"]) == (1, AdapterState.ACTIVE)

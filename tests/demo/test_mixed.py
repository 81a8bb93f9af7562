"""The simulated servers of the other engines, read over HTTP by the exporter itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.demo.http_server import serving
from exporter.demo.inhouse import MAP
from exporter.demo.llamacpp import REQUEST_SLOTS, deferred, processing
from exporter.demo.mixed import (
    DYNAMO,
    INHOUSE,
    LLAMACPP,
    LORAX,
    NIM,
    OTHERS,
    RAYSERVE,
    SGLANG,
    TENSORRTLLM,
    TINKER,
    Simulated,
)
from exporter.demo.pages import pages_app
from exporter.demo.rayserve import CACHE, held
from exporter.demo.run import other_group
from exporter.demo.scenario import PERIOD, ServingReplica
from exporter.engines import AUTO, ENGINES
from exporter.fetching.ask import Asked
from exporter.fleet import AdapterState, Reason, ReplicaTable, SlotKind, Source
from tests.demo.reading import STARTED, Clock, ask

CAPTURES = Path(__file__).parents[1] / "captures"
TIMES = (1.0, 14.0, 50.0, 75.5, 105.0, 126.0, 155.0, 175.0, 199.5, 235.0, PERIOD + 62.0, 9 * PERIOD)
"""Working up, at their fullest, idle, and in later periods."""


async def asked(other: Simulated, clock: Clock, engine: str | None = None) -> Asked:
    async with serving(pages_app(other.pages(STARTED), clock, STARTED)) as address:
        group = other_group(other, address)
        if engine is not None:
            group = group.model_copy(update={"engine": engine})
        return await ask(group, clock)


async def tables(other: Simulated, seconds: float) -> list[tuple[ServingReplica, ReplicaTable]]:
    """Each replica of the server at this moment, and what the exporter read of it."""
    reading = (await asked(other, Clock(seconds))).reading
    assert reading.up, reading.detail
    assert reading.table is not None
    read = {table.replica or other.replicas[0].name: table for table in reading.table.replicas}
    assert read.keys() == {replica.name for replica in other.replicas}
    return [(replica, read[replica.name]) for replica in other.replicas]


async def table_of(other: Simulated, seconds: float) -> ReplicaTable:
    ((_, table),) = await tables(other, seconds)
    return table


def names(table: ReplicaTable, state: AdapterState) -> set[str]:
    return {adapter.name for adapter in table.adapters if adapter.state is state}


each = pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.engine)


def test_the_fleet_speaks_every_engine() -> None:
    assert {other.engine for other in OTHERS} | {"vllm", "twinkle"} == set(ENGINES)


@each
async def test_the_engine_is_found_out(other: Simulated) -> None:
    for seconds in (0.0, 60.0, 235.0):
        found = await asked(other, Clock(seconds), AUTO)
        if other is INHOUSE:
            # What an operator maps is not found by itself.
            assert (found.engine, found.reading.reason) == (None, Reason.UNSUPPORTED)
        else:
            assert found.engine == other.engine, (seconds, found.reading.detail)
            assert found.reading.up


@pytest.mark.parametrize("seconds", TIMES)
@each
async def test_what_is_read_of_each_is_so(other: Simulated, seconds: float) -> None:
    for replica, table in await tables(other, seconds):
        truth = replica.at(seconds)
        assert (table.model, table.engine) == (replica.model, other.engine)
        assert table.version in (None, replica.version)
        for told, true in (
            (table.used, len(truth.running)),
            (table.prompt_tokens, truth.prompt_tokens),
            (table.generation_tokens, truth.generation_tokens),
        ):
            assert told in (None, true)


@pytest.mark.parametrize("seconds", TIMES)
@pytest.mark.parametrize("other", [SGLANG, RAYSERVE, INHOUSE, NIM, DYNAMO], ids=lambda o: o.engine)
async def test_engines_with_slots_tell_max_and_used(other: Simulated, seconds: float) -> None:
    for replica, table in await tables(other, seconds):
        truth = replica.at(seconds)
        assert (table.max, table.used) == (replica.slots, len(truth.running))
        assert (table.prompt_tokens, table.generation_tokens) == (
            truth.prompt_tokens,
            truth.generation_tokens,
        )
        kind = SlotKind.EXCLUSIVE if other is INHOUSE else SlotKind.EVICTABLE
        assert table.slot_kind is kind
        if other is not INHOUSE:
            assert table.requests_running == truth.requests_running
            assert table.requests_waiting == truth.requests_waiting
        if other is not SGLANG:
            assert names(table, AdapterState.ACTIVE) == set(truth.running)


async def test_sglang_runs_out_after_the_story_and_is_idle_before_the_next() -> None:
    table = await table_of(SGLANG, 175.0)
    assert (table.max, table.used, table.free) == (6, 6, 0)
    assert (table.source, table.version) == (Source.ACTIVITY, "0.5.23")
    assert table.registered == len(SGLANG.replicas[0].registered)
    assert table.requests_waiting
    idle = await table_of(SGLANG, 230.0)
    assert (idle.used, idle.requests_running) == (0, 0)


async def test_sglangs_gauges_keep_the_last_batch_while_idle() -> None:
    body = SGLANG.pages(STARTED)["/metrics"](230.0)
    assert isinstance(body, str)
    used = [line for line in body.splitlines() if line.startswith("sglang:lora_pool_slots_used{")]
    assert [line.rpartition(" ")[2] for line in used] == ["1.0", "1.0"]


@pytest.mark.parametrize("seconds", TIMES)
async def test_llamacpp_has_adapters_and_no_slots(seconds: float) -> None:
    table = await table_of(LLAMACPP, seconds)
    (replica,) = LLAMACPP.replicas
    at_work = processing(replica, seconds)
    assert (table.max, table.used, table.has_slots) == (None, None, False)
    assert table.resident == table.registered == len(replica.registered) == 4
    assert names(table, AdapterState.ACTIVE) == set(at_work)
    assert table.requests_running == len(at_work)
    assert table.requests_waiting == deferred(replica, seconds)


def test_llamacpp_has_requests_that_wait_for_room() -> None:
    (replica,) = LLAMACPP.replicas
    assert len(processing(replica, 100.0)) == REQUEST_SLOTS
    assert deferred(replica, 100.0) > 0
    assert deferred(replica, 20.0) == 0


async def test_one_ray_node_tells_of_two_replicas_and_what_serve_dropped_stays_at_0() -> None:
    (full, table), (other, _) = await tables(RAYSERVE, 235.0)
    assert (full.model, full.name) == (other.model, "r7x2k9pq")
    assert (table.used, table.resident) == (0, CACHE)
    assert {adapter.name for adapter in table.adapters} == set(held(full, 235.0))
    body = RAYSERVE.pages(STARTED)["/metrics"](235.0)
    assert isinstance(body, str)
    series = "ray_serve_registered_multiplexed_model_id{"
    values = [line for line in body.splitlines() if line.startswith(series) and full.name in line]
    assert sorted(line.rpartition(" ")[2] for line in values) == ["0.0"] + CACHE * ["1.0"]
    (dropped,) = (line for line in values if line.endswith(" 0.0"))
    # It had no work for the longest time.
    assert "gemma-3-12b:ad-copy" in dropped


async def test_the_operators_own_service_is_mapped() -> None:
    table = await table_of(INHOUSE, 105.0)
    assert (table.max, table.used, table.free) == (6, 4, 2)
    assert (table.source, table.waiting) == (Source.SLOTS, 0)
    # Names of adapters at work would hide that a device is not counted.
    mapped = {key: path for key, path in MAP.items() if key != "active"}
    nameless = dataclasses.replace(INHOUSE, options={"custom": mapped})
    assert (await table_of(nameless, 105.0)).used == 4


async def test_dynamo_and_nim_are_named_and_not_the_engine_behind() -> None:
    for other in (NIM, DYNAMO):
        table = await table_of(other, 100.0)
        assert (table.engine, table.registered) == (
            other.engine,
            len(other.replicas[0].registered),
        )


@pytest.mark.parametrize("seconds", TIMES)
@pytest.mark.parametrize(
    ("other", "limit"), [(LORAX, 32), (TENSORRTLLM, 8), (TINKER, 2)], ids=lambda one: str(one)[:20]
)
async def test_what_an_engine_does_not_tell_stays_unknown(
    other: Simulated, limit: int, seconds: float
) -> None:
    table = await table_of(other, seconds)
    assert (table.max, table.used, table.free) == (limit, None, None)
    assert table.source is Source.OPERATOR


def paths(document: object, at: str = "") -> set[str]:
    """Where a document has values, whatever they are."""
    if isinstance(document, dict):
        return {at}.union(*(paths(value, f"{at}.{key}") for key, value in document.items()))
    if isinstance(document, list):
        return {at}.union(*(paths(value, f"{at}[]") for value in document))
    return {at}


@pytest.mark.parametrize(
    ("other", "page", "capture"),
    [
        (SGLANG, "/v1/loads", "sglang/0.5.23/traffic/loads.json"),
        (LLAMACPP, "/lora-adapters", "llamacpp/b11434/busy/adapters.json"),
        (LLAMACPP, "/slots", "llamacpp/b11434/busy/slots.json"),
        (LLAMACPP, "/props", "llamacpp/b11434/busy/props.json"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_documents_have_no_field_that_the_real_ones_lack(
    other: Simulated, page: str, capture: str
) -> None:
    shown = paths(other.pages(STARTED)[page](100.0))
    assert len(shown) > 1
    assert shown <= paths(json.loads((CAPTURES / capture).read_text()))


@pytest.mark.parametrize(
    ("other", "capture", "least"),
    [
        (SGLANG, "sglang/0.5.23/traffic/metrics.txt", 8),
        (LLAMACPP, "llamacpp/b11434/after/metrics.txt", 4),
        (RAYSERVE, "rayserve/2.60/behind-vllm/metrics.txt", 7),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_series_have_the_type_and_labels_of_the_real_ones(
    other: Simulated, capture: str, least: int
) -> None:
    body = other.pages(STARTED)["/metrics"](100.0)
    assert isinstance(body, str)
    real = labels_of((CAPTURES / capture).read_text())
    shown = {name: labels for name, labels in labels_of(body).items() if name in real}
    assert len(shown) >= least
    assert shown == {name: real[name] for name in shown}


def labels_of(body: str) -> dict[str, tuple[str, set[str]]]:
    """Type and names of labels, by the name of the sample."""
    return {
        sample.name: (family.type, set(sample.labels))
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


@each
def test_nobody_else_is_short_while_the_story_is(other: Simulated) -> None:
    """Panels and alerts that tell who is out name the story's model alone."""
    for replica in other.replicas:
        for half_second in range(2 * 125):
            moment = replica.at(half_second / 2)
            assert other is LLAMACPP or len(moment.running) < replica.slots
            assert not moment.waiting


def test_names_of_replicas_and_models_are_their_own() -> None:
    replicas = [replica for other in OTHERS for replica in other.replicas]
    assert len({replica.name for replica in replicas}) == len(replicas)
    models = {other.replicas[0].model for other in OTHERS}
    assert len(models) == len(OTHERS)

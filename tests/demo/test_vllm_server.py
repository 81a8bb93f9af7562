"""The simulated vLLM replicas, read over HTTP by the exporter itself."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporter.demo.cast import LLAMA31_0, QWEN3_0, QWEN3_1, VLLM_REPLICAS
from exporter.demo.http_server import serving
from exporter.demo.run import vllm_group
from exporter.demo.scenario import PERIOD, ServingReplica
from exporter.demo.vllm_server import vllm_app
from exporter.fleet import AdapterState, ReplicaTable, Source
from tests.demo.reading import STARTED, Clock, ask

TIMES = (10.0, 45.0, 60.5, 90.0, 107.0, 119.99, 130.0, 150.0, 220.0, PERIOD + 63.0, 9 * PERIOD)


async def table_of(replica: ServingReplica, address: str, clock: Clock) -> ReplicaTable:
    asked = await ask(vllm_group(replica, address), clock)
    assert asked.reading.up, asked.reading.detail
    assert asked.reading.table is not None
    (table,) = asked.reading.table.replicas
    return table


def names(table: ReplicaTable, state: AdapterState) -> set[str]:
    return {adapter.name for adapter in table.adapters if adapter.state is state}


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
async def test_the_exporter_reads_what_the_scenario_says(replica: ServingReplica) -> None:
    clock = Clock()
    told = replica is LLAMA31_0
    async with serving(vllm_app(replica, clock, STARTED)) as address:
        for seconds in TIMES:
            clock.seconds = seconds
            truth = replica.at(seconds)
            table = await table_of(replica, address, clock)
            assert (table.model, table.version) == (replica.model, replica.version)
            assert table.source is Source.ACTIVITY
            assert table.max == replica.slots
            assert table.used == len(truth.running)
            assert table.waiting == (len(truth.waiting) if told else None)
            assert table.registered == len(replica.registered)
            assert names(table, AdapterState.ACTIVE) == set(truth.running)
            assert names(table, AdapterState.WAITING) == (set(truth.waiting) if told else set())
            assert table.requests_running == truth.requests_running
            assert table.requests_waiting == truth.requests_waiting
            assert table.requests_deferred == (None if told else truth.requests_waiting)
            assert table.prompt_tokens == truth.prompt_tokens
            assert table.generation_tokens == truth.generation_tokens


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
async def test_slots_are_unknown_before_the_first_step(replica: ServingReplica) -> None:
    clock = Clock(replica.first_step - 0.5)
    async with serving(vllm_app(replica, clock, STARTED)) as address:
        table = await table_of(replica, address, clock)
        assert (table.max, table.used) == (None, None)
        assert table.registered == len(replica.registered)
        async with aiohttp.ClientSession() as session, session.get(f"{address}/metrics") as answer:
            body = await answer.text()
    assert "# TYPE vllm:lora_requests_info gauge\n" in body
    assert "\nvllm:lora_requests_info{" not in body


async def test_a_name_with_a_comma_is_one_adapter() -> None:
    clock = Clock(60)
    async with serving(vllm_app(QWEN3_0, clock, STARTED)) as address:
        assert "hooli-search,eu" in names(
            await table_of(QWEN3_0, address, clock), AdapterState.ACTIVE
        )


async def test_only_the_path_with_a_slash_filters() -> None:
    clock = Clock(130)
    query = "name[]=vllm:lora_requests_info&name[]=vllm:num_requests_running"
    async with (
        serving(vllm_app(QWEN3_1, clock, STARTED)) as address,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"{address}/metrics?{query}") as whole:
            assert whole.content_length is not None
            assert whole.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
            body = await whole.text()
        async with session.get(f"{address}/metrics/") as slash:
            assert slash.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert slash.headers["Transfer-Encoding"] == "chunked"
            assert await slash.text() == body
        async with session.get(f"{address}/metrics/?{query}") as filtered:
            few = await filtered.text()
    assert 20_000 < len(body) < 100_000
    kept = {line.partition("{")[0] for line in few.splitlines() if not line.startswith("#")}
    assert kept == {"vllm:lora_requests_info", "vllm:num_requests_running"}
    assert set(few.splitlines()) <= set(body.splitlines())


async def test_what_waits_is_told_by_the_older_release_only() -> None:
    clock = Clock(130)
    async with (
        aiohttp.ClientSession() as session,
        serving(vllm_app(QWEN3_1, clock, STARTED)) as later,
        serving(vllm_app(LLAMA31_0, clock, STARTED)) as older,
    ):
        clock.seconds = 130
        async with session.get(f"{later}/metrics") as answer:
            broken = lora_labels(await answer.text())
        clock.seconds = 90
        async with session.get(f"{older}/metrics") as answer:
            right = lora_labels(await answer.text())
    assert all(running == waiting for running, waiting in broken)
    assert (
        "news-summary,contract-redline-en,medical-coding,kyc-extract",
        "tone-formal-ja,fraud-explainer,returns-triage",
    ) in right


def lora_labels(body: str) -> list[tuple[str, str]]:
    return [
        (sample.labels["running_lora_adapters"], sample.labels["waiting_lora_adapters"])
        for family in text_string_to_metric_families(body)
        for sample in family.samples
        if sample.name == "vllm:lora_requests_info"
    ]


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
async def test_the_exposition_is_sound(replica: ServingReplica) -> None:
    clock = Clock(100)
    async with (
        aiohttp.ClientSession() as session,
        serving(vllm_app(replica, clock, STARTED)) as address,
        session.get(f"{address}/metrics") as answer,
    ):
        body = await answer.text()
    families = list(text_string_to_metric_families(body))
    assert len(families) == body.count("# TYPE ") == body.count("# HELP ")
    for family in families:
        if family.type == "histogram":
            buckets = [s.value for s in family.samples if s.name.endswith("_bucket")]
            (count,) = [s.value for s in family.samples if s.name.endswith("_count")]
            assert buckets == sorted(buckets)
            assert buckets[-1] == count > 0


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
async def test_nothing_that_counts_ever_falls(replica: ServingReplica) -> None:
    clock = Clock()
    before: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    async with (
        aiohttp.ClientSession() as session,
        serving(vllm_app(replica, clock, STARTED)) as address,
    ):
        for seconds in range(0, int(2 * PERIOD), 17):
            clock.seconds = seconds
            async with session.get(f"{address}/metrics") as answer:
                body = await answer.text()
            for family in text_string_to_metric_families(body):
                if family.type not in ("counter", "histogram"):
                    continue
                for sample in family.samples:
                    key = (sample.name, frozenset(sample.labels.items()))
                    assert sample.value >= before.get(key, 0.0), (seconds, sample)
                    before[key] = sample.value
    assert len(before) > 200


async def test_models_are_listed_as_vllm_does() -> None:
    async with (
        aiohttp.ClientSession() as session,
        serving(vllm_app(QWEN3_0, Clock(60), STARTED)) as address,
    ):
        async with session.get(f"{address}/v1/models") as answer:
            first = (await answer.json())["data"]
        async with session.get(f"{address}/v1/models") as answer:
            second = (await answer.json())["data"]
        async with session.get(f"{address}/v1/chat") as answer:
            assert (answer.status, await answer.json()) == (404, {"detail": "Not Found"})
    assert [row["id"] for row in first] == [QWEN3_0.model, *QWEN3_0.registered]
    assert [row["parent"] for row in first] == [None, *[QWEN3_0.model] * (len(first) - 1)]
    assert first[0]["permission"][0]["id"] != second[0]["permission"][0]["id"]

"""Builds of vLLM that tell which adapters are resident."""

from __future__ import annotations

import pytest

from exporter.fleet import AdapterState, Source
from tests.support.captures import VLLM_TARGET
from tests.support.vllm_lines import VLLM_ENGINE, info, models_of, names, read, row, running


def loaded(
    name: str, level: str = "gpu", pinned: str = "false", engine: str = "0", value: int = 1
) -> str:
    """A line of vllm:lora_adapter_loaded."""
    return (
        f'vllm:lora_adapter_loaded{{engine="{engine}",adapter_name="{name}",level="{level}",'
        f'pinned="{pinned}"}} {value}'
    )


def test_resident_adapters_are_idle_unless_active() -> None:
    table = row(
        read(info("a", max_lora="3"), running(1), loaded("a"), loaded("b"), models=models_of("c"))
    )
    assert (table.max, table.used, table.free, table.resident) == (3, 1, 2, 2)
    assert names(table, AdapterState.ACTIVE) == {"a"}
    assert names(table, AdapterState.IDLE) == {"b"}
    assert names(table, AdapterState.REGISTERED) == {"c"}
    assert table.source is Source.RESIDENCY


def test_pinned_adapters_hold_their_slots() -> None:
    table = row(read(info("a", max_lora="3"), running(1), loaded("a"), loaded("b", pinned="true")))
    assert (table.used, table.free) == (2, 1)


def test_a_resident_adapter_counts_under_cpu_too_but_once() -> None:
    table = row(read(info("a"), running(1), loaded("a", "cpu"), loaded("a"), loaded("b", "cpu")))
    assert (table.resident, table.used) == (1, 1)
    assert names(table, AdapterState.OFFLOADED) == {"b"}


@pytest.mark.parametrize("turn", range(2))
def test_a_resident_adapter_is_idle_whichever_level_comes_first(turn: int) -> None:
    lines = [loaded("a"), loaded("a", "cpu")]
    table = row(read(info(""), running(0), *lines[turn:], *lines[:turn]))
    assert names(table, AdapterState.IDLE) == {"a"}
    assert names(table, AdapterState.OFFLOADED) == set()


def test_a_resident_adapter_does_not_wait_for_a_slot() -> None:
    table = row(read(info("a", "b,c", max_lora="3"), running(1), loaded("a"), loaded("b")))
    assert table.waiting == 1
    assert names(table, AdapterState.WAITING) == {"c"}
    assert names(table, AdapterState.IDLE) == {"b"}


def test_ranks_repeat_one_slot() -> None:
    ranks = [
        f'vllm:lora_adapter_loaded{{engine="0",adapter_name="a",level="gpu",rank="{rank}"}} 1'
        for rank in range(4)
    ]
    assert row(read(info("a"), running(1), *ranks)).resident == 1


def test_an_adapter_that_left_keeps_its_series_at_0() -> None:
    table = row(read(info("a"), running(1), loaded("a"), loaded("b", value=0)))
    assert table.resident == 1
    assert names(table, AdapterState.IDLE) == set()


def test_each_of_two_engines_has_slots_of_its_own() -> None:
    table = row(
        read(
            info("a,b"),
            running(2, "0"),
            running(1, "1"),
            *(loaded(name, engine="0") for name in ("a", "b")),
            *(loaded(name, engine="1") for name in ("a", "c")),
        )
    )
    assert (table.max, table.resident, table.used, table.free) == (4, 4, 3, 1)
    assert table.source is Source.RESIDENCY


def test_the_engines_maximum_is_taken_where_told() -> None:
    limits = [f'vllm:max_gpu_lora_adapters{{engine="{engine}"}} 3' for engine in "01"]
    lines = [running(1, "0"), running(0, "1"), *limits]
    assert row(read(info("a"), *lines, loaded("a"))).max == 6


def test_a_maximum_without_an_engine_is_that_of_each_engine() -> None:
    lines = [running(1, "0"), running(0, "1"), "vllm:max_gpu_lora_adapters 3"]
    assert row(read(info("a"), *lines)).max == 6


def test_resident_and_maximum_may_be_told_without_names() -> None:
    table = row(
        read(
            info("a"),
            running(1),
            'vllm:num_gpu_loaded_lora_adapters{engine="0"} 2',
            'vllm:num_cpu_loaded_lora_adapters{engine="0"} 4',
            'vllm:max_gpu_lora_adapters{engine="0"} 3',
        )
    )
    assert (table.max, table.resident, table.used) == (3, 2, 1)


def test_residency_is_told_before_the_first_request() -> None:
    reading = read(running(0), loaded("b"), 'vllm:max_gpu_lora_adapters{engine="0"} 2')
    table = row(reading)
    assert reading.up
    assert (table.max, table.resident) == (2, 1)
    assert names(table, AdapterState.IDLE) == {"b"}


@pytest.mark.parametrize("value", ["1e308", "1e300", "-1", "0.75"])
def test_a_maximum_that_is_no_count_is_unknown(value: str) -> None:
    limits = [f'vllm:max_gpu_lora_adapters{{engine="{engine}"}} {value}' for engine in "01"]
    table = row(read(running(0, "0"), running(0, "1"), *limits))
    assert table.max is None


@pytest.mark.parametrize("tier", ["tier", "level"])
def test_a_cache_that_only_counts_tells_the_resident(tier: str) -> None:
    cached = [
        f'vllm:lora_cache_num_adapters{{engine="0",{tier}="gpu"}} 2',
        f'vllm:lora_cache_num_adapters{{engine="0",{tier}="cpu"}} 5',
    ]
    table = row(read(info("a"), running(1), *cached))
    assert (table.max, table.used, table.resident) == (2, 1, 2)
    # Which of them are pinned is not told, so used is still what is active.
    assert table.source is Source.ACTIVITY


@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_gpu_loaded_lora_adapters{engine="0"} 1',
        'vllm:lora_cache_num_adapters{engine="0",tier="gpu"} 1',
    ],
)
def test_each_family_alone_shows_that_lora_is_on_before_the_first_request(line: str) -> None:
    reading = read(running(0), line)
    assert reading.up
    assert (row(reading).resident, row(reading).used) == (1, 0)
    assert row(read(running(1), line)).used is None


def test_a_pinned_adapter_holds_its_slot_before_the_first_request_too() -> None:
    limit = 'vllm:max_gpu_lora_adapters{engine="0"} 2'
    table = row(read(running(0), loaded("a"), loaded("b", pinned="true"), limit))
    assert (table.max, table.used, table.free, table.source) == (2, 1, 1, Source.RESIDENCY)


def test_each_published_family_of_residency_is_asked_for_by_name() -> None:
    (asked,) = (one for one in VLLM_ENGINE.requests(VLLM_TARGET) if one.key == "metrics")
    for name in ("lora_adapter_loaded", "max_gpu_lora_adapters", "lora_cache_num_adapters"):
        assert f"name[]=vllm:{name}" in asked.url

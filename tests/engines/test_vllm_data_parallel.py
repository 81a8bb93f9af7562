"""Engines and API servers that share one exposition, each trap by its name."""

from __future__ import annotations

import re

import pytest

from exporter.engines.base import Answer
from exporter.fleet import AdapterState, Reason, Source
from tests.support.captures import (
    VLLM,
    VLLM_TARGET,
    vllm_answers,
    vllm_case,
)
from tests.support.vllm_lines import NOW, VLLM_ENGINE, info, names, read, row, running


def test_several_api_servers_before_the_first_step_are_not_without_lora() -> None:
    case = vllm_case("0.32.0/api-server-count-2/q0-start")
    assert b"lora_requests_info" not in case.answers["metrics"].body
    reading = case.read()
    assert reading.up
    assert row(reading).max is None


def test_several_api_servers_are_not_without_lora_even_if_no_model_is_told() -> None:
    case = vllm_case("0.32.0/api-server-count-2/q0-start")
    answers = vllm_answers(case.answers["metrics"].body, None, None)
    assert VLLM_ENGINE.read(VLLM_TARGET, answers, case.now).up


def test_data_parallel_multiplies_max_by_the_engines() -> None:
    table = row(read(info("a"), running(1, "0"), running(0, "1"), running(0, "2")))
    assert (table.max, table.used) == (6, 1)
    assert table.source is Source.ACTIVITY_UPPER_BOUND


def test_data_parallel_union_hides_that_both_engines_hold_the_same_adapters() -> None:
    table = row(read(info("a,b"), running(2, "0"), running(3, "1")))
    assert (table.max, table.used, table.free) == (4, 4, 0)


def test_data_parallel_used_is_bounded_by_the_requests_of_each_engine() -> None:
    table = row(read(info("a,b"), running(1, "0"), running(2, "1")))
    assert (table.used, table.free) == (3, 1)


def test_data_parallel_used_is_bounded_by_the_distinct_adapters_on_each_engine() -> None:
    table = row(read(info("a"), running(5, "0"), running(5, "1")))
    assert (table.used, table.free) == (2, 2)


def test_data_parallel_used_is_never_below_the_distinct_adapters() -> None:
    # The gauges were set a moment before the series.
    table = row(read(info("a,b,c"), running(1, "0"), running(0, "1")))
    assert table.used == 3


def test_data_parallel_counts_the_requests_of_one_engine_together() -> None:
    lines = [
        f'vllm:num_requests_running{{engine="{engine}",model_name="{name}"}} 1'
        for engine in "01"
        for name in ("m", "alias")
    ]
    table = row(read(info("a,b"), *lines))
    assert (table.max, table.used) == (4, 4)


def test_the_recorded_load_of_data_parallel_stays_between_its_bounds() -> None:
    """Ten requests over five adapters, and one of the base model, until all are done."""
    text = (VLLM / "0.32.0/data-parallel-2/x-traffic-6adapters.timeline.txt").read_text()
    moments = re.split(r"^## t=\S+ unix=([\d.]+) .*\n", text, flags=re.MULTILINE)[1:]
    full = 0
    for at, body in zip(moments[::2], moments[1::2], strict=True):
        if not body.strip():
            continue
        answers = vllm_answers(b"# HELP a comment\n" + body.encode(), None, None)
        table = row(VLLM_ENGINE.read(VLLM_TARGET, answers, float(at)))
        distinct = len(names(table, AdapterState.ACTIVE))
        assert table.max == 4
        assert table.used is not None
        assert distinct <= table.used <= 4
        if table.requests_deferred and table.used == 4 and distinct == 2:
            full += 1
    assert full > 10


def test_summed_timestamps_are_ambiguous_and_counters_are_kept() -> None:
    case = vllm_case("0.32.0/api-server-count-2/q3-after")
    reading = case.read()
    table = row(reading)
    assert reading.reason is Reason.AMBIGUOUS
    assert (table.max, table.used, table.free, table.waiting) == (None, None, None, None)
    assert (table.generation_tokens, table.registered) == (4824, 2)
    # One server's view only.
    assert (table.requests_running, table.requests_waiting, table.requests_deferred) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(("ahead", "reason"), [(299.0, None), (301.0, Reason.AMBIGUOUS)])
def test_clocks_may_differ_by_five_minutes(ahead: float, reason: Reason | None) -> None:
    assert read(info("a", at=NOW + ahead), running(1)).reason is reason


def test_one_summed_timestamp_that_is_not_the_present_is_ambiguous_too() -> None:
    lines = [info("", "", 2 * NOW), info("a", "a", NOW)]
    assert read(*lines, running(12)).reason is Reason.AMBIGUOUS


def test_the_engines_own_clock_decides_what_is_now() -> None:
    answers = dict(vllm_answers(f"{info('a', at=NOW)}\n{running(1)}\n".encode(), None, None))
    answers["metrics"] = Answer(b"# HELP\n" + answers["metrics"].body, date=NOW + 1)
    reading = VLLM_ENGINE.read(VLLM_TARGET, answers, NOW + 4000)
    assert (reading.up, row(reading).used) == (True, 1)

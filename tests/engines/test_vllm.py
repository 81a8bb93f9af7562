"""The traps of vLLM's answers, each by its name. Facts: recorded bodies and released code."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from exporter.engines.base import Answer
from exporter.engines.vllm import WANTED
from exporter.fleet import AdapterState, Reading, Reason, SlotKind, Source
from tests.support.captures import (
    VLLM,
    VLLM_TARGET,
    times,
    vllm_answers,
    vllm_case,
)
from tests.support.vllm_lines import NOW, VLLM_ENGINE, info, models_of, names, read, row, running


@pytest.mark.parametrize("turn", range(3))
def test_the_newest_sample_wins_whatever_the_order_of_the_lines(turn: int) -> None:
    lines = [info("a,b", at=NOW - 2), info("c", at=NOW - 1), info("", at=NOW - 3)]
    table = row(read(*lines[turn:], *lines[:turn], running(1)))
    assert names(table, AdapterState.ACTIVE) == {"c"}
    assert (table.max, table.used, table.free) == (2, 1, 1)


def test_the_same_adapters_in_another_order_are_another_series() -> None:
    table = row(read(info("a,b", at=NOW - 9), info("b,a", at=NOW), running(2)))
    assert (table.used, names(table, AdapterState.ACTIVE)) == (2, {"a", "b"})


def test_slots_are_evictable_and_the_source_is_activity() -> None:
    table = row(read(info("a"), running(1)))
    assert (table.slot_kind, table.source) == (SlotKind.EVICTABLE, Source.ACTIVITY)
    assert table.resident is None


def test_an_active_adapter_need_not_be_registered() -> None:
    table = row(read(info("unloaded"), running(1), models=models_of("a")))
    assert names(table, AdapterState.ACTIVE) == {"unloaded"}
    assert (table.used, table.registered) == (1, 1)


def test_waiting_is_unknown_where_it_repeats_running() -> None:
    table = row(read(info("a,b", "a,b"), running(2), version="0.32.0"))
    assert (table.used, table.waiting) == (2, None)
    assert names(table, AdapterState.WAITING) == set()


def test_waiting_is_unknown_where_the_version_is_and_all_series_are_equal() -> None:
    table = row(read(info("a", "a"), info("", "", NOW - 1), running(1), version=None))
    assert table.waiting is None


def test_one_unequal_series_proves_that_waiting_is_told() -> None:
    table = row(read(info("a", "a"), info("a", "b", NOW - 5), running(1), version=None))
    assert table.waiting == 0


@pytest.mark.parametrize("version", ["0.8.5.post2", "0.10.2.post2", "0.11.0", "0.11.0rc1", "0.9"])
def test_waiting_is_told_up_to_0_11_0(version: str) -> None:
    """Though all series are equal, which is no proof of the broken shape."""
    table = row(read(info("", ""), info("a", "a", NOW - 1), running(0), version=version))
    assert table.waiting == 0


@pytest.mark.parametrize("version", ["0.11.1", "0.11.2.dev3", "0.20.0", "1.0.0", "dev", ""])
def test_waiting_is_not_believed_from_0_11_1_on(version: str) -> None:
    assert row(read(info("", ""), running(1), version=version)).waiting is None


def test_an_adapter_in_both_lists_has_a_slot() -> None:
    table = row(read(info("a", "a,b"), running(1), version="0.10.2"))
    assert (table.used, table.waiting) == (1, 1)
    assert names(table, AdapterState.ACTIVE) == {"a"}
    assert names(table, AdapterState.WAITING) == {"b"}


def test_running_can_be_empty_while_adapters_wait() -> None:
    table = row(read(info("", "c,d,e"), running(0), version="0.10.2"))
    assert (table.used, table.free, table.waiting) == (0, 2, 3)


def test_deferred_requests_are_told_apart_by_their_reason() -> None:
    by_reason = 'vllm:num_requests_waiting_by_reason{{engine="0",reason="{}"}} {}'
    table = row(
        read(
            info("a", "a"),
            running(1),
            by_reason.format("capacity", 7),
            by_reason.format("deferred", 4),
        )
    )
    assert table.requests_deferred == 4


def test_deferred_requests_are_unknown_where_no_reason_is_told() -> None:
    assert row(read(info("a", "a"), running(1))).requests_deferred is None


def test_slots_are_unknown_before_the_first_request() -> None:
    declared = "# TYPE vllm:lora_requests_info gauge"
    reading = read(declared, running(0), models=models_of("a"))
    table = row(reading)
    assert reading.up
    assert (table.max, table.used, table.free, table.waiting) == (None, None, None, None)
    assert (table.registered, names(table, AdapterState.REGISTERED)) == (1, {"a"})


def test_the_operators_max_serves_before_the_first_request() -> None:
    target = replace(VLLM_TARGET, max=4)
    table = row(read("# TYPE vllm:lora_requests_info gauge", running(0), target=target))
    assert (table.max, table.used, table.free, table.source) == (4, 0, 4, Source.OPERATOR)


def test_the_operators_max_does_not_make_used_known_while_requests_run() -> None:
    target = replace(VLLM_TARGET, max=4)
    table = row(read("# TYPE vllm:lora_requests_info gauge", running(3), target=target))
    assert (table.max, table.used, table.free) == (4, None, None)


def test_the_engines_max_outranks_the_operators() -> None:
    assert row(read(info("a"), running(1), target=replace(VLLM_TARGET, max=9))).max == 2


def test_no_series_and_no_adapters_means_started_without_lora() -> None:
    reading = read(running(2))
    assert reading.reason is Reason.NO_LORA
    assert (row(reading).max, row(reading).used) == (None, None)
    assert row(reading).requests_running == 2


def test_registered_adapters_prove_that_lora_is_on() -> None:
    reading = read(running(2), models=models_of("a"))
    assert reading.up
    assert (row(reading).max, row(reading).used) == (None, None)


def test_max_lora_0_of_v0_means_started_without_lora() -> None:
    reading = read(info("", max_lora="0"), 'vllm:num_requests_running{model_name="m"} 0')
    assert reading.reason is Reason.NO_LORA
    assert (row(reading).max, row(reading).used) == (None, None)


def test_v0_has_no_engine_label_and_is_one_engine() -> None:
    table = row(read(info("a"), 'vllm:num_requests_running{model_name="m"} 1'))
    assert (table.max, table.used, table.source) == (2, 1, Source.ACTIVITY)


def test_no_vllm_series_means_statistics_are_off() -> None:
    reading = read("python_info 1", models=models_of("a"))
    assert reading.reason is Reason.NO_STATS
    assert (row(reading).max, row(reading).used, row(reading).registered) == (None, None, 1)


def test_a_page_instead_of_metrics_is_a_matter_of_format() -> None:
    body = b"<!doctype html><title>Sign in</title><p>secret"
    reading = VLLM_ENGINE.read(VLLM_TARGET, vllm_answers(body, None, None), NOW)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)
    assert "secret" not in reading.detail


def test_a_stale_newest_sample_with_running_requests_does_not_tell_the_present() -> None:
    table = row(read(info("a", at=NOW - 31), running(1)))
    assert (table.max, table.used, table.free, table.waiting) == (2, None, None, None)
    assert names(table, AdapterState.ACTIVE) == set()


def test_a_sample_of_half_a_minute_tells_the_present() -> None:
    assert row(read(info("a", at=NOW - 29), running(1))).used == 1


def test_an_old_empty_sample_is_right_while_nothing_runs() -> None:
    table = row(read(info("a", at=NOW - 90_001), info("", at=NOW - 90_000), running(0)))
    assert (table.max, table.used, table.free) == (2, 0, 2)


def test_used_above_max_stays_visible_and_free_is_0() -> None:
    table = row(read(info("a,b,c"), running(3)))
    assert (table.max, table.used, table.free) == (2, 3, 0)


def test_counters_are_added_over_engines_and_created_is_no_counter() -> None:
    series = 'vllm:{}{{engine="{}",model_name="m"}} {}'
    table = row(
        read(
            info("a"),
            running(1),
            *(series.format("prompt_tokens_total", engine, 10) for engine in "01"),
            *(series.format("generation_tokens_total", engine, 1.5) for engine in "01"),
            series.format("prompt_tokens_created", 0, NOW),
            series.format("generation_tokens_created", 0, NOW),
        )
    )
    assert (table.prompt_tokens, table.generation_tokens) == (20, 3)


def test_a_name_filter_may_find_nothing_and_then_the_whole_is_asked() -> None:
    (metrics, *_) = VLLM_ENGINE.requests(VLLM_TARGET)
    filtered = (VLLM / "0.32.0/main/00-metrics-name-filter.txt").read_bytes()
    assert metrics.accepts is not None
    assert metrics.fallback is not None
    assert not metrics.accepts(filtered)
    assert metrics.fallback.url == "http://replica-0.test:8000/metrics"
    assert metrics.fallback.key == metrics.key


def test_the_name_filter_asks_the_path_that_filters_for_all_that_is_read() -> None:
    (metrics, *_) = VLLM_ENGINE.requests(VLLM_TARGET)
    assert metrics.url.startswith("http://replica-0.test:8000/metrics/?name[]=")
    for name in WANTED:
        assert f"name[]={name}" in metrics.url


@pytest.mark.parametrize(
    "capture",
    [
        "0.32.0/main/04-traffic.at1.6s",
        "0.10.2.post2/main/04-traffic.at1.6s",
        "0.32.0/data-parallel-2/q2-traffic.at1.1s",
    ],
)
def test_filtered_and_whole_metrics_say_the_same(capture: str) -> None:
    case = vllm_case(capture)
    wanted = tuple(f"{name}{{".encode() for name in WANTED)
    lines = case.answers["metrics"].body.splitlines(keepends=True)
    kept = b"".join(line for line in lines if line.startswith((*wanted, b"# ")))
    filtered = {**case.answers, "metrics": Answer(kept)}
    assert VLLM_ENGINE.read(VLLM_TARGET, filtered, case.now) == case.read()


def test_models_and_version_are_asked_seldom() -> None:
    requests = {request.key: request for request in VLLM_ENGINE.requests(VLLM_TARGET)}
    assert requests["metrics"].max_age == 0
    for key in ("models", "version"):
        assert requests[key].max_age >= 60


def test_a_missing_version_leaves_all_else_known() -> None:
    case = vllm_case("0.10.2.post2/main/04-traffic.at1.6s")
    refused = Answer(status=404, reason=Reason.STATUS)
    reading = VLLM_ENGINE.read(VLLM_TARGET, {**case.answers, "version": refused}, case.now)
    assert row(reading) == replace(row(case.read()), version=None)


@pytest.mark.parametrize("reason", [Reason.CONNECT, Reason.TIMEOUT, Reason.AUTH, Reason.STATUS])
def test_without_metrics_there_is_no_table(reason: Reason) -> None:
    refused = Answer(reason=reason, detail="refused")
    reading = VLLM_ENGINE.read(VLLM_TARGET, {"metrics": refused}, NOW)
    assert reading == Reading(None, reason, "refused")


def test_a_max_lora_that_is_no_number_is_a_matter_of_format() -> None:
    reading = read(info("a", max_lora="two"), running(1))
    assert reading.reason is Reason.FORMAT
    assert row(reading).max is None


def test_metrics_may_come_with_exemplars_and_timestamps() -> None:
    lines = [f"{info('a')} 1796000000000", f'{running(1)} # {{trace_id="x"}} 1.0']
    assert row(read(*lines)).used == 1


@pytest.mark.parametrize(
    ("metrics", "models", "claimed"),
    [
        (b"# HELP x\nvllm:num_requests_running 0\n", None, True),
        (b"", b'{"data": [{"id": "m", "owned_by": "vllm"}]}', True),
        (
            b"process_start_time_seconds 1\n",
            b'{"data": [{"id": "m", "owned_by": "sglang"}]}',
            False,
        ),
        (b"<html>", b"<html>", False),
        (b"not_vllm:x 1\n", b'{"data": 3}', False),
    ],
)
def test_a_replica_is_known_by_its_families_or_its_models(
    metrics: bytes, models: bytes | None, claimed: bool
) -> None:
    assert VLLM_ENGINE.claims(VLLM_TARGET, vllm_answers(metrics, models, None)) is claimed


def test_the_times_of_the_captures_are_those_of_the_bodies() -> None:
    folder = VLLM / "0.32.0" / "main"
    body = (folder / "04-traffic.at1.6s.metrics.txt").read_text()
    values = re.findall(r"^vllm:lora_requests_info\{.*\} (\S+)$", body, flags=re.MULTILINE)
    assert abs(times(folder)["04-traffic.at1.6s.metrics.txt"] - max(map(float, values))) < 1

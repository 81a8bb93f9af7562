"""The traps of vLLM's answers, each by its name. Facts: recorded bodies and released code."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.engines.vllm import WANTED, split_names
from exporter.fleet import AdapterState, Reading, Reason, ReplicaTable, SlotKind, Source, Target
from tests.support.captures import (
    VLLM,
    VLLM_TARGET,
    times,
    vllm_answers,
    vllm_case,
)

VLLM_ENGINE = ENGINES["vllm"]
NOW = 1_796_000_000.0


def info(running: str, waiting: str = "", at: float = NOW, max_lora: str = "2") -> str:
    """A line of vllm:lora_requests_info, escaped as Prometheus's clients escape."""
    labels = ",".join(
        f'{name}="{_escaped(value)}"'
        for name, value in (
            ("max_lora", max_lora),
            ("running_lora_adapters", running),
            ("waiting_lora_adapters", waiting),
        )
    )
    return f"vllm:lora_requests_info{{{labels}}} {at!r}"


def running(requests: float, engine: str = "0") -> str:
    """A line of vllm:num_requests_running."""
    return f'vllm:num_requests_running{{engine="{engine}",model_name="base-model"}} {requests}'


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def models_of(*adapters: str) -> bytes:
    """What /v1/models says with these adapters."""
    rows = [{"id": "base-model", "parent": None, "root": "/secret/weights"}]
    rows += [{"id": name, "parent": "base-model", "root": "/secret/lora"} for name in adapters]
    return json.dumps({"object": "list", "data": rows}).encode()


def read(
    *lines: str,
    models: bytes | None = b'{"data": []}',
    version: str | None = None,
    now: float = NOW,
    target: Target = VLLM_TARGET,
) -> Reading:
    """The reading of an exposition with these lines."""
    metrics = "".join(f"{line}\n" for line in ("# HELP a comment", *lines))
    told = None if version is None else json.dumps({"version": version}).encode()
    return VLLM_ENGINE.read(target, vllm_answers(metrics.encode(), models, told), now)


def row(reading: Reading) -> ReplicaTable:
    """The only replica of a reading."""
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


def names(table: ReplicaTable, state: AdapterState) -> set[str]:
    """Adapters in a state."""
    return {adapter.name for adapter in table.adapters if adapter.state is state}


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


@pytest.mark.parametrize(
    "name",
    [
        "a,b",
        ",",
        'say "hi"',
        "two\nlines",
        "back\\slash",
        "\\n",
        "ends with \\",
        "{brace=}",
        "Grüße-\u4f60\u597d-\U0001f600",
        "x" * 300,
        " blank ",
        "cr\rlf",
        "next\x85line\u2028",
    ],
)
def test_a_name_comes_out_as_it_went_in(name: str) -> None:
    table = row(read(info(f"a,{name}"), running(2), models=models_of("a", name)))
    assert names(table, AdapterState.ACTIVE) == {"a", name}
    assert table.used == 2


def test_a_comma_is_a_separator_unless_a_registered_name_has_it() -> None:
    assert row(read(info("a,b"), running(1), models=models_of("a,b"))).used == 1
    assert row(read(info("a,b"), running(2), models=models_of("a", "b"))).used == 2
    assert row(read(info("a,b"), running(2), models=None)).used == 2


@pytest.mark.parametrize(
    ("joined", "known", "split"),
    [
        ("", set(), []),
        ("", {""}, []),
        ("a", set(), ["a"]),
        ("a,b,c", {"b"}, ["a", "b", "c"]),
        ("a,b,c", {"b,c"}, ["a", "b,c"]),
        ("a,b,c", {"a,b", "c"}, ["a,b", "c"]),
        ("a,b,c", {"a", "a,b", "b,c"}, ["a", "b,c"]),
        ("a,b", {"a", "b", "a,b"}, ["a,b"]),
        ("a,b,a,b", {"a,b"}, ["a,b", "a,b"]),
        ("a,b,c,d", {"a", "b", "d", "c,d", "a,b,c"}, ["a,b,c", "d"]),
        (",", {","}, [","]),
        ("x,,", {","}, ["x", ","]),
    ],
)
def test_names_are_split_into_the_fewest_unknown_then_the_fewest(
    joined: str, known: set[str], split: list[str]
) -> None:
    assert split_names(joined, frozenset(known)) == split


def test_names_of_nothing_but_commas_do_not_hold_up_the_loop() -> None:
    hostile = "," * 2000 + "x"
    assert len(split_names("," * 8000, frozenset({hostile}))) == 8001
    assert len(split_names("a," * 1000 + "a", frozenset({"," * 16}))) == 1001


def test_an_adapter_may_have_the_name_of_the_base_model() -> None:
    table = row(read(info("base-model"), running(1), models=models_of("base-model", "b")))
    assert (table.registered, table.used) == (2, 1)
    assert names(table, AdapterState.ACTIVE) == {"base-model"}
    assert table.model == "base-model"


def test_aliases_of_the_base_model_are_no_adapters() -> None:
    case = vllm_case("0.32.0/no-lora/q0-start")
    table = row(case.read())
    assert b"alias-model" in case.answers["models"].body
    assert (table.registered, table.adapters, table.model) == (0, (), "base-model")


def test_model_rows_of_routers_lack_fields() -> None:
    rows = [
        {"id": "base-model", "root": None},
        {"id": "a", "root": None, "parent": "base-model"},
        {"id": None, "parent": "base-model"},
        {"parent": "base-model"},
        "no row",
    ]
    table = row(read(info(""), running(0), models=json.dumps({"data": rows}).encode()))
    assert (table.registered, names(table, AdapterState.REGISTERED)) == (1, {"a"})


def test_refused_models_leave_the_slots_known() -> None:
    reading = read(info("a,b"), running(2), models=None)
    table = row(reading)
    assert reading.up
    assert (table.max, table.used, table.registered) == (2, 2, None)


def test_a_broken_list_of_models_leaves_the_slots_known() -> None:
    table = row(read(info("a"), running(1), models=b"<html>"))
    assert (table.used, table.registered) == (1, None)


def test_paths_of_weights_are_never_shown() -> None:
    reading = read(info("a"), running(1), models=models_of("a", "b"))
    assert "secret" not in repr(reading)


def test_the_model_is_the_first_served_name_unless_the_group_renames_it() -> None:
    assert row(read(info("a"), running(1))).model == "base-model"
    renamed = replace(VLLM_TARGET, model="base-model@staging")
    assert row(read(info("a"), running(1), target=renamed)).model == "base-model@staging"


def test_the_models_first_alias_names_it_where_the_series_do_not() -> None:
    rows = [{"id": "base-model", "parent": None}, {"id": "alias-model", "parent": None}]
    models = json.dumps({"data": rows}).encode()
    table = row(read(info("a"), "vllm:num_requests_running 1", models=models))
    assert table.model == "base-model"


def test_the_model_is_never_empty() -> None:
    table = row(read(info("a"), "vllm:num_requests_running 1", models=None))
    assert table.model == VLLM_TARGET.group


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


# Builds that tell which adapters are resident.


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


# Detection.


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

"""Names of adapters and models in vLLM's answers, each trap by its name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from exporter.engines.vllm import split_names
from exporter.fleet import AdapterState
from tests.support.captures import (
    VLLM_TARGET,
    vllm_case,
)
from tests.support.vllm_lines import info, models_of, names, read, row, running


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

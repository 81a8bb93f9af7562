"""Twinkle's state store joined with Ray's dashboard, each trap by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.engines.base import Answer
from exporter.fleet import Reason, Source
from tests.support.captures import (
    GATEWAY_TARGET,
    RAY_TARGET,
    application_of,
    peek,
    recorded,
    state_file,
    twinkle_answers,
)
from tests.support.twinkle_rows import (
    NOW,
    TWINKLE,
    listed,
    mock_model,
    model_row,
    ray,
    read_state,
    rows,
    slots,
    total,
)


def test_ghosts_are_left_out_and_counted_apart() -> None:
    entries, dashboard = peek("redis-08-peek-60s-after-kill.txt")
    reading = read_state(entries, dashboard)
    assert reading.table is not None
    # Its maximum and its four adapters.
    assert reading.table.ghosts == 5
    assert set(rows(reading)) == {"v7vbd7sn", "ynz25z4t"}


def test_a_live_replica_that_nobody_asked_yet_is_unknown() -> None:
    entries, dashboard = peek("redis-08-peek-60s-after-kill.txt")
    row = rows(read_state(entries, dashboard))["v7vbd7sn"]
    assert (row.model, slots(row)) == ("mock-model", (None, None, None))
    assert (row.orphans, row.source) == (None, Source.STATE_RAY)


def test_the_operators_max_serves_for_a_live_replica_that_nobody_asked_yet() -> None:
    entries, dashboard = peek("redis-08-peek-60s-after-kill.txt")
    table = rows(read_state(entries, dashboard, target=replace(RAY_TARGET, max=2)))
    assert (slots(table["v7vbd7sn"]), table["v7vbd7sn"].source) == ((2, 0, 2), Source.OPERATOR)
    assert (slots(table["ynz25z4t"]), table["ynz25z4t"].source) == ((2, 2, 0), Source.STATE_RAY)


def test_after_a_crash_all_rows_are_ghosts() -> None:
    entries, dashboard = peek("redis-09-peek-cold-ghosts.txt")
    reading = read_state(entries, dashboard)
    assert reading.table is not None
    assert reading.table.ghosts == 8
    assert {slots(row) for row in rows(reading).values()} == {(None, None, None)}
    assert {row.model for row in rows(reading).values()} == {"mock-model", "mock-b"}


def test_a_replaced_replica_leaves_5_1_4_where_the_total_says_10_4_6() -> None:
    answers = twinkle_answers(
        file=state_file("file-06-state-after-kill.json"),
        ray=recorded("file-06-dashboard-after-kill.http").body,
    )
    reading = TWINKLE.read(RAY_TARGET, answers, NOW)
    assert reading.table is not None
    assert {name: slots(row) for name, row in rows(reading).items()} == {"scgt7cjg": (5, 1, 4)}
    assert reading.table.ghosts == 4
    counted = total(recorded("file-06-capacity-after-kill-and-new-add.http").body)
    assert slots(rows(counted)[None]) == (10, 4, 6)


@pytest.mark.parametrize("state", ["STOPPING", "STARTING"])
def test_a_replica_that_does_not_serve_has_no_slots_and_is_no_ghost(state: str) -> None:
    entries = {"replica::r1::max_loras": b"2", "model::1": model_row("r1")}
    reading = read_state(entries, mock_model(listed("r1", state), listed("r2")))
    assert reading.table is not None
    assert set(rows(reading)) == {"r2"}
    assert reading.table.ghosts == 0


def test_a_stopped_replica_is_a_ghost() -> None:
    reading = read_state({"replica::r1::max_loras": b"2"}, mock_model(listed("r1", "STOPPED")))
    assert reading.table is not None
    assert (rows(reading), reading.table.ghosts) == ({}, 1)


def test_replicas_of_the_gateway_and_of_samplers_have_no_slots() -> None:
    assert set(rows(read_state({}, mock_model(listed("r1"))))) == {"r1"}


def test_the_node_is_told() -> None:
    row = rows(read_state({"replica::r1::max_loras": b"2"}, mock_model(listed("r1"))))["r1"]
    assert row.node == "10.0.0.7"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"applications": []}', b"{}"])
def test_without_a_list_of_applications_the_source_is_the_state_alone(body: bytes) -> None:
    reading = read_state({"replica::r1::max_loras": b"2"}, body)
    assert reading.table is not None
    row = rows(reading)["r1"]
    assert (reading.up, row.source, slots(row)) == (True, Source.STATE, (2, 0, 2))
    # Nobody could tell.
    assert reading.table.ghosts is None


def test_a_dashboard_that_does_not_answer_leaves_the_state() -> None:
    entries = {"replica::r1::max_loras": b"2"}
    answers = dict(twinkle_answers(entries=entries))
    answers["ray"] = Answer(reason=Reason.CONNECT, detail="cannot connect")
    reading = TWINKLE.read(RAY_TARGET, answers, NOW)
    assert (reading.up, rows(reading)["r1"].source) == (True, Source.STATE)


@pytest.mark.parametrize("state", [None, 7, [], {}, "A_NEW_WORD"])
def test_a_replica_in_a_state_that_we_do_not_know_is_not_hidden(state: object) -> None:
    listed_so = {"replica_id": "r1", "state": state}
    reading = read_state({"replica::r1::max_loras": b"2"}, mock_model(listed_so))
    assert slots(rows(reading)["r1"]) == (2, 0, 2)


def test_behind_a_proxy_rays_routes_have_another_prefix() -> None:
    target = replace(RAY_TARGET, url="https://proxy.test/team-a/twinkle/api")
    reading = read_state(
        {"replica::r1::max_loras": b"2"}, mock_model(listed("r1")), target=target, routes=b"{}"
    )
    row = rows(reading)["r1"]
    assert (row.model, row.source, slots(row)) == ("mock-model", Source.STATE_RAY, (2, 0, 2))


def test_a_proxied_prefix_is_kept_in_each_address() -> None:
    target = replace(GATEWAY_TARGET, url="https://proxy.test/team-a/api/v1")
    urls = {request.key: request.url for request in TWINKLE.requests(target)}
    assert urls == {
        "capacity": "https://proxy.test/team-a/api/v1/twinkle/capacity_info",
        "routes": "https://proxy.test/-/routes",
        "capabilities": "https://proxy.test/team-a/api/v1/twinkle/get_server_capabilities",
    }


def test_models_of_a_second_server_on_the_same_ray_are_not_ours() -> None:
    dashboard = ray(
        {
            "ours": application_of("/api/v1/model/one", listed("r1")),
            "theirs": application_of("/other/api/v1/model/two", listed("r2")),
        }
    )
    assert set(rows(read_state({}, dashboard))) == {"r1"}

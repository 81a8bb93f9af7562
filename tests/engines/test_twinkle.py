"""The traps of Twinkle's answers, each by its name. Facts: recorded bodies of 0.5.1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.exposition.fleet import Exposition
from exporter.fleet import AdapterState, Reading, Reason, ReplicaTable, SlotKind, Source, Target
from tests.support.captures import (
    GATEWAY_TARGET,
    RAY_TARGET,
    STATE_TARGET,
    application_of,
    peek,
    recorded,
    redis_dump,
    state_file,
    twinkle_answers,
    twinkle_cases,
)

TWINKLE = ENGINES["twinkle"]
NOW = 1_796_000_000.0


def model_row(replica: str | None, session: str | None = "s1", name: str | None = "a") -> bytes:
    """A row of an adapter that a session holds."""
    document: dict[str, Any] = {
        "token": "tok-secret",
        "replica_id": replica,
        "session_id": session,
        "base_model": "mock-model",
        "user_metadata": {} if name is None else {"adapter_name": name},
    }
    return json.dumps(document).encode()


def session_row(beat: float | None = NOW) -> bytes:
    """A row of a session."""
    return json.dumps({} if beat is None else {"last_heartbeat": beat}).encode()


def ray(applications: Mapping[str, Any]) -> bytes:
    """What Ray's dashboard lists."""
    return json.dumps({"applications": applications}).encode()


def listed(replica: str, state: str = "RUNNING") -> dict[str, Any]:
    """A replica as Ray's dashboard lists it."""
    return {"replica_id": replica, "state": state, "node_ip": "10.0.0.7", "node_id": "n1"}


def mock_model(*replicas: dict[str, Any]) -> bytes:
    """What Ray's dashboard lists of a server of one model."""
    return ray(
        {
            "server": application_of("/api/v1", listed("gateway0")),
            "models-mock-model": application_of("/api/v1/model/mock-model", *replicas),
            "sampler-mock-model": application_of("/api/v1/sampler/mock-model", listed("sampler0")),
        }
    )


def read_state(
    entries: dict[str, bytes],
    dashboard: bytes | None = None,
    *,
    target: Target | None = None,
    routes: bytes | None = None,
) -> Reading:
    """The reading of a store's rows, joined with Ray's dashboard where it is told."""
    answers = dict(twinkle_answers(entries=entries, ray=dashboard))
    if routes is not None:
        answers["routes"] = Answer(routes)
    used = target or (STATE_TARGET if dashboard is None else RAY_TARGET)
    return TWINKLE.read(used, answers, NOW)


def rows(reading: Reading) -> dict[str | None, ReplicaTable]:
    """The replicas of a reading, by id."""
    assert reading.table is not None
    found = {row.replica: row for row in reading.table.replicas}
    assert len(found) == len(reading.table.replicas)
    return found


def slots(row: ReplicaTable) -> tuple[int | None, int | None, int | None]:
    """Max, used and free."""
    return row.max, row.used, row.free


def total(body: bytes, target: Target = GATEWAY_TARGET, routes: bytes | None = None) -> Reading:
    """The reading of the gateway's totals."""
    answers = dict(twinkle_answers(capacity=body))
    if routes is not None:
        answers["routes"] = Answer(routes)
    return TWINKLE.read(target, answers, NOW)


def capacity(limit: object, used: object) -> bytes:
    """What capacity_info says."""
    return json.dumps({"max_loras": limit, "used_loras": used, "free_loras": 0}).encode()


# The gateway's totals.


def test_a_cold_start_says_0_of_0_and_that_is_unknown() -> None:
    reading = total(recorded("redis-07-capacity-cold.http").body)
    assert reading.up
    assert slots(rows(reading)[None]) == (None, None, None)


def test_a_full_gateway_is_full() -> None:
    reading = total(recorded("file-02-capacity-after-add-5.http").body)
    table = rows(reading)[None]
    assert slots(table) == (5, 5, 0)
    assert (table.source, table.slot_kind) == (Source.GATEWAY, SlotKind.EXCLUSIVE)


def test_used_above_max_stays_visible_and_free_is_0() -> None:
    reading = total(recorded("file-02-capacity-after-add-7-over.http").body)
    assert slots(rows(reading)[None]) == (5, 7, 0)


def test_held_slots_without_a_maximum_leave_free_unknown() -> None:
    assert slots(rows(total(capacity(0, 3)))[None]) == (None, 3, None)


def test_the_gateways_model_is_the_one_that_is_served() -> None:
    assert rows(total(capacity(5, 1)))[None].model == "mock-model"


def test_several_models_behind_one_gateway_share_the_groups_name() -> None:
    routes = b'{"/api/v1":"s","/api/v1/model/one":"m1","/api/v1/model/two":"m2"}'
    assert rows(total(capacity(5, 1), routes=routes))[None].model == "training"


def test_the_group_may_rename_the_gateways_model() -> None:
    renamed = replace(GATEWAY_TARGET, model="mock-model@staging")
    assert rows(total(capacity(5, 1), renamed))[None].model == "mock-model@staging"


def test_the_capabilities_name_the_model_where_the_routes_do_not() -> None:
    assert rows(total(capacity(5, 1), routes=b"<html>"))[None].model == "mock-model"


def test_the_gateways_model_is_never_empty() -> None:
    answers = twinkle_answers(capacity=capacity(5, 1), routes=False)
    assert rows(TWINKLE.read(GATEWAY_TARGET, answers, NOW))[None].model == "training"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"<html>",
        capacity("5", 1),
        capacity(5, None),
        capacity(-1, 0),
        capacity(5.5, 1),
        capacity(True, False),
        capacity(10**30, 1),
    ],
)
def test_totals_that_are_no_counts_are_a_matter_of_format(body: bytes) -> None:
    reading = total(body)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)


@pytest.mark.parametrize(
    "name",
    [
        "auth-20-capacity-empty-reqid.http",
        "file-01-capacity-HEAD.http",
        "file-01-tinker-capacity.http",
        "redis-18-capacity-redis-down.http",
        "redis-18-capacity-redis-hung.http",
    ],
)
def test_recorded_refusals_are_no_totals_and_their_bodies_are_not_shown(name: str) -> None:
    answer = recorded(name)
    assert answer.status >= 400
    reading = total(answer.body)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)
    assert "Traceback" not in repr(reading)
    answers = {"capacity": Answer(answer.body, status=answer.status)}
    assert not TWINKLE.claims(GATEWAY_TARGET, answers)


def test_a_gateway_is_known_by_its_totals() -> None:
    (request,) = TWINKLE.detection(GATEWAY_TARGET)
    assert request.url == "http://gateway.test:8000/api/v1/twinkle/capacity_info"
    answers = {request.key: Answer(recorded("redis-07-capacity-cold.http").body)}
    assert TWINKLE.claims(GATEWAY_TARGET, answers)


@pytest.mark.parametrize("reason", [Reason.CONNECT, Reason.TIMEOUT, Reason.STATUS])
def test_a_gateway_that_does_not_answer_gives_no_table(reason: Reason) -> None:
    refused = Answer(reason=reason, detail="refused")
    assert TWINKLE.read(GATEWAY_TARGET, {"capacity": refused}, NOW) == Reading(
        None, reason, "refused"
    )


# The state store.


def test_each_replicas_own_free_is_told_where_the_total_gets_it_wrong() -> None:
    table = rows(
        read_state(
            {
                "replica::r1::max_loras": b"2",
                "replica::r2::max_loras": b"2",
                "session::s1": session_row(),
                **{f"model::s1-{n}": model_row("r1", name=str(n)) for n in range(3)},
            }
        )
    )
    assert slots(table["r1"]) == (2, 3, 0)
    assert slots(table["r2"]) == (2, 0, 2)
    assert {row.source for row in table.values()} == {Source.STATE}
    assert {row.slot_kind for row in table.values()} == {SlotKind.EXCLUSIVE}


def test_a_model_row_without_a_replica_holds_no_slot() -> None:
    table = rows(
        read_state(
            {
                "replica::r1::max_loras": b"2",
                "session::s1": session_row(),
                "model::s1-a": model_row("r1"),
                "model::s1-b": model_row(None, name="b"),
                "model::s1-c": b"{}",
            }
        )
    )
    assert set(table) == {"r1"}
    assert (table["r1"].used, table["r1"].orphans) == (1, 0)


@pytest.mark.parametrize("value", [b"not json", b"[]", b"null", b"", b'"text"', b"\xff"])
def test_a_row_that_cannot_be_read_fails_the_poll(value: bytes) -> None:
    """It might hold a slot: leaving it out would tell too much free."""
    reading = read_state(
        {
            "replica::r1::max_loras": b"2",
            "model::s1-a": model_row("r1"),
            "model::session_secret-b": value,
        }
    )
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)
    assert "session_secret" not in reading.detail


@pytest.mark.parametrize("value", [b'"5"', b"-5", b"5.5", b"true", b"{}", b"x", b"1e400"])
def test_a_maximum_that_is_no_count_is_unknown(value: bytes) -> None:
    reading = read_state({"replica::r1::max_loras": value, "model::s1-a": model_row("r1")})
    assert slots(rows(reading)["r1"]) == (None, 1, None)


def test_orphans_are_rows_whose_session_is_missing_or_null() -> None:
    reading = read_state(
        {
            "replica::r1::max_loras": b"9",
            "session::alive": session_row(),
            "session::null": b"null",
            "session::broken": b"x",
            "model::1": model_row("r1", "alive", "a"),
            "model::2": model_row("r1", "missing", "b"),
            "model::3": model_row("r1", "null", "c"),
            "model::4": model_row("r1", None, "d"),
            "model::5": model_row("r1", "broken", "e"),
        }
    )
    row = rows(reading)["r1"]
    # Orphans still hold their slots.
    assert (row.used, row.orphans) == (5, 4)


@pytest.mark.parametrize(
    ("expire_at", "orphans"), [(None, 0), (NOW + 1, 0), (NOW, 1), (NOW - 1, 1)]
)
def test_orphans_are_rows_whose_session_expired_in_the_file(
    expire_at: float | None, orphans: int
) -> None:
    file = {
        "replica::r1::max_loras": {"value": 5, "expire_at": None},
        "session::s1": {"value": {"last_heartbeat": NOW - 9}, "expire_at": expire_at},
        "model::s1-a": {"value": json.loads(model_row("r1")), "expire_at": None},
    }
    answers = twinkle_answers(file=json.dumps(file).encode())
    row = rows(TWINKLE.read(STATE_TARGET, answers, NOW))["r1"]
    assert (row.used, row.orphans) == (1, orphans)
    assert row.oldest_heartbeat == (None if orphans else NOW - 9)


def test_the_oldest_heartbeat_is_that_of_a_holder() -> None:
    row = rows(
        read_state(
            {
                "replica::r1::max_loras": b"5",
                "session::s1": session_row(NOW - 10),
                "session::s2": session_row(NOW - 20),
                "session::holds-nothing": session_row(NOW - 500),
                "session::elsewhere": session_row(NOW - 600),
                "session::mute": session_row(None),
                "model::1": model_row("r1", "s1", "a"),
                "model::2": model_row("r1", "s2", "b"),
                "model::3": model_row("r2", "elsewhere", "c"),
                "model::4": model_row("r1", "mute", "d"),
            }
        )
    )["r1"]
    assert row.oldest_heartbeat == NOW - 20


def test_the_largest_holder_is_counted_and_not_named() -> None:
    reading = read_state(
        {
            "replica::r1::max_loras": b"5",
            "session::big": session_row(),
            "session::small": session_row(),
            **{f"model::{n}": model_row("r1", "big", str(n)) for n in range(3)},
            "model::x": model_row("r1", "small", "x"),
        }
    )
    assert rows(reading)["r1"].largest_holder == 3
    assert "big" not in repr(reading)


def test_nobody_holds_where_nothing_is_held() -> None:
    row = rows(read_state({"replica::r1::max_loras": b"5"}))["r1"]
    assert (row.used, row.orphans) == (0, 0)
    assert (row.oldest_heartbeat, row.largest_holder) == (None, None)


def test_two_sessions_may_use_one_adapter_name() -> None:
    row = rows(
        read_state(
            {
                "replica::r1::max_loras": b"5",
                "session::s1": session_row(),
                "session::s2": session_row(),
                "model::s1-same": model_row("r1", "s1", "same"),
                "model::s2-same": model_row("r1", "s2", "same"),
            }
        )
    )["r1"]
    assert row.used == 2
    assert row.adapters == (("same", AdapterState.ACTIVE),)


def test_an_adapter_without_a_name_holds_a_slot() -> None:
    row = rows(
        read_state({"replica::r1::max_loras": b"5", "model::1": model_row("r1", name=None)})
    )["r1"]
    assert (row.used, row.adapters) == (1, ())


def test_keys_of_other_kinds_are_no_rows() -> None:
    reading = read_state(
        {
            "replica::r1::max_loras": b"5",
            "replica::r1::other": b"9",
            "modelx::1": b"x",
            "token_count::tok-secret": b"7",
        }
    )
    assert slots(rows(reading)["r1"]) == (5, 0, 5)


def test_an_empty_store_has_no_replicas() -> None:
    reading = read_state({})
    assert (reading.up, rows(reading)) == (True, {})


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"model::1": 3}', b"{", b"\x00"])
def test_a_file_that_is_no_state_is_a_matter_of_format(body: bytes) -> None:
    reading = TWINKLE.read(STATE_TARGET, twinkle_answers(file=body), NOW)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)


def test_a_store_that_cannot_be_read_gives_no_table() -> None:
    refused = Answer(reason=Reason.CONNECT, detail="state store: cannot connect")
    answers = {**twinkle_answers(), "state": refused}
    assert TWINKLE.read(STATE_TARGET, answers, NOW) == Reading(
        None, Reason.CONNECT, "state store: cannot connect"
    )


def test_a_gateway_that_is_down_fails_the_poll_though_the_store_is_up() -> None:
    """Rows outlive the server for ever."""
    refused = Answer(reason=Reason.CONNECT, detail="cannot connect")
    answers = {**twinkle_answers(entries=redis_dump()), "health": refused}
    assert TWINKLE.read(STATE_TARGET, answers, NOW).table is None


def test_keys_that_carry_tokens_are_never_asked_for() -> None:
    (state,) = (one for one in TWINKLE.requests(STATE_TARGET) if one.key == "state")
    assert set(state.patterns) == {"replica::*::max_loras", "model::*", "session::*"}
    assert state.confidential
    assert not state.credentials


# The names of models.


def test_the_group_may_rename_the_only_model() -> None:
    renamed = replace(STATE_TARGET, model="mock-model@staging")
    reading = read_state({"replica::r1::max_loras": b"5"}, target=renamed)
    assert rows(reading)["r1"].model == "mock-model@staging"


def test_several_models_behind_one_gateway_keep_their_own_names() -> None:
    dashboard = ray(
        {
            "a": application_of("/api/v1/model/org/one", listed("r1")),
            "b": application_of("/api/v1/model/two", listed("r2")),
        }
    )
    entries = {"replica::r1::max_loras": b"5", "replica::r2::max_loras": b"3"}
    for target in (RAY_TARGET, replace(RAY_TARGET, model="renamed")):
        table = rows(read_state(entries, dashboard, target=target))
        assert {name: (row.model, row.max) for name, row in table.items()} == {
            "r1": ("org/one", 5),
            "r2": ("two", 3),
        }


def test_two_spellings_of_a_base_model_are_one_model() -> None:
    routes = b'{"/api/v1/model/Qwen3-8B":"a","/api/v1/model/other":"b"}'
    spelled = model_row("r1").replace(b"mock-model", b"Qwen/Qwen3-8B")
    short = model_row("r2").replace(b"mock-model", b"Qwen3-8B")
    reading = read_state({"model::1": spelled, "model::2": short}, routes=routes)
    assert {row.model for row in rows(reading).values()} == {"Qwen3-8B"}


def test_the_replicas_application_outranks_the_rows_spelling() -> None:
    dashboard = ray({"m": application_of("/api/v1/model/Qwen3-8B", listed("r1"))})
    entries = {"model::1": model_row("r1").replace(b"mock-model", b"Qwen/Qwen3-8B")}
    assert rows(read_state(entries, dashboard))["r1"].model == "Qwen3-8B"


def test_a_replica_of_an_unknown_model_has_the_groups_name() -> None:
    routes = b'{"/api/v1/model/one":"a","/api/v1/model/two":"b"}'
    reading = read_state({"replica::r1::max_loras": b"5"}, routes=routes)
    assert rows(reading)["r1"].model == "training"


# Joined with Ray's dashboard.


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


# What must not leave.


def test_secrets_are_neither_in_a_reading_nor_in_its_text() -> None:
    secrets = [
        "fake-token",
        "tok-A",
        "tok-B",
        "tok-secret",
        "session_",
        "hunter2",
        "redis:",
        "store.test",
        "26380",
        "Traceback",
    ]
    told = 0
    for case in twinkle_cases():
        exposition = Exposition(100)
        exposition.update(case.status())
        shown = repr(case.read()) + exposition.join(openmetrics=False).decode()
        sent = b"".join(
            answer.body + b"".join((*map(str.encode, answer.entries or ()), *_values(answer)))
            for answer in case.answers.values()
        )
        for secret in secrets:
            told += secret.encode() in sent
            assert secret not in shown
    assert told > 20


def _values(answer: Answer) -> list[bytes]:
    return [] if answer.entries is None else list(answer.entries.values())

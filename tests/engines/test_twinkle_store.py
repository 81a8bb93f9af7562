"""The traps of Twinkle's state store, each by its name. Facts: recorded from 0.5.1."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from exporter.engines.base import Answer
from exporter.exposition.fleet import Exposition
from exporter.fleet import AdapterState, Reading, Reason, SlotKind, Source
from tests.support.captures import (
    RAY_TARGET,
    STATE_TARGET,
    application_of,
    redis_dump,
    twinkle_answers,
    twinkle_cases,
)
from tests.support.twinkle_rows import (
    NOW,
    TWINKLE,
    listed,
    model_row,
    ray,
    read_state,
    rows,
    session_row,
    slots,
)


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

"""The traps of the totals of Twinkle's gateway, each by its name. Facts: recorded from 0.5.1."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.engines.base import Answer
from exporter.fleet import Reading, Reason, SlotKind, Source
from tests.support.captures import (
    GATEWAY_TARGET,
    recorded,
    twinkle_answers,
)
from tests.support.twinkle_rows import (
    NOW,
    TWINKLE,
    capacity,
    rows,
    slots,
    total,
)


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

"""The traps of SGLang's answers, each by its name. Facts: its serialisers and released source."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer, Answers
from exporter.engines.sglang import Info, read_info
from exporter.fleet import Reading, Reason, ReplicaTable, SlotKind, Source, Target
from tests.support.captures import folder_case

SGLANG = ENGINES["sglang"]
TARGET = Target("http://replica-0.test:30000", "serving", "sglang")
REFUSED = Answer(status=404, reason=Reason.STATUS, detail="HTTP 404")


def series(
    running: float | None = 3,
    used: float | None = 2,
    total: float | None = 4,
    *,
    dp: str | None = None,
    tp: int = 0,
    pp: int = 0,
) -> str:
    """The gauges of one rank."""
    labels = f'model_name="base-model",tp_rank="{tp}",pp_rank="{pp}"'
    if dp is not None:
        labels += f',dp_rank="{dp}"'
    gauges = {
        "num_running_reqs": running,
        "num_queue_reqs": 1.0,
        "lora_pool_slots_used": used,
        "lora_pool_slots_total": total,
    }
    return "".join(
        f"sglang:{name}{{{labels}}} {value}\n"
        for name, value in gauges.items()
        if value is not None
    )


def loads(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"version": "0.5.23", "loads": rows}).encode()


def load(rank: int = 0, running: int = 3, lora: object = None) -> dict[str, Any]:
    return {"dp_rank": rank, "num_running_reqs": running, "num_waiting_reqs": 1, "lora": lora}


def pool(used: int, total: int = 4) -> dict[str, int]:
    return {"slots_used": used, "slots_total": total}


def info(**told: object) -> bytes:
    """What /server_info says of the settings."""
    return json.dumps({"max_loras_per_batch": 4, "enable_lora": True, **told}).encode()


def read(
    metrics: str | None = None,
    told: bytes | None = None,
    server: bytes | None = None,
    target: Target = TARGET,
) -> Reading:
    bodies = {"metrics": None if metrics is None else metrics.encode(), "loads": told}
    answers: Answers = {
        key: REFUSED if body is None else Answer(body)
        for key, body in (bodies | {"info": server}).items()
    }
    return SGLANG.read(target, answers, 0.0)


def row(reading: Reading) -> ReplicaTable:
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


def slots(reading: Reading) -> tuple[int | None, int | None, int | None]:
    table = row(reading)
    return table.max, table.used, table.free


def test_slots_are_evictable_and_the_source_is_activity() -> None:
    table = row(folder_case("sglang/0.5.23/traffic").read())
    assert (table.slot_kind, table.source) == (SlotKind.EVICTABLE, Source.ACTIVITY)
    assert (table.max, table.used, table.free, table.registered) == (4, 3, 1, 5)
    assert table.resident is None
    assert table.waiting is None


def test_tensor_and_pipeline_ranks_repeat_one_pool() -> None:
    body = series(tp=0) + series(tp=1) + series(tp=0, pp=1) + series(used=3, tp=1, pp=1)
    assert slots(read(body)) == (4, 3, 1)


def test_each_data_parallel_rank_has_a_pool_of_its_own() -> None:
    body = series(used=2, dp="0") + series(used=4, dp="1") + series(used=4, dp="1", tp=1)
    assert slots(read(body)) == (8, 6, 2)
    assert row(read(body)).requests_running == 6


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_lines_and_loads_gives_the_same_table(seed: int) -> None:
    order = random.Random(seed)  # noqa: S311 - to shuffle, not to hide
    body = series(used=2, dp="0") + series(used=4, dp="1") + series(used=4, dp="1", tp=1)
    lines = body.splitlines(keepends=True)
    order.shuffle(lines)
    rows = [load(0, 3, pool(2)), load(1, 2)]
    order.shuffle(rows)
    assert read("".join(lines)) == read(body)
    assert slots(read("".join(lines), loads(*rows))) == (8, 6, 2)


def test_the_gauges_are_stale_when_idle() -> None:
    assert slots(read(series(running=0, used=4))) == (4, 0, 4)
    # Each rank for itself.
    body = series(running=0, used=4, dp="0") + series(running=1, used=1, dp="1")
    assert slots(read(body)) == (8, 1, 7)


def test_an_idle_load_is_stale_too() -> None:
    assert slots(read(told=loads(load(running=0, lora=pool(3))))) == (4, 0, 4)


def test_the_base_models_slot_is_counted_where_the_operator_says_so() -> None:
    target = replace(TARGET, base_uses_slot=True)
    reading = read(series(running=3, used=2), target=target)
    assert slots(reading) == (4, 3, 1)
    assert row(reading).source is Source.ACTIVITY_UPPER_BOUND
    assert slots(read(series(running=3, used=2))) == (4, 2, 2)


@pytest.mark.parametrize(
    ("running", "used", "counted"),
    [
        (2, 2, 2),  # as many requests as adapters: none is left for the base model
        (9, 4, 4),  # no room for it
        (0, 4, 0),  # nothing runs
    ],
)
def test_the_base_models_slot_is_not_counted_where_it_cannot_be(
    running: int, used: int, counted: int
) -> None:
    target = replace(TARGET, base_uses_slot=True)
    reading = read(series(running=running, used=used), target=target)
    assert row(reading).used == counted
    assert row(reading).source is Source.ACTIVITY


def test_over_admission_stays_visible_and_free_is_0() -> None:
    assert slots(folder_case("sglang/made/0.5.7-over-admitted").read()) == (8, 9, 0)


@pytest.mark.parametrize("lora", [None, {}, "missing"])
def test_versions_that_forgot_lora_in_loads_are_read_from_metrics(lora: object) -> None:
    told = load(running=3, lora=lora)
    if lora == "missing":
        del told["lora"]
    assert slots(read(series(), loads(told))) == (4, 2, 2)
    # Without metrics too, unknown and not 0.
    assert slots(read(None, loads(told), info())) == (4, None, None)


def test_loads_tell_slots_where_metrics_are_off() -> None:
    reading = folder_case("sglang/0.5.23/no-lora").read()
    assert reading.reason is Reason.NO_LORA
    reading = read(None, loads(load(lora=pool(3)), load(rank=1, lora=pool(1))))
    assert slots(reading) == (8, 4, 4)
    assert row(reading).prompt_tokens is None


def test_ranks_of_loads_and_metrics_are_joined_by_name() -> None:
    body = series(used=1, dp="0") + series(used=4, dp="1")
    reading = read(body, loads(load(0, 3, pool(2)), load(1, 2)))
    assert slots(reading) == (8, 6, 2)
    # What runs is told by loads, which are counted anew and not kept.
    assert row(reading).requests_running == 5


def test_without_lora_slots_are_not_told() -> None:
    reading = read(series(used=None, total=None), None, info(enable_lora=None))
    assert reading.reason is Reason.NO_LORA
    assert slots(reading) == (None, None, None)
    assert row(reading).requests_running == 3


def test_whether_lora_is_on_is_unknown_without_the_settings() -> None:
    reading = read(series(used=None, total=None))
    assert reading.up
    assert slots(reading) == (None, None, None)
    assert "used is unknown" in reading.detail


def test_versions_without_a_pool_tell_max_and_nothing_of_used() -> None:
    reading = folder_case("sglang/made/0.5.4-no-pool").read()
    assert slots(reading) == (4, None, None)
    # Rows of that version have no parent, so adapters cannot be told from aliases.
    assert row(reading).registered is None


def test_a_pool_of_0_was_not_counted_yet() -> None:
    assert slots(read(series(running=0, used=0, total=0), None, info())) == (4, 0, 4)
    assert slots(read(series(running=0, used=0, total=0))) == (None, 0, None)


def test_the_operators_max_serves_where_sglang_tells_none() -> None:
    target = replace(TARGET, max=6)
    assert slots(read(series(running=0, used=0, total=0), target=target)) == (6, 0, 6)
    assert slots(read(series(), target=target)) == (4, 2, 2)


def test_the_settings_max_is_that_of_each_rank() -> None:
    body = series(running=0, used=None, total=None, dp="0")
    body += series(running=0, used=None, total=None, dp="1")
    assert slots(read(body, None, info(dp_size=2))) == (8, 0, 8)


def test_ranks_that_are_not_told_leave_used_unknown() -> None:
    reading = read(series(dp="0"), None, info(dp_size=2))
    assert slots(reading) == (8, None, None)
    assert "1 of 2 data-parallel ranks" in reading.detail


def test_tokens_are_added_whether_they_were_streamed_or_not() -> None:
    table = row(folder_case("sglang/made/0.5.23-ranks").read())
    assert (table.prompt_tokens, table.generation_tokens) == (1500, 1000)


def test_a_key_leaves_the_slots_known() -> None:
    reading = folder_case("sglang/made/0.5.23-ranks").read()
    assert reading.up
    assert slots(reading) == (8, 3, 5)
    assert row(reading).registered is None


def test_the_servers_keys_and_paths_are_forgotten() -> None:
    body = info(version="0.5.23", api_key="hunter2", model_path="/secret", dp_size=2)
    assert read_info(body) == Info("0.5.23", None, True, 4, 2)
    case = folder_case("sglang/0.5.23/traffic")
    assert b"fake-key" in case.answers["info"].body
    assert "fake-key" not in repr(case.read())
    (asked,) = (request for request in SGLANG.requests(TARGET) if request.key == "info")
    assert asked.confidential
    assert asked.parse is read_info


def test_older_versions_have_another_address_for_the_settings() -> None:
    (asked,) = (request for request in SGLANG.requests(TARGET) if request.key == "info")
    assert asked.url.endswith("/server_info")
    assert asked.fallback is not None
    assert asked.fallback.url.endswith("/get_server_info")
    assert asked.accepts is not None
    assert asked.accepts(info())
    assert not asked.accepts(b"<html>")


def test_the_served_name_names_the_model_where_the_series_do_not() -> None:
    told = loads(load(lora=pool(1)))
    assert row(read(None, told, info(served_model_name="m"))).model == "m"
    assert row(read(None, told)).model == TARGET.group


@pytest.mark.parametrize("reason", [Reason.CONNECT, Reason.TIMEOUT, Reason.AUTH])
def test_without_metrics_and_loads_there_is_no_table(reason: Reason) -> None:
    refused = Answer(reason=reason, detail="refused")
    reading = SGLANG.read(TARGET, {"metrics": refused, "loads": refused}, 0.0)
    assert reading == Reading(None, reason, "refused")


def test_another_servers_series_are_no_statistics() -> None:
    reading = read("vllm:num_requests_running 1\n")
    assert (reading.table, reading.reason) == (None, Reason.NO_STATS)

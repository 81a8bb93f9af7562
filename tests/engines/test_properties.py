"""What holds for the readers whatever a target sends."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exporter.engines import ENGINES
from exporter.engines.base import Answer, Answers
from exporter.engines.vllm import WANTED, split_names
from exporter.fleet import Adapter, AdapterState, Reading, Target
from tests.support.captures import (
    GATEWAY_TARGET,
    RAY_TARGET,
    STATE_TARGET,
    VLLM_TARGET,
    Case,
    application_of,
    recorded,
    redis_dump,
    state_file,
    twinkle_answers,
    twinkle_cases,
    vllm_answers,
    vllm_case,
    vllm_cases,
)
from tests.support.hostile import (
    answers_with,
    any_json,
    check,
    deterministic,
    mutated,
    mutated_json,
)

VLLM_ENGINE = ENGINES["vllm"]
TWINKLE = ENGINES["twinkle"]
NOW = 1_796_076_400.0

CAPTURED = [
    "0.8.5.post2/main/12-traffic8.at1.1s",
    "0.10.2.post2/main/12-traffic8.at1.0s",
    "0.32.0/main/12-traffic8.at1.1s",
    "0.32.0/data-parallel-2/x-traffic-6adapters.at5.1s",
    "0.32.0/api-server-count-2/q3-after",
    "0.32.0/no-lora/q3-after",
    "0.32.0/disable-log-stats/q3-after",
]
RESIDENCY = b"""# HELP vllm:lora_adapter_loaded whether it is
vllm:lora_adapter_loaded{engine="0",adapter_name="a",level="gpu",pinned="true"} 1
vllm:lora_adapter_loaded{engine="1",adapter_name="b",level="cpu",pinned="false",rank="0"} 1
vllm:num_gpu_loaded_lora_adapters{engine="0"} 1
vllm:max_gpu_lora_adapters{engine="0"} 2
vllm:lora_requests_info{max_lora="2",running_lora_adapters="a",waiting_lora_adapters="b"} 1796076400
vllm:num_requests_running{engine="0",model_name="m"} 1
vllm:num_requests_running{engine="1",model_name="m"} 2
"""

targets_of_twinkle = st.sampled_from([GATEWAY_TARGET, STATE_TARGET, RAY_TARGET]).flatmap(
    lambda target: st.builds(
        replace,
        st.just(target),
        max=st.none() | st.integers(0, 9),
        model=st.none() | st.just("renamed"),
    )
)


@cache
def short(capture: str) -> bytes:
    """A recorded exposition without its histograms, so that mutations hit what is read."""
    body = vllm_case(capture).answers["metrics"].body
    return b"".join(
        line
        for line in body.splitlines(keepends=True)
        if line.startswith((b"vllm:lora", b"vllm:num_requests", b"vllm:prompt_tokens_total", b"#"))
    )


bodies_of_metrics = st.sampled_from([*(short(name) for name in CAPTURED), RESIDENCY])


@deterministic
@given(
    answers_with(
        {
            "metrics": st.binary(max_size=200) | mutated(bodies_of_metrics),
            "models": st.binary(max_size=50)
            | mutated_json(
                st.just(vllm_case("0.27.1/main/12-traffic8.at1.1s").answers["models"].body)
            ),
            "version": st.binary(max_size=50)
            | mutated_json(st.sampled_from([b'{"version": "0.10.2"}', b'{"version": "0.32.0"}'])),
        }
    ),
    st.sampled_from([VLLM_TARGET, replace(VLLM_TARGET, max=4), replace(VLLM_TARGET, model="x")]),
    st.floats(0, 2e10),
)
def test_the_reader_of_vllm_never_raises(answers: Answers, target: Target, now: float) -> None:
    reading = VLLM_ENGINE.read(target, answers, now)
    check(reading)
    assert isinstance(VLLM_ENGINE.claims(target, answers), bool)


@st.composite
def lines_of_samples(draw: st.DrawFn) -> bytes:
    """An exposition of what is read, with labels and values of any kind."""
    labels = st.fixed_dictionaries(
        {},
        optional={
            "engine": st.sampled_from(["0", "1", ""]),
            "model_name": st.sampled_from(["m", ""]),
            "max_lora": st.sampled_from(["0", "2", "-1", "x", "\u0664", "999999999"]),
            "running_lora_adapters": st.text("ab,", max_size=5),
            "waiting_lora_adapters": st.text("ab,", max_size=5),
            "adapter_name": st.sampled_from(["a", "b", ""]),
            "level": st.sampled_from(["gpu", "cpu", "disk"]),
            "pinned": st.sampled_from(["true", "false"]),
            "reason": st.sampled_from(["deferred", "capacity"]),
        },
    )
    values = st.sampled_from(
        ["0", "1", "2.0", "1796076400", "1796076300", "3.6e9", "-1", "0.5", "1e308", "1e400"]
    ) | st.sampled_from(["-1e308", "NaN", "+Inf", "-Inf", "x", "", "1_0", "9" * 99])
    lines = ["# HELP a comment"]
    for name in draw(st.lists(st.sampled_from(WANTED), max_size=9)):
        told = ",".join(f'{key}="{value}"' for key, value in draw(labels).items())
        lines.append(f"{name}{{{told}}} {draw(values)}")
    return "\n".join(lines).encode()


@settings(deterministic, max_examples=1000)
@given(lines_of_samples(), st.sampled_from([None, 0, 4]))
def test_samples_of_any_kind_give_counts_that_can_be(body: bytes, limit: int | None) -> None:
    target = replace(VLLM_TARGET, max=limit)
    check(VLLM_ENGINE.read(target, vllm_answers(body, None, None), NOW))


states = (
    mutated_json(st.sampled_from([state_file("file-06-state-after-kill.json")]))
    | mutated(st.just(state_file("file-02-state-over.json")))
    | st.binary(max_size=50)
)
dashboard_of_one = json.dumps(
    {
        "applications": {
            "m": application_of(
                "/api/v1/model/mock-model",
                {"replica_id": "z12xnd4s", "state": "RUNNING", "node_ip": "10.0.0.1"},
            )
        }
    }
).encode()
dashboards = (
    mutated_json(st.just(dashboard_of_one))
    | mutated_json(st.just(recorded("file-06-dashboard-after-kill.http").body))
    | mutated(st.just(recorded("file-06-dashboard-after-kill.http").body))
    | st.binary(max_size=50)
)
lists_of_names = mutated_json(
    st.sampled_from(
        [
            recorded("file-01-serve-routes.http").body,
            recorded("file-01-capabilities.http").body,
        ]
    )
) | st.binary(max_size=50)


@deterministic
@given(
    answers_with(
        {
            "capacity": mutated_json(st.just(recorded("file-02-capacity-after-add-5.http").body))
            | st.binary(max_size=50),
            "health": st.binary(max_size=9),
            "state": states,
            "ray": dashboards,
            "routes": lists_of_names,
            "capabilities": lists_of_names,
        }
    ),
    targets_of_twinkle,
    st.floats(0, 2e10),
)
def test_the_reader_of_twinkle_never_raises(answers: Answers, target: Target, now: float) -> None:
    reading = TWINKLE.read(target, answers, now)
    check(reading)
    assert isinstance(TWINKLE.claims(target, answers), bool)


@st.composite
def rows_of_a_store(draw: st.DrawFn) -> dict[str, bytes]:
    """Rows of a Redis, some of them as they should be."""
    entries = redis_dump()
    value = st.binary(max_size=20) | any_json.map(lambda document: json.dumps(document).encode())
    value |= mutated_json(st.sampled_from(list(entries.values())))
    key = st.sampled_from(
        [*entries, "model::x", "replica::r1::max_loras", "session::s1"]
    ) | st.text(max_size=9)
    for name, told in draw(st.dictionaries(key, value, max_size=4)).items():
        entries[name] = told
    return entries


@deterministic
@given(rows_of_a_store(), dashboards, targets_of_twinkle)
def test_rows_of_any_kind_never_raise(
    entries: dict[str, bytes], dashboard: bytes, target: Target
) -> None:
    check(TWINKLE.read(target, twinkle_answers(entries=entries, ray=dashboard), NOW))


@settings(deterministic, max_examples=600)
@given(mutated_json(st.just(dashboard_of_one)))
def test_a_dashboard_of_any_shape_never_raises(dashboard: bytes) -> None:
    entries = {"replica::z12xnd4s::max_loras": b"2"}
    reading = TWINKLE.read(RAY_TARGET, twinkle_answers(entries=entries, ray=dashboard), NOW)
    check(reading)
    # Whatever the dashboard says, the store could be read.
    assert reading.up


@pytest.mark.parametrize("capture", CAPTURED)
@settings(deterministic, max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_any_order_of_the_lines_gives_the_same_table(capture: str, seed: int) -> None:
    case = vllm_case(capture)
    lines = short(capture).splitlines(keepends=True)
    samples = [line for line in lines if not line.startswith(b"#")]
    comments = [line for line in lines if line.startswith(b"#")]
    random.Random(seed).shuffle(samples)  # noqa: S311 - to shuffle, not to hide

    def read(body: bytes) -> Reading:
        return VLLM_ENGINE.read(VLLM_TARGET, {**case.answers, "metrics": Answer(body)}, case.now)

    assert read(b"".join(comments + samples)) == read(b"".join(comments) + b"".join(lines))


@deterministic
@given(st.randoms(use_true_random=False))
def test_any_order_of_a_stores_rows_gives_the_same_table(order: random.Random) -> None:
    case = next(case for case in twinkle_cases() if case.path.endswith("state/redis-22-full-dump"))
    entries = list(redis_dump().items())
    order.shuffle(entries)
    answers = {**case.answers, "state": Answer(entries=dict(entries))}
    assert TWINKLE.read(case.target, answers, case.now) == case.read()


names_of_adapters = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@deterministic
@given(st.sets(names_of_adapters, min_size=1, max_size=6))
def test_registered_names_come_out_as_they_went_in(known: set[str]) -> None:
    # Where names join to other names' texts, nobody could tell.
    joined = ",".join(sorted(known))
    assume(split_names(joined, frozenset(known)) == sorted(known))
    escaped = joined.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    metrics = (
        f'vllm:lora_requests_info{{max_lora="9",running_lora_adapters="{escaped}",'
        f'waiting_lora_adapters=""}} {NOW}\nvllm:num_requests_running{{engine="0"}} 1\n'
    )
    rows = [{"id": name, "parent": "base"} for name in known]
    answers = vllm_answers(metrics.encode(), json.dumps({"data": rows}).encode(), None)
    reading = VLLM_ENGINE.read(VLLM_TARGET, answers, NOW)
    assert reading.table is not None
    (row,) = reading.table.replicas
    assert row.used == len(known)
    assert set(row.adapters) == {Adapter(name, AdapterState.ACTIVE) for name in known}


@deterministic
@given(st.text("ab,", max_size=12), st.sets(st.text("ab,", max_size=5), max_size=5))
def test_split_names_join_to_what_they_were(joined: str, known: set[str]) -> None:
    split = split_names(joined, frozenset(known))
    assert ",".join(split) == joined
    # No other way to split has fewer unknown names, and of those as few, fewer names.
    best = min(
        (sum(name not in known for name in way), len(way))
        for way in _ways(joined.split(","), known)
    )
    if joined:
        assert (sum(name not in known for name in split), len(split)) == best


def _ways(parts: list[str], known: set[str]) -> list[list[str]]:
    """Each way to join neighbours to known names, single parts may be unknown."""
    if not parts:
        return [[]]
    found = []
    for size in range(1, len(parts) + 1):
        name = ",".join(parts[:size])
        if size == 1 or name in known:
            found += [[name, *rest] for rest in _ways(parts[size:], known)]
    return found


@pytest.mark.parametrize("case", [*vllm_cases(), *twinkle_cases()], ids=lambda case: str(case.path))
def test_recorded_bodies_hold_to_the_same(case: Case) -> None:
    check(case.read())

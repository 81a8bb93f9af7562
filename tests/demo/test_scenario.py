"""The story: who runs out of slots, when, and that it goes on for ever."""

from __future__ import annotations

from itertools import pairwise

import pytest

from exporter.demo.cast import LLAMA31_0, QWEN3_0, QWEN3_1, TRAINING, VLLM_REPLICAS
from exporter.demo.course import Segment, Shift, make_course
from exporter.demo.scenario import PERIOD, ServingReplica, TwinkleMoment

SECONDS = [n / 2 for n in range(int(4 * PERIOD))]
"""Two periods, each half second."""


def free(replica: ServingReplica, seconds: float) -> int:
    return replica.slots - len(replica.at(seconds).running)


def test_llama_runs_out_of_slots_within_two_minutes_and_recovers() -> None:
    full = [t for t in SECONDS if t < PERIOD and free(LLAMA31_0, t) == 0]
    assert (full[0], full[-1]) == (38, 109.5)
    assert all(LLAMA31_0.at(t).waiting for t in SECONDS if 42 <= t < 105)
    assert all(free(LLAMA31_0, t) > 0 for t in SECONDS if 110 <= t < PERIOD)
    assert not any(LLAMA31_0.at(t).waiting for t in SECONDS if 105 <= t < PERIOD)
    assert len(LLAMA31_0.at(90).waiting) == 3


def test_llama_has_idle_times() -> None:
    idle = LLAMA31_0.at(220)
    assert idle.running == idle.waiting == ()
    assert idle.requests_running == idle.requests_waiting == 0


def test_qwen_breathes_and_fills_one_replica() -> None:
    first = [len(QWEN3_0.at(t).running) for t in SECONDS if t >= QWEN3_0.first_step]
    assert (min(first), max(first)) == (2, 7)
    second = {t: len(QWEN3_1.at(t).running) for t in SECONDS if t >= QWEN3_1.first_step}
    assert min(second.values()) == 2
    full = [t for t, used in second.items() if used == 8 and t < PERIOD]
    assert (full[0], full[-1]) == (118, 149.5)
    assert QWEN3_1.at(130).waiting == ("product-copy-it",)
    assert "product-copy-it" in QWEN3_1.at(148).running


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
def test_slots_are_kept_while_the_work_lasts(replica: ServingReplica) -> None:
    for before, after in pairwise(SECONDS):
        earlier, later = replica.at(before), replica.at(after)
        assert len(later.running) <= replica.slots
        assert not set(later.running) & set(later.waiting)
        assert not set(earlier.running) & set(later.waiting)
        assert not later.waiting or len(later.running) == replica.slots


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
def test_gauges_and_counters_agree_with_the_adapters(replica: ServingReplica) -> None:
    for before, after in pairwise(SECONDS):
        earlier, later = replica.at(before), replica.at(after)
        assert (later.requests_running > 0) == bool(later.running)
        assert later.requests_running >= len(later.running)
        assert (later.requests_waiting > 0) == bool(later.waiting)
        grown = later.generation_tokens - earlier.generation_tokens
        assert grown >= 0
        assert later.prompt_tokens >= earlier.prompt_tokens
        assert later.requests_finished >= earlier.requests_finished
        if earlier.running:
            assert grown > 0


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
def test_the_newest_of_the_history_is_the_present(replica: ServingReplica) -> None:
    assert replica.history(replica.first_step - 0.1) == ()
    for t in SECONDS:
        if t < replica.first_step:
            continue
        history, now = replica.history(t), replica.at(t)
        newest = max(history, key=lambda seen: seen.at)
        assert (newest.running, newest.waiting) == (now.running, now.waiting)
        assert newest.at == t or not now.running
        assert len({seen.at for seen in history}) == len(history)


@pytest.mark.parametrize("replica", VLLM_REPLICAS, ids=lambda replica: replica.name)
def test_the_history_does_not_grow_for_ever(replica: ServingReplica) -> None:
    def names(seconds: float) -> set[tuple[tuple[str, ...], ...]]:
        return {(seen.running, seen.waiting) for seen in replica.history(seconds)}

    assert names(30) < names(2 * PERIOD)
    assert names(2 * PERIOD) == names(3 * PERIOD + 17) == names(1000 * PERIOD + 100)


def test_an_idle_engine_does_no_steps() -> None:
    newest = max(LLAMA31_0.history(PERIOD + 3), key=lambda seen: seen.at)
    assert (newest.running, newest.at) == ((), 205)


def test_a_name_with_a_comma_is_among_the_adapters() -> None:
    assert any("," in name for name in QWEN3_0.at(60).running)


def held(moment: TwinkleMoment, replica: str) -> int:
    return sum(holding.replica == replica for holding in moment.holdings)


def orphans(moment: TwinkleMoment) -> list[str]:
    alive = {session.id for session in moment.sessions}
    ours = [h for h in moment.holdings if h.replica in TRAINING.live]
    return [holding.adapter for holding in ours if holding.session not in alive]


def test_twinkle_holds_nine_of_ten_slots_and_has_an_orphan() -> None:
    used = {t: [held(TRAINING.at(t), replica) for replica in TRAINING.live] for t in SECONDS}
    assert max(map(sum, used.values())) == 9
    assert all(count <= TRAINING.max_loras for counts in used.values() for count in counts)
    assert used[100] == [4, 5]
    assert used[235] == [0, 0]
    assert {t for t in SECONDS if t < PERIOD and orphans(TRAINING.at(t))} == {
        t for t in SECONDS if 130 <= t < 175
    }
    assert orphans(TRAINING.at(150)) == ["triage-de"]


def test_twinkle_replicas_register_with_their_first_run_and_the_ghost_stays() -> None:
    first, second = TRAINING.live
    assert TRAINING.at(0).registered == (TRAINING.ghost,)
    assert TRAINING.at(10).registered == (TRAINING.ghost, first)
    assert TRAINING.at(PERIOD).registered == (TRAINING.ghost, first, second)
    assert {held(TRAINING.at(t), TRAINING.ghost) for t in SECONDS} == {3}


def test_sessions_beat_and_are_new_in_each_period() -> None:
    early, late = TRAINING.at(50), TRAINING.at(PERIOD + 50)
    for session in early.sessions:
        assert session.since <= session.heartbeat <= 50
        assert 50 - session.heartbeat < 10
    assert not {s.id for s in early.sessions} & {s.id for s in late.sessions}
    assert [h.adapter for h in early.holdings] == [h.adapter for h in late.holdings]


def test_a_course_gives_slots_in_order_of_arrival() -> None:
    shifts = [Shift("late", 2, 5), Shift("early", 1, 3), Shift("over the end", 8, 3)]
    course = make_course(shifts, 1, 10)
    assert course.segments == (
        Segment(0, 1, ("over the end",), ()),
        Segment(1, 2, ("early",), ()),
        Segment(2, 4, ("early",), ("late",)),
        Segment(4, 7, ("late",), ()),
        Segment(7, 8, (), ()),
        Segment(8, 10, ("over the end",), ()),
    )
    assert course.at(23) == course.segments[2]
    assert [(s.starts, s.ends) for s in course.between(8.5, 11)] == [(8.5, 10), (10, 11), (11, 12)]
    assert course.integral(lambda segment: len(segment.running), 21.5) == 2 * 9 + 1.5

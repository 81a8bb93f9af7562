"""Rates from counters, the highest of a window, and saturation, over time that a test makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from exporter.fleet import Fleet, ReplicaStatus, ReplicaTable, TargetStatus
from exporter.planning.demand import SATURATED_SECONDS, Seen, Tokens, Watch
from tests.support.tables import replica, target

WINDOW = 3600.0

Reading = tuple[float, float | None]
"""When a replica was read, and its counter of generated tokens."""


def fleet(now: float, replicas: Iterable[tuple[str, float, ReplicaTable]]) -> Fleet:
    """Replicas by name, when each was read, and its table."""
    return Fleet(
        tuple(
            TargetStatus(
                target(f"http://{name}:1"),
                up=True,
                table_at=at,
                replicas=(ReplicaStatus(table, name),),
                models=(table.model,),
            )
            for name, at, table in replicas
        ),
        now,
    )


def step(watch: Watch, now: float, window: float = WINDOW, **counters: Reading) -> Seen:
    """One look at a fleet of replicas whose counters are these."""
    rows = [(name, at, replica(tokens=value)) for name, (at, value) in counters.items()]
    return watch.step(fleet(now, rows), window)["base"]


def test_rates_add_up_over_replicas_by_the_times_of_their_readings() -> None:
    watch = Watch()
    first = step(watch, 15, a=(10, 1000), b=(12, 0))
    assert first.observed == Tokens()
    second = step(watch, 30, a=(20, 2000), b=(27, 600))
    assert second.observed.generation == 1000 / 10 + 600 / 15


def test_without_a_new_reading_a_rate_stays() -> None:
    watch = Watch()
    step(watch, 15, a=(10, 0))
    step(watch, 30, a=(20, 500))
    assert step(watch, 45, a=(20, 500)).observed.generation == 50


def test_a_counter_that_fell_was_reset() -> None:
    watch = Watch()
    step(watch, 15, a=(10, 90_000))
    assert step(watch, 25, a=(20, 300)).observed.generation == 30


def test_what_was_served_while_nobody_read_is_spread_over_that_time() -> None:
    watch = Watch()
    step(watch, 15, a=(10, 0))
    step(watch, 25, a=(20, 1000))
    assert watch.step(fleet(60, []), WINDOW) == {}
    back = step(watch, 110, a=(110, 1900))
    assert back.observed == Tokens(), "the model was gone with its last target"


def test_a_replica_that_was_not_read_for_a_while_comes_back_with_its_average() -> None:
    watch = Watch()
    for now, a in ((10, 0), (20, 1000)):
        step(watch, now, a=(now, a), b=(now, 0))
    assert step(watch, 60, b=(60, 0)).observed.generation == 0
    assert step(watch, 110, a=(110, 1900), b=(110, 0)).observed.generation == 10


def test_at_a_start_a_part_of_the_replicas_is_not_told_as_all_of_them() -> None:
    watch = Watch()
    step(watch, 10, a=(10, 0))
    assert step(watch, 20, a=(20, 1000), b=(20, 0)).observed == Tokens()
    assert step(watch, 30, a=(30, 2000), b=(30, 500)).observed.generation == 150


def test_one_that_joins_later_counts_from_its_second_reading() -> None:
    watch = Watch()
    step(watch, 10, a=(10, 0))
    step(watch, 20, a=(20, 1000))
    assert step(watch, 30, a=(30, 2000), b=(30, 5_000_000)).observed.generation == 100
    assert step(watch, 40, a=(40, 3000), b=(40, 5_000_500)).observed.generation == 150


def test_when_every_replica_is_new_nothing_is_told_rather_than_zero() -> None:
    watch = Watch()
    step(watch, 10, a=(10, 0))
    assert step(watch, 20, a=(20, 1000)).observed.generation == 100
    assert step(watch, 30, b=(30, 0)).observed == Tokens()


def test_a_replica_without_counter_leaves_the_model_unknown() -> None:
    watch = Watch()
    for now in (10, 20, 30):
        seen = step(watch, now, a=(now, now * 100), b=(now, None))
    assert (seen.observed, seen.highest) == (Tokens(), Tokens())


def test_total_needs_both_counters() -> None:
    watch = Watch()
    for now in (10.0, 20.0):
        table = replace(replica(tokens=now * 10), prompt_tokens=now * 30)
        seen = watch.step(fleet(now, [("a", now, table)]), WINDOW)["base"]
    assert seen.observed == Tokens(generation=10, total=40)
    assert (seen.observed.of("generation"), seen.observed.of("total")) == (10, 40)


def test_the_highest_stays_for_the_window_and_no_longer() -> None:
    watch = Watch()
    step(watch, 0, window=60, a=(0, 0))
    step(watch, 10, window=60, a=(10, 5000))
    counter = 5000.0
    for now in range(20, 71, 10):
        counter += 1000
        seen = step(watch, now, window=60, a=(now, counter))
        assert (seen.observed.generation, seen.highest.generation) == (100, 500)
    assert step(watch, 80, window=60, a=(80, counter + 1000)).highest.generation == 100


def test_the_window_is_filled_once_rates_were_seen_for_as_long() -> None:
    watch = Watch()
    warm = [step(watch, now, window=60, a=(now, now)).warm for now in range(0, 90, 10)]
    assert warm == [False] * 7 + [True] * 2


def test_after_a_gap_as_long_as_the_window_it_must_fill_again() -> None:
    watch = Watch()
    for now in range(0, 90, 10):
        step(watch, now, window=60, a=(now, now), b=(now, now))
    assert not step(watch, 300, window=60, c=(300, 0)).warm
    step(watch, 310, window=60, c=(310, 0))
    assert not step(watch, 320, window=60, c=(320, 0)).warm


def saturation(watch: Watch, now: float, used: int, waiting: int | None) -> Seen:
    table = replace(replica(used=used), waiting=waiting)
    return watch.step(fleet(now, [("a", now, table)]), WINDOW)["base"]


def test_two_minutes_full_with_work_waiting_is_saturated() -> None:
    watch = Watch()
    assert saturation(watch, 0, 3, 0).saturated is False
    full = [saturation(watch, now, 4, 1) for now in (15.0, 75.0, 134.9, 15 + SATURATED_SECONDS)]
    assert [seen.saturated for seen in full] == [False, False, False, True]
    assert not any(seen.maybe_saturated for seen in full)
    assert saturation(watch, 150, 4, 0).saturated is False
    assert saturation(watch, 165, 4, 1).saturated is False


def test_full_since_the_start_may_be_saturated_already() -> None:
    watch = Watch()
    seen = [saturation(watch, now, 4, 2) for now in (0, 60, 119, 120)]
    assert [one.maybe_saturated for one in seen] == [True, True, True, False]
    assert [one.saturated for one in seen] == [False, False, False, True]


def test_unknown_waiting_is_neither() -> None:
    watch = Watch()
    seen = saturation(watch, 0, 4, None)
    assert (seen.saturated, seen.maybe_saturated) == (None, False)
    assert saturation(watch, 200, 4, 1).maybe_saturated


def test_what_is_known_of_a_model_goes_with_it() -> None:
    watch = Watch()
    for now in range(0, 200, 10):
        step(watch, now, window=60, a=(now, now * 100))
    assert watch.step(Fleet((), 200.0), 60) == {}
    assert step(watch, 210, window=60, a=(210, 0)) == step(Watch(), 210, window=60, a=(210, 0))

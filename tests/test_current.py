"""The current fleet: counts, staleness, removal, doubles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exporter.current import CurrentFleet
from exporter.exposition.fleet import Exposition
from exporter.fleet import Reason, TargetStatus
from exporter.table import rows
from tests.support.tables import asked, replica, target

STALE_AFTER = 30.0
URL = "http://10.0.0.5:8000"


@pytest.fixture
def fleet() -> CurrentFleet:
    current = CurrentFleet(Exposition(10), STALE_AFTER, "this-host")
    current.add(target())
    return current


def status(fleet: CurrentFleet, now: float = 0.0, url: str = URL) -> TargetStatus:
    return next(s for s in fleet.snapshot(now).targets if s.target.url == url)


def lines(fleet: CurrentFleet, now: float) -> list[str]:
    text = b"".join(fleet.text(False, now)).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_before_the_first_poll_nothing_is_claimed(fleet: CurrentFleet) -> None:
    assert status(fleet).up is None
    assert not fleet.all_polled
    assert [line for line in lines(fleet, 0.0) if "lora_target_up" in line] == []


def test_a_table_and_its_counts(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replica(used=4)), 100.0)
    fleet.record(URL, asked(replica(used=1)), 110.0)
    fleet.record(URL, asked(replica(used=None)), 120.0)
    now = status(fleet, 120.0)
    assert (now.up, now.polls, now.failures, now.last_success) == (True, 3, 0, 120.0)
    assert [(r.replica_id, r.polls, r.full_polls) for r in now.replicas] == [
        ("10.0.0.5:8000", 2, 1)
    ]
    assert fleet.all_polled


def test_a_failure_shows_at_once_and_the_table_stays_until_it_is_stale(
    fleet: CurrentFleet,
) -> None:
    fleet.record(URL, asked(replica()), 100.0)
    fleet.record(URL, asked(reason=Reason.TIMEOUT), 110.0)
    down = f'lora_target_failure{{target="{URL}",reason="timeout"}} 1'
    slots = 'lora_max{model="base",replica_id="10.0.0.5:8000",slot_kind="evictable"} 4'
    assert f'lora_target_up{{target="{URL}",group="g"}} 0' in lines(fleet, 110.0)
    assert down in lines(fleet, 110.0)
    assert slots in lines(fleet, 129.9)
    assert slots not in lines(fleet, 130.0)
    assert [line for line in lines(fleet, 130.0) if "replica_id" in line] == []
    assert down in lines(fleet, 130.0)
    assert status(fleet, 130.0).last_success == 100.0


def test_a_table_vanishes_even_if_no_poll_ends(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replica(), ghosts=2), 100.0)
    assert status(fleet, 131.0).replicas == ()
    assert status(fleet, 131.0).ghosts is None


def test_recovery_ends_the_failure(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(reason=Reason.AUTH), 100.0)
    fleet.record(URL, asked(replica()), 110.0)
    assert (status(fleet, 110.0).reason, status(fleet, 110.0).failures) == (None, 1)
    assert [line for line in lines(fleet, 110.0) if "lora_target_failure" in line] == []


def test_a_partial_table_is_down_and_fresh(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replica(tokens=5.0)), 100.0)
    partial = asked(replica(used=None, limit=None, tokens=9.0), reason=Reason.AMBIGUOUS)
    fleet.record(URL, partial, 125.0)
    now = status(fleet, 140.0)
    assert (now.up, now.reason, now.last_success) == (False, Reason.AMBIGUOUS, 100.0)
    assert [(r.table.max, r.table.generation_tokens) for r in now.replicas] == [(None, 9.0)]


def test_a_replica_that_a_gateway_no_longer_names_vanishes(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replica(name="r1"), replica(name="r2")), 100.0)
    fleet.record(URL, asked(replica(name="r2")), 110.0)
    assert [r.replica_id for r in status(fleet, 110.0).replicas] == ["r2"]
    assert [line for line in lines(fleet, 110.0) if '"r1"' in line] == []


def test_a_removed_target_disappears_whole(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replica()), 100.0)
    fleet.remove(URL)
    assert lines(fleet, 100.0) == []
    assert len(fleet) == 0
    assert fleet.record(URL, asked(replica()), 101.0) is None
    assert lines(fleet, 101.0) == []


def test_two_targets_that_tell_of_one_replica_do_not_double_it(fleet: CurrentFleet) -> None:
    other = "http://10.0.0.6:8000"
    fleet.add(target(other))
    fleet.record(URL, asked(replica(name="same")), 100.0)
    fleet.record(other, asked(replica(name="same")), 101.0)
    assert status(fleet, 101.0, other).reason is Reason.AMBIGUOUS
    assert sum('lora_max{model="base",replica_id="same"' in x for x in lines(fleet, 101.0)) == 1
    # Once the first is gone, the second may tell.
    fleet.remove(URL)
    fleet.record(other, asked(replica(name="same")), 110.0)
    assert status(fleet, 110.0, other).up


def test_a_table_that_names_a_replica_twice_is_refused(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replica(name="r"), replica(name="r")), 100.0)
    assert status(fleet, 100.0).reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://10.0.0.5:8000", "10.0.0.5:8000"),
        ("https://replica.example", "replica.example:443"),
        ("http://127.0.0.1:8000/api/v1", "this-host:8000"),
        ("http://gateway:8000/r/17", "gateway:8000/r/17"),
        ("http://localhost", "this-host:80"),
        ("http://[::1]:8000", "this-host:8000"),
        ("http://[fd00::1]:8000", "[fd00::1]:8000"),
    ],
)
def test_replica_ids(fleet: CurrentFleet, url: str, name: str) -> None:
    fleet.add(target(url))
    fleet.record(url, asked(replica(model="m")), 100.0)
    assert [r.replica_id for r in status(fleet, 100.0, url).replicas] == [name]


def test_the_operators_name_wins(fleet: CurrentFleet) -> None:
    fleet.add(target(URL, replica="mine"))
    fleet.record(URL, asked(replica()), 100.0)
    assert [r.replica_id for r in status(fleet, 100.0).replicas] == ["mine"]


def test_a_step_of_the_wall_clock_neither_drops_nor_keeps_a_table() -> None:
    wall = 1_000_000.0
    current = CurrentFleet(Exposition(10), STALE_AFTER, "this-host", lambda: wall)
    current.add(target())
    current.record(URL, asked(replica()), 100.0)
    wall -= 3600.0
    current.record(URL, asked(reason=Reason.TIMEOUT), 110.0)
    one = status(current, 129.0)
    assert (one.last_success, one.table_at, len(one.replicas)) == (1_000_000.0, 100.0, 1)
    assert status(current, 130.0).replicas == ()


def test_an_engine_without_slots_is_shown_as_such(fleet: CurrentFleet) -> None:
    fleet.record(URL, asked(replace(replica(limit=None, used=None), has_slots=False)), 100.0)
    (row,) = rows(fleet.snapshot(101.0))
    assert (row.kind, row.unshared, row.age) == ("none", "no slots", "1s")
    fleet.record(URL, asked(replica(limit=None, used=None)), 110.0)
    (row,) = rows(fleet.snapshot(111.0))
    assert (row.kind, row.unshared) == ("evictable", "unknown")

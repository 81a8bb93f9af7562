"""The simulated Twinkle server, read over HTTP and from its file by the exporter itself."""

from __future__ import annotations

import stat
from collections import Counter

import aiohttp
import pytest

from exporter.demo.cast import TRAINING
from exporter.demo.run import twinkle_group
from exporter.demo.scenario import PERIOD
from exporter.demo.twinkle_server import RunningTwinkle, twinkle_server
from exporter.fleet import AdapterTable, Source
from exporter.settings import TargetGroup
from tests.demo.reading import STARTED, Clock, ask


async def table_of(running: RunningTwinkle, clock: Clock) -> AdapterTable:
    running.state.write()
    asked = await ask(twinkle_group(TRAINING, running), clock)
    assert asked.reading.up, asked.reading.detail
    assert asked.reading.table is not None
    return asked.reading.table


async def test_the_exporter_reads_what_the_scenario_says() -> None:
    clock = Clock()
    async with twinkle_server(TRAINING, clock, STARTED) as running:
        for seconds in (0.0, 20.0, 50.0, 100.0, 129.5, 140.0, 200.0, 235.0, 5 * PERIOD + 150.0):
            clock.seconds = seconds
            truth = TRAINING.at(seconds)
            beats = {session.id: STARTED + session.heartbeat for session in truth.sessions}
            table = await table_of(running, clock)
            assert table.ghosts == 4
            assert [replica.replica for replica in table.replicas] == sorted(TRAINING.live)
            for replica in table.replicas:
                held = [h for h in truth.holdings if h.replica == replica.replica]
                sessions = [h.session for h in held]
                known = replica.replica in truth.registered
                assert replica.model == TRAINING.model
                assert replica.source is Source.STATE_RAY
                assert replica.node in ("10.20.0.11", "10.20.0.12")
                assert replica.max == (TRAINING.max_loras if known else None)
                assert replica.used == (len(held) if known else None)
                assert {a.name for a in replica.adapters} == {h.adapter for h in held}
                assert replica.orphans == (sum(s not in beats for s in sessions) if known else None)
                assert replica.largest_holder == max(Counter(sessions).values(), default=None)
                assert replica.oldest_heartbeat == pytest.approx(
                    min((beats[s] for s in sessions if s in beats), default=None)
                )


async def test_nearly_all_slots_are_held_and_one_has_lost_its_session() -> None:
    clock = Clock(100)
    async with twinkle_server(TRAINING, clock, STARTED) as running:
        full = await table_of(running, clock)
        clock.seconds = 150
        later = await table_of(running, clock)
    assert [(replica.used, replica.free) for replica in full.replicas] == [(4, 1), (5, 0)]
    assert [replica.orphans for replica in later.replicas] == [0, 1]


async def test_secrets_stay_in_the_store() -> None:
    clock = Clock(150)
    async with twinkle_server(TRAINING, clock, STARTED) as running:
        shown = repr(await table_of(running, clock))
        stored = running.state.path.read_text()
    moment = TRAINING.at(150)
    assert moment.sessions
    for holding in moment.holdings:
        for secret in (holding.token, holding.session, holding.model_id):
            assert secret in stored
            assert secret not in shown
    for session in moment.sessions:
        assert session.id in stored
        assert session.id not in shown
    assert "session_" not in shown


async def test_the_gateway_adds_up_ghosts_as_the_real_one_does() -> None:
    clock = Clock(100)
    async with twinkle_server(TRAINING, clock, STARTED) as running:
        asked = await ask(
            TargetGroup(name="totals", engine="twinkle", static=(running.gateway,)), clock
        )
    assert asked.reading.table is not None
    (total,) = asked.reading.table.replicas
    assert (total.model, total.source) == (TRAINING.model, Source.GATEWAY)
    assert (total.max, total.used) == (15, 12)


async def test_the_gateway_answers_as_recorded() -> None:
    clock = Clock(100)
    async with (
        twinkle_server(TRAINING, clock, STARTED) as running,
        aiohttp.ClientSession() as session,
    ):
        base = f"{running.gateway}/twinkle"
        async with session.get(f"{base}/status") as answer:
            resources = (await answer.json())["resources"]
        async with session.get(f"{base}/capacity_info", headers={"x-request-id": ""}) as answer:
            assert answer.status == 400
        async with session.get(f"{base}/healthz", headers={"x-request-id": "mine"}) as answer:
            assert answer.headers["x-request-id"] == "mine"
            assert await answer.json() == {"status": "ok"}
        async with session.get(f"{base}/get_server_capabilities") as answer:
            assert await answer.json() == {"supported_models": [{"model_name": TRAINING.model}]}
        async with session.get(f"{base}/nope") as answer:
            assert answer.status == 404
    assert resources == {"sessions": 4, "models": 12, "sampling_sessions": 0, "futures": 12}


async def test_the_state_file_is_private_replaced_and_removed() -> None:
    clock = Clock(100)
    async with twinkle_server(TRAINING, clock, STARTED) as running:
        path = running.state.path
        before = path.stat()
        running.state.write()
        after = path.stat()
        assert stat.S_IMODE(after.st_mode) == 0o600
        assert after.st_ino != before.st_ino or after.st_ctime_ns > before.st_ctime_ns
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert not path.parent.exists()

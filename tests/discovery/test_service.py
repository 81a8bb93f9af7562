"""Targets that come and go under the running service, and many of them under the poller."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.current import CurrentFleet
from exporter.discovery.targets import make_target
from exporter.exposition.fleet import Exposition
from exporter.fetching.http import HttpClient
from exporter.poller import Poller, make_plan
from exporter.settings import Settings, TargetGroup
from tests.discovery.test_finding import listed
from tests.support.programs import until
from tests.support.servers import http_server, vllm_routes
from tests.support.service import serving, settings


async def test_targets_come_and_go_while_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    async with http_server(vllm_routes()) as one, http_server(vllm_routes()) as two:
        stays, comes = (url.removeprefix("http://") for url in (one, two))
        listed(file, stays)
        found = TargetGroup(name="g", file={"paths": (str(file),)})
        async with serving(settings().model_copy(update={"targets": (found,)})) as client:
            await client.ready()
            polls = f'lora_target_polls_total{{target="{one}"}}'
            assert await client.sample(polls) is not None
            listed(file, stays, comes)

            async def is_there() -> bool:
                return await client.sample(f'lora_target_up{{target="{two}",group="g"}}') == "1"

            await until(is_there)
            _, text = await client.get("/sd?group=g")
            listed(file, stays)

            async def is_gone() -> bool:
                return two not in (await client.get("/metrics"))[1]

            await until(is_gone)
            assert float(await client.sample(polls) or 0) > 20, "it was polled all along"
            failures = 'lora_exporter_discovery_failures_total{group="g"}'
            assert await client.sample(failures) == "0.0"
            success = 'lora_exporter_discovery_last_success_timestamp_seconds{group="g"}'
            assert await client.sample(success) is not None
            assert (await client.get(f"/probe?target={one}"))[0] == 200
            assert (await client.get(f"/probe?target={two}"))[0] == 403
    entries = json.loads(text)
    assert [entry["targets"] for entry in entries] == [[stays], [comes]]
    assert entries[0]["labels"]["__meta_lora_url"] == one
    assert entries[0]["labels"]["__metrics_path__"] == "/metrics"
    assert entries[0]["labels"]["__meta_lora_group"] == "g"


async def test_without_the_list_it_is_ready_and_says_why_nothing_is_there(tmp_path: Path) -> None:
    found = TargetGroup(name="g", file={"paths": (str(tmp_path / "none.json"),)})
    async with serving(settings().model_copy(update={"targets": (found,)})) as client:
        await client.ready()
        assert await client.sample('lora_exporter_discovery_failures_total{group="g"}') == "1.0"
        assert await client.sample("lora_exporter_targets") == "0.0"
        success = 'lora_exporter_discovery_last_success_timestamp_seconds{group="g"}'
        assert await client.sample(success) is None


@pytest.mark.timeout(110)
async def test_ten_thousand_targets_that_come_and_go_leave_nothing() -> None:
    group = TargetGroup(name="g", engine="vllm")
    poll = Settings().poll
    before = asyncio.all_tasks()
    async with HttpClient(1000) as http:
        exposition = Exposition(10)
        fleet = CurrentFleet(exposition, 30.0, "here")
        poller = Poller(fleet, lambda _: None)
        await poller.apply(make_plan(http, poll, (group,)))
        stays = make_target(group, "http://127.0.0.1:9")
        for wave in range(10):
            # Nobody is asked: the first polls are spread over seconds.
            urls = [f"http://127.1.{wave}.{n % 250}:{9000 + n // 250}" for n in range(1000)]
            targets = (stays, *(make_target(group, url) for url in urls))
            poller.retarget(targets)
            assert len(fleet) == 1001
            moved = replace(targets[1], pod=f"pod-{wave}")
            poller.retarget((stays, moved, *targets[2:]))
            assert len(fleet) == 1001
        poller.retarget((stays,))
        assert len(fleet) == 1
        text = exposition.join(openmetrics=False).decode()
        assert "127.1." not in text
        assert len(exposition._columns[0]) <= 2100, "places are taken again"

        async def have_ended() -> bool:
            return len(asyncio.all_tasks() - before) <= 1

        await until(have_ended)
        await poller.stop()
    assert len(asyncio.all_tasks() - before) == 0

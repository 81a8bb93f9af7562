"""Real notifications of the shipped rules: what fills up, what dies, and what only starts again."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.alerts.fleet import ALMOST_FULL, FULL, RELEASED, Site, Watched, watched_fleet, watching
from tests.support.alertmanager import Message
from tests.support.programs import until

pytestmark = pytest.mark.timeout(240)
FULL_TITLE = "[CRITICAL] tuner: All LoRA slots of a model are held: new adapters are refused."
ROOM = " 1 more replica fits in what is free, 2 more by stopping others.\n"


async def message(it: Watched, title: str) -> Message:
    """Waits for a message in a chat."""
    chat = it.alertmanager.received.chat

    async def came() -> bool:
        return any(message.title == title for message in chat)

    try:
        await until(came, 100)
    except TimeoutError:
        pytest.fail(f"no {title!r} among {chat}; {await it.prometheus.firing()} fire")
    return next(message for message in chat if message.title == title)


def pages(it: Watched) -> list[tuple[str, str]]:
    """State and alert of what the pager got."""
    return [
        (alert["status"], alert["labels"]["alertname"])
        for page in it.alertmanager.received.pages
        for alert in page["alerts"]
    ]


@pytest.mark.xdist_group("alerts end to end 1")
async def test_a_model_fills_up_and_is_released(tmp_path: Path) -> None:
    async with watched_fleet(tmp_path) as it:
        it.site.story.at = ALMOST_FULL
        title = "[WARNING] tuner: The LoRA slots of a model are almost all held."
        almost = await message(it, title)
        assert almost.to == "#training"
        assert "tuner: 1 slot is left." in almost.text
        assert "Owner: training, class gold\n" in almost.text
        assert pages(it) == []

        it.site.story.at = FULL
        full = await message(it, FULL_TITLE)
        assert full.to == "#training"
        assert full.text.startswith("LoraSlotsExhausted, critical, since ")
        assert "tuner: all 6 slots are held" in full.text
        assert ROOM in full.text
        assert "/LoraSlotsExhausted.md\n" in full.text
        assert "/d/lora-model?var-model=tuner\n" in full.text
        assert "LoraSlotsAlmostExhausted" not in full.text

        async def lower_held_back() -> bool:
            states = {
                one["labels"]["alertname"]: one["status"] for one in await it.alertmanager.alerts()
            }
            return bool(states.get("LoraSlotsAlmostExhausted", {}).get("inhibitedBy"))

        await until(lower_held_back)

        it.site.story.at = RELEASED
        resolved = await message(it, FULL_TITLE.replace("CRITICAL", "RESOLVED"))
        assert resolved.text.startswith("Resolved: LoraSlotsExhausted of tuner, ")
        titles = [one.title for one in it.alertmanager.received.chat]
        assert titles == [almost.title, full.title, resolved.title]
        one = "LoraSlotsExhausted"
        assert pages(it) == [("firing", one), ("resolved", one)]
        assert it.alertmanager.received.mail[0].to == "lora-oncall@example.org"
        assert it.alertmanager.received.mail[0].title == FULL_TITLE


@pytest.mark.xdist_group("alerts end to end 2")
async def test_a_replica_is_killed(tmp_path: Path) -> None:
    async with watched_fleet(tmp_path) as it:
        killed = it.site.replicas[0]
        await killed.kill()
        title = f"[WARNING] {killed.url}: A target cannot be read."
        down = await message(it, title)
        assert down.to == "#lora-platform"
        assert "of group serving has given no adapter table" in down.text
        await killed.start()
        await message(it, title.replace("WARNING", "RESOLVED"))
        assert await it.prometheus.fired() == {"LoraTargetDown"}
        assert pages(it) == []


@pytest.mark.xdist_group("alerts end to end 2")
async def test_the_exporter_is_killed(tmp_path: Path) -> None:
    async with watched_fleet(tmp_path) as it:
        it.site.story.at = FULL
        await message(it, FULL_TITLE)
        it.exporter.process.kill()
        title = "[CRITICAL] job lora: The LoRA exporter is down: nobody sees the slots."
        down = await message(it, title)
        assert down.to == "#lora-platform"
        # It was still firing, so nobody was told that it was solved.
        assert "LoraSlotsExhausted" in await it.prometheus.firing()

        async def ended() -> bool:
            return await it.prometheus.firing() == {"LoraExporterDown"}

        await until(ended, 60)
        async with it.site.exporter():
            await message(it, title.replace("CRITICAL", "RESOLVED"))
            assert [state for state, name in pages(it) if name == "LoraSlotsExhausted"] == [
                "firing"
            ]
            titles = [one.title for one in it.alertmanager.received.chat]
            assert FULL_TITLE.replace("CRITICAL", "RESOLVED") not in titles
            # Full as before: what people were told still holds.
            await it.prometheus.has('ALERTS{alertname="LoraSlotsExhausted",alertstate="firing"}')
        assert await it.prometheus.fired() == {"LoraExporterDown", "LoraSlotsExhausted"}


@pytest.mark.xdist_group("alerts end to end 1")
async def test_everything_starts_again_at_once(tmp_path: Path) -> None:
    async with watched_fleet(tmp_path) as before:
        site = before.site
        ended = time.time()
    again = Site(tmp_path, replicas=site.replicas, exporter_port=site.exporter_port)
    async with again.serving(), watching(again) as it:
        await it.prometheus.evaluated(30)
        # It is the same Prometheus, and all of the fleet is seen again.
        assert await it.prometheus.query("up == 1", ended)
        metrics = await it.exporter.text("/metrics")
        assert len(re.findall(r"^lora_target_up\{.*\} 1", metrics, re.MULTILINE)) == 3
        assert await it.prometheus.query('model:lora_free:sum{model="tuner"} == 3')
        assert await it.prometheus.fired() == set()
        assert it.alertmanager.received.messages() == []
        assert pages(it) == []

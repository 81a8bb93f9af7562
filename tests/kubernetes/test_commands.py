"""Commands that read a cluster once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from exporter import planned
from exporter.inventory.kept import InventoryError
from exporter.settings import Settings
from tests.kubernetes.fake import FakeApi, failure, kubeconfig, kubernetes
from tests.kubernetes.objects import container, node, pod


def settings(folder: Path, api: FakeApi) -> Settings:
    measured = folder / "measurements.yml"
    measured.write_text("chat: [{tokens_per_second: 100}]\n")
    return Settings(
        models={"chat": {"gpus": 1}},
        measurements={"file": str(measured)},
        inventory={"kubernetes": {"kubeconfig_file": str(kubeconfig(folder, api))}},
    )


async def test_target_reads_the_cluster(tmp_path: Path) -> None:
    async with kubernetes() as api:
        api.put("nodes", node("a", gpu="4"))
        labels = {"lora-exporter/model": "chat"}
        api.put("pods", pod("chat-0", container(gpu="1"), node="a", labels=labels))
        known = await asyncio.to_thread(planned.situation_now, settings(tmp_path, api))
    one = planned.view(known, "chat", 300.0)
    # counting stopped at the two more that are needed
    assert (one.current, one.needed, one.room, one.limited) == (1, 3, 2, True)
    assert planned.view(known, "chat", 500.0).fits is False


async def test_a_cluster_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    async def refused(request: object) -> object:
        del request
        return failure(403, "Forbidden")

    async with kubernetes() as api:
        api.always["list"] = refused  # type: ignore[assignment]  # it is never given a request
        with pytest.raises(InventoryError, match="pods: status 403; wanted the right"):
            await asyncio.to_thread(planned.situation_now, settings(tmp_path, api))

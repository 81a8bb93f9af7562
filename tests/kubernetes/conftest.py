"""A fake API server, and copies of what it has, which end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exporter.kubernetes.client import Query
from exporter.kubernetes.mirror import Mirror, Pace
from exporter.settings.access import KubernetesAccess
from tests.kubernetes.copies import QUICK, Make, Told, node_of
from tests.kubernetes.fake import FakeApi, kubeconfig, kubernetes


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with kubernetes() as running:
        yield running


@pytest.fixture
async def make(api: FakeApi, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes copies of the nodes' names of pods, which end with the test."""
    made: list[Mirror[str]] = []

    def one(told: Told | None = None, pace: Pace = QUICK, **query: str) -> Mirror[str]:
        access = KubernetesAccess(kubeconfig_file=kubeconfig(tmp_path, api))

        def on_change() -> None:
            if told is not None:
                told.failures.append(mirror.failure)

        mirror = Mirror(access, Query("pods", **query), node_of, on_change, pace)
        made.append(mirror)
        return mirror

    yield one
    for mirror in made:
        await mirror.close()

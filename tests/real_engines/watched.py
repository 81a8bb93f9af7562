"""What the exporter, as a process of its own, says of one target."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.process import Process, started
from tests.support.programs import until

_SLOTS = ("lora_max", "lora_used", "lora_free")
_PATIENCE = 120.0
"""Seconds until an engine shows what it was made to do. Lists of names are asked once a minute."""


@dataclass(frozen=True, slots=True)
class Samples:
    """One answer of `/metrics`."""

    samples: tuple[Sample, ...]

    def of(self, series: str) -> list[Sample]:
        return [sample for sample in self.samples if sample.name == series]

    def __getitem__(self, series: str) -> float | None:
        """The value of a series that has one sample at most; None where it has none."""
        found = self.of(series)
        assert len(found) < 2, found
        return found[0].value if found else None

    def info(self) -> dict[str, str]:
        """Labels of the replica's `lora_replica_info`."""
        (found,) = self.of("lora_replica_info")
        return dict(found.labels)

    def states(self) -> dict[str, str]:
        """The state of each adapter."""
        return {
            sample.labels["adapter"]: sample.labels["state"]
            for sample in self.of("lora_adapter_state")
        }

    def reasons(self) -> list[str]:
        """Why targets are down."""
        return [sample.labels["reason"] for sample in self.of("lora_target_failure")]

    def slots(self) -> list[tuple[float | None, ...]]:
        """max, used and free of each replica that has any of them, by replica."""
        known: dict[str, dict[str, float]] = {}
        for series in _SLOTS:
            for sample in self.of(series):
                known.setdefault(sample.labels["replica_id"], {})[series] = sample.value
        return [tuple(known[name].get(series) for series in _SLOTS) for name in sorted(known)]


@dataclass(frozen=True, slots=True)
class Watched:
    """The running exporter."""

    process: Process

    async def now(self) -> Samples:
        text = await self.process.text("/metrics")
        families = text_string_to_metric_families(text)
        return Samples(tuple(sample for family in families for sample in family.samples))

    async def shows(self, seconds: float = _PATIENCE, /, **wanted: object) -> Samples:
        """Waits until series have the values; None stands for a series that is absent.

        `states`, `slots` and `reasons` stand for what the method of that name gives.
        """
        last: dict[str, object] = {}
        samples = Samples(())

        async def is_so() -> bool:
            nonlocal samples
            samples = await self.now()
            for name in wanted:
                method = name in {"states", "slots", "reasons"}
                last[name] = getattr(samples, name)() if method else samples[name]
            return last == wanted

        try:
            await until(is_so, seconds)
        except TimeoutError:
            said = "".join(self.process.other)
            raise AssertionError(f"wanted {wanted}, last seen {last}\n{said}") from None
        return samples


@contextlib.asynccontextmanager
async def watched(url: str, **group: Any) -> AsyncIterator[Watched]:
    """The exporter of this environment, polling the target each second; detects the engine."""
    groups = json.dumps([{"name": "real", "static": [url], **group}])
    command = Path(sys.executable).parent / "lora-exporter"
    listen = ("--web.listen-address", "127.0.0.1:0")
    poll = ("--poll.interval", "1s", "--poll.timeout", "1s")
    async with started(command, "serve", *listen, *poll, LORA_EXPORTER_TARGETS=groups) as process:
        yield Watched(process)
        assert [line for line in process.log if line.get("level") == "error"] == []
        assert process.other == []

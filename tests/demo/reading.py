"""Reads a simulated replica as the exporter does, at times that the test chooses."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.discovery.targets import make_target
from exporter.fetching.ask import Asked, Asker, Memory
from exporter.fetching.http import HttpClient
from exporter.settings import TargetGroup

STARTED = 1_796_074_500.25
"""Unix seconds at which the story begins."""


@dataclass
class Clock:
    """A clock that stands still until it is told."""

    seconds: float = 0.0
    """Since the beginning of the story."""

    def __call__(self) -> float:
        """Unix seconds."""
        return STARTED + self.seconds


async def ask(group: TargetGroup, clock: Clock) -> Asked:
    """One poll over HTTP of the group's only target, with nothing remembered."""
    async with HttpClient(2**24) as http:
        asker = Asker(http, group, stale_after=10.0, clock=clock)
        try:
            return await asker.ask(make_target(group, group.static[0]), Memory(), 10.0)
        finally:
            await asker.close()

"""Copies of what a cluster has, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exporter.kubernetes.mirror import Mirror, Pace
from tests.kubernetes.fake import FakeApi
from tests.support.programs import until

QUICK = Pace(page=3, answer=2.0, silence=1.0, first_delay=0.01, longest_delay=0.05, steady=0.2)


@dataclass
class Told:
    """What a copy told."""

    failures: list[str | None] = field(default_factory=list)

    @property
    def distinct(self) -> list[str]:
        return list(dict.fromkeys(text for text in self.failures if text is not None))


Make = Callable[..., Mirror[str]]


def node_of(one: dict[str, Any]) -> str | None:
    node: str | None = one["spec"].get("nodeName")
    return node


async def true(condition: Callable[[], bool]) -> None:
    async def is_so() -> bool:
        return condition()

    await until(is_so)


def lists(api: FakeApi) -> list[dict[str, str]]:
    return [query for verb, _, query in api.requests if verb == "list"]


def watches(api: FakeApi) -> list[dict[str, str]]:
    return [query for verb, _, query in api.requests if verb == "watch"]

"""The registry of engines, and how an unknown target's engine is found."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.engines import twinkle, vllm
from exporter.engines.base import Answers, Engine, Request
from exporter.fleet import Target

ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (vllm.ENGINE, twinkle.ENGINE)}
"""Engines by name, in the order in which detection asks whether an answer is theirs."""

AUTO = "auto"


def detection_requests(target: Target) -> tuple[tuple[Engine, tuple[Request, ...]], ...]:
    """What to ask a target whose engine is not known."""
    return tuple((engine, engine.detection(target)) for engine in ENGINES.values())


def detect(target: Target, answers: Mapping[str, Answers]) -> Engine | None:
    """The first engine that claims its answers (by engine name); None where none does."""
    for engine in ENGINES.values():
        if engine.claims(target, answers.get(engine.name, {})):
            return engine
    return None

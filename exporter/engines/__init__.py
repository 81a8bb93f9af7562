"""The registry of engines, and how an unknown target's engine is found."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.engines import (
    custom,
    dynamo,
    llamacpp,
    lorax,
    nim,
    rayserve,
    sglang,
    tensorrtllm,
    tinker,
    twinkle,
    vllm,
)
from exporter.engines.base import Answers, Engine, Request
from exporter.fleet import Target

ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        # Those that pass another engine through come before it.
        nim.ENGINE,
        dynamo.ENGINE,
        vllm.ENGINE,
        twinkle.ENGINE,
        sglang.ENGINE,
        llamacpp.ENGINE,
        tensorrtllm.ENGINE,
        rayserve.ENGINE,
        lorax.ENGINE,
        # A Twinkle server answers to this one's page too.
        tinker.ENGINE,
        custom.ENGINE,
    )
}
"""Engines by name, in the order in which detection asks whether an answer is theirs."""

AUTO = "auto"


LAST_TURN = 2
"""Of detection: models and what tells of another server before them, small pages, expositions."""


def detection_requests(target: Target, turn: int) -> tuple[tuple[Engine, Request], ...]:
    """What to ask a target whose engine is not known, in this turn."""
    return tuple(
        (engine, request)
        for engine in ENGINES.values()
        for request in engine.detection(target)
        if request.turn == turn
    )


def detect(target: Target, answers: Mapping[str, Answers]) -> Engine | None:
    """The first engine that claims its answers (by engine name); None where none does."""
    for engine in ENGINES.values():
        if engine.claims(target, answers.get(engine.name, {})):
            return engine
    return None

"""Who else plays in the demo: a replica or two of each further engine, beside the story.

`mistral-small-24b` on SGLang runs out of slots from 160 s to 200 s, when the story's own model has
recovered; everybody else has room all the time, as far as the engine tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exporter.demo import inhouse
from exporter.demo.course import Shift
from exporter.demo.llamacpp import llamacpp_pages
from exporter.demo.pages import Pages
from exporter.demo.passed_through import dynamo_pages, nim_pages
from exporter.demo.quiet_engines import lorax_pages, tensorrtllm_pages, tinker_pages
from exporter.demo.rayserve import rayserve_pages
from exporter.demo.scenario import ServingReplica
from exporter.demo.sglang import sglang_pages

_VLLM = "0.32.0"


@dataclass(frozen=True, slots=True)
class Simulated:
    """A server of an engine, and how its target group reads it."""

    engine: str
    replicas: tuple[ServingReplica, ...]
    """Those that it tells of."""
    pages: Callable[[float], Pages]
    """Argument: when the demo started (unix seconds)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the group."""


def _simulated(
    engine: str,
    pages: Callable[[ServingReplica, float], Pages],
    replica: ServingReplica,
    **options: Any,
) -> Simulated:
    """A server of one replica, whose name stays the same from start to start."""
    options["replica_name"] = replica.name
    return Simulated(engine, (replica,), lambda started: pages(replica, started), options)


def _replica(
    model: str,
    version: str,
    slots: int,
    *shifts: tuple[str, float, float],
    name: str = "",
    unused: tuple[str, ...] = (),
) -> ServingReplica:
    """Shifts: adapter, start and end (seconds into the period)."""
    return ServingReplica(
        name=name or f"{model}-0",
        model=model,
        version=version,
        slots=slots,
        first_step=1.0,
        shifts=tuple(Shift(adapter, starts, ends - starts) for adapter, starts, ends in shifts),
        unused=unused,
    )


SGLANG = _simulated(
    "sglang",
    sglang_pages,
    _replica(
        "mistral-small-24b",
        "0.5.23",
        6,
        ("claims-triage", 5, 205),
        ("policy-qa", 12, 210),
        ("fraud-notes", 30, 90),
        ("letters-es", 45, 120),
        ("letters-pt", 140, 200),
        ("broker-mail", 145, 202),
        ("loss-report", 150, 204),
        ("claims-triage-next", 160, 208),
        # It gives up before it gets a slot.
        ("letters-it", 170, 196),
        unused=("claims-triage-2025",),
    ),
)

LLAMACPP = _simulated(
    "llamacpp",
    llamacpp_pages,
    # As many slots as adapters, because nothing is ever short of one.
    _replica(
        "smollm2-1.7b",
        "b11434-3f2c1d0",
        4,
        ("kiosk-menu.gguf", 3, 190),
        ("kiosk-allergens.gguf", 40, 150),
        ("kiosk-returns.gguf", 60, 130),
        ("kiosk-parking.gguf", 70, 125),
    ),
)

_RAY_REPLICAS = (
    _replica(
        "gemma-3-12b",
        _VLLM,
        4,
        ("gemma-3-12b:news-tags", 2, 180),
        ("gemma-3-12b:ad-copy", 20, 60),
        ("gemma-3-12b:subtitles-sv", 50, 120),
        ("gemma-3-12b:recipes", 80, 110),
        ("gemma-3-12b:alt-text", 112, 170),
        ("gemma-3-12b:quiz", 150, 220),
        ("gemma-3-12b:headlines", 175, 230),
        name="r7x2k9pq",
    ),
    _replica(
        "gemma-3-12b",
        _VLLM,
        4,
        ("gemma-3-12b:news-tags", 10, 200),
        ("gemma-3-12b:moderation", 35, 140),
        ("gemma-3-12b:weather-nl", 90, 160),
        name="w3m8d1zc",
    ),
)
RAYSERVE = Simulated(
    "rayserve",
    _RAY_REPLICAS,
    lambda started: rayserve_pages(_RAY_REPLICAS, started),
    {"slots": {"max": 4}},
)

INHOUSE = _simulated(
    "custom",
    inhouse.inhouse_pages,
    _replica(
        "phi-4-mini",
        "2026.11",
        6,
        ("nightly-distil", 8, 225),
        ("tone-dpo", 35, 175),
        ("glossary-sft", 75, 140),
        ("forms-sft", 100, 215),
    ),
    custom=inhouse.MAP,
)

NIM = _simulated(
    "nim",
    nim_pages,
    _replica(
        "llama-3.3-70b",
        _VLLM,
        4,
        ("deal-memo", 6, 170),
        ("rfp-answers", 55, 200),
        ("board-minutes", 90, 130),
    ),
)

DYNAMO = _simulated(
    "dynamo",
    dynamo_pages,
    _replica(
        "deepseek-llm-7b",
        _VLLM,
        4,
        ("sensor-faults", 4, 150),
        ("shift-handover", 65, 220),
        unused=("sensor-faults-beta",),
    ),
)

LORAX = _simulated(
    "lorax",
    lorax_pages,
    _replica("mistral-7b-instruct", "0.12.1", 32, ("tickets", 10, 180), ("survey", 60, 220)),
    slots={"max": 32},
)

TENSORRTLLM = _simulated(
    "tensorrtllm",
    tensorrtllm_pages,
    _replica("falcon3-10b", "1.1.0", 8, ("catalogue-ar", 15, 210)),
    slots={"max": 8},
)

TINKER = _simulated(
    "tinker",
    tinker_pages,
    _replica("qwen3-4b", "", 2, ("homework-rl", 20, 180)),
    slots={"max": 2},
)

OTHERS = (SGLANG, LLAMACPP, RAYSERVE, INHOUSE, NIM, DYNAMO, LORAX, TENSORRTLLM, TINKER)

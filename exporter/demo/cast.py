"""Who plays in the demo: the replicas, their adapters, and when each is at work."""

from __future__ import annotations

from exporter.demo.course import Shift
from exporter.demo.scenario import PERIOD, Run, ServingReplica, Tenant, TwinkleServer


def _always(name: str, starts: float = 0.0) -> Shift:
    return Shift(name, starts, PERIOD)


def _shift(name: str, starts: float, ends: float) -> Shift:
    return Shift(name, starts, ends - starts)


_QWEN3_ADAPTERS = (
    "acme-support",
    "globex-contracts",
    "initech-invoices",
    "umbrella-triage",
    "hooli-search,eu",
    "sql-writer-v3",
    "legal-clauses-de",
    "soylent-recipes",
    "meeting-minutes-fr",
    "ticket-router",
    "oscorp-lab-notes",
    "wonka-catalogue",
    "dunder-paper-orders",
    "vandelay-imports",
    "meeting-minutes-de",
    "product-copy-it",
    "acme-support-2025",
    "globex-contracts-rc1",
    "wayne-travel",
)
"""Registered on both replicas, as a router may send each request to either."""

QWEN3_0 = ServingReplica(
    name="qwen3-8b-0",
    model="qwen3-8b",
    version="0.32.0",
    slots=8,
    first_step=2.0,
    shifts=(
        _always("acme-support"),
        _always("globex-contracts", 1),
        _shift("initech-invoices", 10, 150),
        _shift("umbrella-triage", 25, 120),
        # A comma is legal in a name, and commas are what vLLM joins names with.
        _shift("hooli-search,eu", 40, 170),
        _shift("sql-writer-v3", 55, 100),
        _shift("legal-clauses-de", 70, 110),
        _shift("soylent-recipes", 130, 210),
        _shift("meeting-minutes-fr", 185, 225),
    ),
    unused=_QWEN3_ADAPTERS,
)

QWEN3_1 = ServingReplica(
    name="qwen3-8b-1",
    model="qwen3-8b",
    version="0.32.0",
    slots=8,
    first_step=3.0,
    shifts=(
        _always("acme-support"),
        _always("ticket-router", 1),
        _shift("oscorp-lab-notes", 20, 160),
        _shift("wonka-catalogue", 95, 175),
        _shift("dunder-paper-orders", 105, 165),
        _shift("sql-writer-v3", 110, 155),
        _shift("vandelay-imports", 115, 150),
        _shift("meeting-minutes-de", 118, 148),
        _shift("product-copy-it", 125, 190),
        _shift("umbrella-triage", 200, 230),
    ),
    unused=_QWEN3_ADAPTERS,
)

LLAMA31_0 = ServingReplica(
    name="llama-3.1-8b-0",
    model="llama-3.1-8b",
    version="0.10.2.post2",
    slots=4,
    first_step=5.0,
    shifts=(
        _shift("news-summary", 5, 110),
        _shift("contract-redline-en", 15, 95),
        _shift("medical-coding", 25, 130),
        _shift("kyc-extract", 38, 105),
        _shift("tone-formal-ja", 42, 120),
        _shift("fraud-explainer", 50, 125),
        # It gives up before it gets a slot.
        _shift("returns-triage", 60, 100),
        _shift("news-summary", 140, 200),
        _shift("kyc-extract", 160, 205),
    ),
    unused=("medical-coding-2025",),
)

VLLM_REPLICAS = (QWEN3_0, QWEN3_1, LLAMA31_0)

_A, _B = "m4k2vq8t", "x7d1hn5c"

TRAINING = TwinkleServer(
    name="training",
    model="qwen2.5-7b",
    organisation="Qwen",
    max_loras=5,
    live=(_A, _B),
    ghost="p0rz6wle",
    ghost_adapters=("sft-mathematics-try1", "sft-mathematics-try2", "dpo-helpful-v1"),
    tenants=(
        Tenant(
            "research",
            starts=4,
            ends=230,
            runs=(
                Run("sft-mathematics-r8", _A, 6, 150, rank=8),
                Run("sft-mathematics-r32", _A, 10, 190, rank=32),
                Run("dpo-helpful-v2", _B, 30, 160),
            ),
        ),
        Tenant(
            "support",
            starts=25,
            ends=130,
            runs=(
                Run("triage-en", _A, 28, 128),
                # Outlives its session: an orphan from 130 s to 175 s.
                Run("triage-de", _B, 34, 175, rank=32),
            ),
        ),
        Tenant(
            "search",
            starts=60,
            ends=200,
            runs=(
                Run("rerank-long", _A, 64, 180),
                Run("rerank-short", _B, 66, 196, rank=8),
                Run("query-rewrite", _B, 70, 140),
            ),
        ),
        Tenant(
            "legal",
            starts=85,
            ends=215,
            runs=(Run("clause-tagger", _B, 88, 210, rank=64),),
        ),
    ),
)

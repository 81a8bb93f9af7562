"""Replicas that models have and need, their demand, and hourly and weekly maxima for planning."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.generator.inputs import RATE_WINDOW, Inputs
from alerts.generator.promql import Scope
from alerts.generator.rules import Branch, Either, Recording, record


def rules(inputs: Inputs) -> Iterator[Recording]:
    """The rules in the order in which they depend on each other."""
    s = Scope.of(inputs)
    for what in ("current", "needed"):
        yield record(f"model:lora_{what}_replicas:max", s.per_model(f"lora_model_{what}_replicas"))
    # Without an exporter that sees all replicas, what Prometheus can add up itself.
    named = s.series("lora_adapter_state", 'state=~"active|waiting"')
    yield Recording(
        "model:lora_distinct_adapters:max",
        Either(
            (
                Branch(s.per_model("lora_model_distinct_adapters")),
                Branch(f"count {s.by('model')} (count {s.by('model', 'adapter')} ({named}))"),
            )
        ),
    )
    yield Recording(
        "model:lora_demand_tokens_per_second:max",
        Either(
            (
                Branch(s.per_model("lora_model_observed_tokens_per_second")),
                Branch(f"model:lora_generation_tokens:rate{RATE_WINDOW}"),
            )
        ),
    )
    for name in (
        "model:lora_demand_tokens_per_second:max",
        "model:lora_used:sum",
        "model:lora_distinct_adapters:max",
    ):
        kept = name.rpartition(":")[0]
        yield record(f"{kept}:max1h", f"max_over_time({name}[1h])")
        yield record(f"{kept}:max1w", f"max_over_time({kept}:max1h[1w])")

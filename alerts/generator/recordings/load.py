"""Work: what waits, tokens per second, and how much of the time slots were full.

Counters: the rate first, then the largest over exporters, then the sum over replicas.
"""

from __future__ import annotations

from collections.abc import Iterator

from alerts.generator.inputs import FULL_WINDOW, RATE_WINDOW, Inputs
from alerts.generator.promql import Scope
from alerts.generator.rules import Branch, Clause, Either, Recording, record


def rules(inputs: Inputs) -> Iterator[Recording]:
    """The rules in the order in which they depend on each other."""
    s = Scope.of(inputs)
    yield from _waiting(s)
    for kind in ("prompt", "generation"):
        name = f"lora_{kind}_tokens:rate{RATE_WINDOW}"
        rate = _rate(s, f"lora_replica_{kind}_tokens_total", RATE_WINDOW)
        yield record(f"model:{name}", f"sum {s.by('model')} ({rate})")
        yield record(f"fleet:{name}", f"sum {s.by()} (model:{name})")
    name = f"lora_full:ratio{FULL_WINDOW}"
    full = _rate(s, "lora_replica_full_polls_total", FULL_WINDOW)
    polls = _rate(s, "lora_replica_polls_total", FULL_WINDOW)
    yield record(f"replica:{name}", f"{full} / ({polls} > 0)")
    yield record(
        f"model:{name}", f"sum {s.by('model')} ({full}) / (sum {s.by('model')} ({polls}) > 0)"
    )


def _rate(s: Scope, counter: str, window: str) -> str:
    return s.max_by(f"rate({s.series(counter)}[{window}])", "model", "replica_id")


def _waiting(s: Scope) -> Iterator[Recording]:
    waiting = s.per_replica("lora_waiting")
    yield record("model:lora_waiting:sum", f"sum {s.by('model')} ({waiting})")
    # Adapters that wait; where they are not told, requests that are known to wait for a slot.
    yield Recording(
        "replica:lora_work_waiting:max",
        Either((Branch(waiting), Branch(s.per_replica("lora_replica_requests_deferred")))),
    )
    yield record(
        "model:lora_work_waiting:sum", f"sum {s.by('model')} (replica:lora_work_waiting:max)"
    )
    yield record(
        "replica:lora_requests_waiting:max", s.per_replica("lora_replica_requests_waiting")
    )
    yield record(
        "model:lora_requests_waiting:sum",
        f"sum {s.by('model')} (replica:lora_requests_waiting:max)",
    )
    # Deferred requests are a lower bound, 0 when the batch is full: they do not explain the rest.
    yield record(
        "model:lora_requests_waiting_untold:sum",
        "replica:lora_requests_waiting:max",
        Clause("unless", f"{s.on('model', 'replica_id')} {waiting}"),
        wrap=f"sum {s.by('model')} ({{}})",
    )

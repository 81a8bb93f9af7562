"""What a target's text must say, derived from its status alone, and text read back by others.

Names, types and labels are written out here once more, from the contract and not from the
catalogue, so that neither can change without the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from exporter.exposition.fleet import Exposition
from exporter.exposition.text import EOF
from exporter.fleet import TargetStatus

Series = tuple[str, frozenset[tuple[str, str]]]

STATES = ("active", "waiting", "idle", "offloaded", "registered")


def text_of(statuses: Iterable[TargetStatus], openmetrics: bool, max_adapters: int = 100) -> bytes:
    """The text of a fleet that was never anything else."""
    exposition = Exposition(max_adapters)
    for status in statuses:
        exposition.update(status)
    return exposition.join(openmetrics)


def expected(statuses: Iterable[TargetStatus], max_adapters: int = 100) -> dict[Series, float]:
    """Each series of these targets, and its value."""
    found: dict[Series, float] = {}

    def add(name: str, labels: dict[str, str], value: float | None) -> None:
        if value is None:
            return
        # UTF-8 has no lone surrogates; they become question marks.
        series = (
            name,
            frozenset(
                (key, text.encode(errors="replace").decode()) for key, text in labels.items()
            ),
        )
        assert series not in found, f"{series} told twice"
        found[series] = float(value)

    for status in statuses:
        url = {"target": status.target.url}
        up = None if status.up is None else int(status.up)
        add("lora_target_up", url | {"group": status.target.group}, up)
        if status.reason is not None:
            add("lora_target_failure", url | {"reason": status.reason.value}, 1)
        add("lora_target_polls_total", url, status.polls)
        add("lora_target_poll_failures_total", url, status.failures)
        add("lora_target_last_success_timestamp_seconds", url, status.last_success)
        add("lora_target_poll_duration_seconds", url, status.duration)
        add("lora_target_ghosts", url, status.ghosts)
        for replica in status.replicas:
            row = replica.table
            who = {"model": row.model, "replica_id": replica.replica_id}
            slots = who | {"slot_kind": row.slot_kind.value}
            add("lora_max", slots, row.max)
            add("lora_used", slots, row.used)
            if row.max is not None and row.used is not None:
                add("lora_free", slots, row.max - row.used if row.used < row.max else 0)
            add("lora_resident", who, row.resident)
            add("lora_waiting", who, row.waiting)
            add("lora_registered", who, row.registered)
            add("lora_replica_polls_total", who, replica.polls)
            add("lora_replica_full_polls_total", who, replica.full_polls)
            add("lora_replica_prompt_tokens_total", who, row.prompt_tokens)
            add("lora_replica_generation_tokens_total", who, row.generation_tokens)
            add("lora_replica_requests_running", who, row.requests_running)
            add("lora_replica_requests_waiting", who, row.requests_waiting)
            add("lora_replica_requests_deferred", who, row.requests_deferred)
            add("lora_replica_orphans", who, row.orphans)
            add("lora_replica_oldest_heartbeat_timestamp_seconds", who, row.oldest_heartbeat)
            add("lora_replica_largest_holder_slots", who, row.largest_holder)
            named = sorted(row.adapters, key=lambda one: (STATES.index(one.state.value), one.name))
            for name, state in named[:max_adapters]:
                add("lora_adapter_state", who | {"adapter": name, "state": state.value}, 1)
            add("lora_replica_adapters_dropped", who, len(named[max_adapters:]))
            info = {
                "engine": row.engine,
                "version": row.version or "",
                "slot_kind": row.slot_kind.value,
                "source": row.source.value,
                "node": row.node or "",
                "namespace": "",
                "pod": "",
            }
            add("lora_replica_info", who | info, 1)
    return found


def parsed(text: bytes, openmetrics: bool) -> dict[Series, float]:
    """The text as Prometheus's own Python client reads it; no series may be told twice."""
    if openmetrics:
        families = openmetrics_parser.text_string_to_metric_families(  # type: ignore[no-untyped-call]
            (text + EOF).decode()
        )
    else:
        families = text_parser.text_string_to_metric_families(text.decode())
    found: dict[Series, float] = {}
    for family in families:
        kind = "counter" if family.samples[0].name.endswith("_total") else "gauge"
        assert family.type == kind
        assert family.documentation
        for sample in family.samples:
            series = (sample.name, frozenset(sample.labels.items()))
            assert series not in found, f"{series} told twice"
            found[series] = sample.value
    return found

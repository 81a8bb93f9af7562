"""Series of replicas, their adapters, and targets."""

from __future__ import annotations

from exporter.catalogue.family import Family

_REPLICA = ("model", "replica_id")
_SLOTS = (*_REPLICA, "slot_kind")

REPLICA_FAMILIES: tuple[Family, ...] = (
    Family(
        "lora_max",
        "gauge",
        _SLOTS,
        "Adapter slots of the replica, from the engine or, where it does not tell, the operator.",
    ),
    Family(
        "lora_used",
        "gauge",
        _SLOTS,
        "Adapter slots that a new adapter cannot take now. lora_replica_info says how it was "
        "learnt (source).",
    ),
    Family(
        "lora_free",
        "gauge",
        _SLOTS,
        "Adapter slots that a new adapter can take now, without waiting and without being "
        "refused: lora_max - lora_used, at least 0.",
    ),
    Family(
        "lora_resident",
        "gauge",
        _REPLICA,
        "Adapters whose weights sit in a slot, idle ones included, where the engine tells.",
        "experimental",
    ),
    Family(
        "lora_waiting",
        "gauge",
        _REPLICA,
        "Adapters that have work but no slot, where the engine tells.",
    ),
    Family(
        "lora_registered",
        "gauge",
        _REPLICA,
        "Adapters that the replica accepts by name, from the engine's list of models.",
    ),
    Family(
        "lora_replica_adapters_dropped",
        "gauge",
        _REPLICA,
        "Adapters left out of lora_adapter_state because of poll.max_adapters.",
    ),
    Family(
        "lora_replica_polls_total",
        "counter",
        _REPLICA,
        "Readings of the replica's slots by this exporter.",
    ),
    Family(
        "lora_replica_full_polls_total",
        "counter",
        _REPLICA,
        "Readings by this exporter that found no free slot.",
    ),
    Family(
        "lora_replica_prompt_tokens_total",
        "counter",
        _REPLICA,
        "Prompt tokens processed, passed through from the engine.",
    ),
    Family(
        "lora_replica_generation_tokens_total",
        "counter",
        _REPLICA,
        "Tokens generated, passed through from the engine.",
    ),
    Family(
        "lora_replica_requests_running",
        "gauge",
        _REPLICA,
        "Requests in the running batch, passed through from the engine.",
    ),
    Family(
        "lora_replica_requests_waiting",
        "gauge",
        _REPLICA,
        "Requests that wait for whatever reason, passed through from the engine.",
    ),
    Family(
        "lora_replica_requests_deferred",
        "gauge",
        _REPLICA,
        "Requests that wait for an adapter slot or another such cause, where the engine tells "
        "them apart; a lower bound.",
    ),
    Family(
        "lora_replica_orphans",
        "gauge",
        _REPLICA,
        "Held slots whose session is gone, from the engine's state store.",
    ),
    Family(
        "lora_replica_oldest_heartbeat_timestamp_seconds",
        "gauge",
        _REPLICA,
        "Unix time of the oldest sign of life among the sessions that hold slots, from the "
        "engine's state store.",
    ),
    Family(
        "lora_replica_largest_holder_slots",
        "gauge",
        _REPLICA,
        "Slots of the session that holds the most, from the engine's state store.",
    ),
)
"""Families with one number for a replica, in the order in which they are rendered."""

ADAPTER_STATE = Family(
    "lora_adapter_state",
    "gauge",
    (*_REPLICA, "adapter", "state"),
    "1 for the adapter's present state, the first that holds of active, waiting, idle, offloaded, "
    "registered. At most poll.max_adapters for a replica.",
)

REPLICA_INFO = Family(
    "lora_replica_info",
    "gauge",
    (
        *_REPLICA,
        "engine",
        "version",
        "slot_kind",
        "source",
        "node",
        "namespace",
        "pod",
    ),
    "What the replica is, and how lora_used was learnt (source). namespace and pod are empty for "
    "static targets. Always 1.",
)

TARGET_FAILURE = Family(
    "lora_target_failure",
    "gauge",
    ("target", "reason"),
    "1 while the target is down, for the reason of the last poll.",
)

TARGET_FAMILIES: tuple[Family, ...] = (
    Family(
        "lora_target_up",
        "gauge",
        ("target", "group"),
        "1 when the last poll of the target gave an adapter table, else 0.",
    ),
    TARGET_FAILURE,
    Family(
        "lora_target_polls_total",
        "counter",
        ("target",),
        "Polls of the target by this exporter.",
    ),
    Family(
        "lora_target_poll_failures_total",
        "counter",
        ("target",),
        "Polls of the target by this exporter that gave no adapter table.",
    ),
    Family(
        "lora_target_last_success_timestamp_seconds",
        "gauge",
        ("target",),
        "Unix time of the last poll that gave an adapter table.",
    ),
    Family(
        "lora_target_poll_duration_seconds",
        "gauge",
        ("target",),
        "Duration of the last poll.",
    ),
    Family(
        "lora_target_ghosts",
        "gauge",
        ("target",),
        "Rows of replicas that no longer live, found in the engine's state store.",
    ),
)

FLEET_FAMILIES: tuple[Family, ...] = (
    *REPLICA_FAMILIES,
    ADAPTER_STATE,
    REPLICA_INFO,
    *TARGET_FAMILIES,
)
"""All that is rendered from the fleet, in order."""

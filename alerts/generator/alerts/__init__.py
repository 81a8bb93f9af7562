"""The alerts, one file for each, in the groups in which they are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alerts.generator.alerts import (
    adapter_never_resident,
    adapters_dropped,
    adapters_duplicated,
    adapters_not_everywhere,
    adapters_thrash,
    adapters_waiting,
    data_stale,
    discovery_stale,
    engine_misconfigured,
    exporter_absent,
    exporter_down,
    exporter_instance_down,
    ghosts,
    holder_has_most,
    inventory_stale,
    max_disagrees,
    model_does_not_fit,
    model_needs_replicas,
    model_stops_others,
    model_unplaced,
    model_unplanned,
    more_adapters_than_slots,
    quota_stops_model,
    reload_failed,
    replica_full_others_free,
    replica_loss_not_survived,
    replicas_lost,
    requests_waiting,
    slots_abandoned,
    slots_almost_exhausted,
    slots_exhausted,
    slots_filling_up,
    slots_full,
    slots_orphaned,
    slots_over_allocated,
    slots_reported_exhausted,
    slots_unknown,
    slots_without_store,
    target_down,
)
from alerts.generator.rules import Definition

GROUPS: Mapping[str, tuple[Definition[Any], ...]] = {
    "lora-exporter": (
        exporter_down.ALERT,
        exporter_absent.ALERT,
        exporter_instance_down.ALERT,
        reload_failed.ALERT,
        inventory_stale.ALERT,
        discovery_stale.ALERT,
        data_stale.ALERT,
    ),
    "lora-slots": (
        slots_exhausted.ALERT,
        slots_reported_exhausted.ALERT,
        slots_almost_exhausted.ALERT,
        slots_filling_up.ALERT,
        replica_loss_not_survived.ALERT,
    ),
    "lora-cache": (
        adapters_waiting.ALERT,
        requests_waiting.ALERT,
        slots_full.ALERT,
        more_adapters_than_slots.ALERT,
        adapters_duplicated.ALERT,
        adapters_thrash.ALERT,
        adapter_never_resident.ALERT,
    ),
    "lora-replicas": (
        target_down.ALERT,
        engine_misconfigured.ALERT,
        replicas_lost.ALERT,
        replica_full_others_free.ALERT,
        adapters_not_everywhere.ALERT,
        max_disagrees.ALERT,
        slots_unknown.ALERT,
        adapters_dropped.ALERT,
    ),
    "lora-planning": (
        model_needs_replicas.ALERT,
        model_does_not_fit.ALERT,
        quota_stops_model.ALERT,
        model_stops_others.ALERT,
        model_unplaced.ALERT,
        model_unplanned.ALERT,
    ),
    "lora-held": (
        slots_orphaned.ALERT,
        slots_abandoned.ALERT,
        ghosts.ALERT,
        holder_has_most.ALERT,
        slots_over_allocated.ALERT,
        slots_without_store.ALERT,
    ),
}
"""Groups by topic, the alerts in them by urgency. A new alert is registered here."""

"""Conditions and links that several alerts share."""

from __future__ import annotations

from alerts.generator.inputs import FULL_WINDOW
from alerts.generator.rules import Clause, Context


def view(dashboard: str, *labels: str) -> str:
    """A dashboard's path, its variables set from the alert's labels."""
    variables = {"model": "model", "replica_id": "replica", "owner": "owner"}
    query = "&".join(
        f"var-{variables[label]}={{{{ $labels.{label} | urlquery }}}}" for label in labels
    )
    return f"/d/{dashboard}{'?' if query else ''}{query}"


def kept(series: str, matchers: str, context: Context, *labels: str) -> str:
    """A model's number as it is scraped, whichever exporter tells it; survives a missed scrape."""
    s = context.scope
    return s.max_by(latest(s.series(series, matchers), context), "model", *labels)


def latest(selector: str, context: Context) -> str:
    """The newest value; a missed scrape does not make it vanish."""
    return f"last_over_time({selector}[{context.inputs.common.dip.value}])"


def on_gateway_total(operator: str, context: Context) -> Clause:
    """Whether all that is known is the total that a gateway reports."""
    rows = latest('replica:lora_replica_info:topk{source="gateway"}', context)
    return Clause(operator, f"{context.scope.on('model')} {rows}")


def all_slots_known(context: Context) -> Clause:
    """Every replica that answers tells its free slots."""
    unknown = latest("model:lora_replicas_unknown_slots:count", context)
    return Clause("unless", f"{context.scope.on('model')} {unknown} > 0")


def steady(context: Context, window: str = "") -> Clause:
    """No replica came or went for a while: not during a rollout."""
    window = window or context.inputs.common.steady.value
    changes = f"changes(model:lora_replicas_seen:count[{window}]) > 0"
    return Clause("unless", f"{context.scope.on('model')} {changes}")


def mostly_full(context: Context) -> Clause:
    """The model's cache of slots was full most of the time."""
    ratio = latest(f"model:lora_full:ratio{FULL_WINDOW}", context)
    share = context.inputs.common.full_share.value
    return Clause("and", f"{context.scope.on('model')} {ratio} >= {share:g}")


def work_waits(context: Context) -> str:
    """Adapters, or requests that are known to want a slot, that wait on average."""
    return _average("model:lora_work_waiting:sum", context)


def requests_wait(context: Context) -> str:
    """Requests that wait, on replicas that do not tell for what."""
    return _average("model:lora_requests_waiting_untold:sum", context)


def _average(series: str, context: Context) -> str:
    common = context.inputs.common
    return f"avg_over_time({series}[{common.waiting_window.value}]) >= {common.waiting.value:g}"


def evictable(context: Context) -> Clause:
    """The model has slots that idle adapters give up."""
    slots = latest('model:lora_max:sum{slot_kind="evictable"}', context)
    return Clause("and", f"{context.scope.on('model')} {slots} > 0")

"""Some replicas of a model accept adapters that others refuse."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, steady, view
from alerts.generator.inputs import AlertLimits
from alerts.generator.rules import Branch, Clause, Context, Definition, Either, Text
from alerts.generator.words import counted


def _expression(context: Context, limits: AlertLimits) -> Either:
    s = context.scope
    # Of engines that list what is registered; sessions of training servers are no list.
    listing = kept("lora_registered", "", context, "replica_id")
    named = kept("lora_adapter_state", "", context, "replica_id", "adapter")
    listed = f"{named} * {s.on('model', 'replica_id')} group_left () ({listing} * 0 + 1)"
    holders = f"count {s.by('model', 'adapter')} ({listed})"
    replicas = f"count {s.by('model')} ({listing})"
    some = f"{holders} < {s.on('model')} group_left () {replicas}"
    dropped = kept("lora_replica_adapters_dropped", "", context)
    most, least = (f"{how} {s.by('model')} ({listing})" for how in ("max", "min"))
    return Either(
        (
            Branch(
                f"count {s.by('model')} ({some})",
                (Clause("unless", f"{s.on('model')} {dropped} > 0"), steady(context)),
            ),
            # Where not all are named, their numbers still tell.
            Branch(f"{most} - {least} > 0", (steady(context),)),
        )
    )


def _text(context: Context, limits: AlertLimits) -> Text:
    return Text(
        "Adapters are registered on some replicas of a model and not on all.",
        f"{context.model()}: {counted('adapter is', 'adapters are')} registered on some replicas "
        "only. Requests fail on the others.",
        view("lora-replicas", "model"),
    )


ALERT = Definition("LoraAdaptersNotEverywhere", AlertLimits, _expression, _text)

"""What there is: replicas, targets, exporters, and each model's class and owner."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.generator.inputs import Inputs
from alerts.generator.promql import CARD, LOOPBACK, Scope
from alerts.generator.rules import Branch, Clause, Either, Recording, record

KEPT = "5m"
"""How long a missed scrape may last until class and owner are forgotten."""


def rules(inputs: Inputs) -> Iterator[Recording]:
    """The rules in the order in which they depend on each other."""
    s = Scope.of(inputs)
    replica = ("model", "replica_id")
    # One row for each replica, also while two exporters disagree.
    info = s.max_by(
        s.series("lora_replica_info"), *replica, "engine", "version", "slot_kind", "source"
    )
    yield record("replica:lora_replica_info:topk", f"topk {s.by(*replica)} (1, {info})")
    yield record(
        "model:lora_replicas_up:count", f"count {s.by('model')} (replica:lora_replica_info:topk)"
    )
    # Of one moment as a missed scrape shows it, and those seen since the last few scrapes.
    seen = f"last_over_time({s.series('lora_replica_info')}[{inputs.common.dip.value}])"
    yield record(
        "model:lora_replicas_seen:count",
        f"count {s.by('model')} (count {s.by(*replica)} ({seen}))",
    )
    yield record(
        "model:lora_replicas_down:max", s.per_model("lora_model_replicas", 'state="unknown"')
    )
    yield record(
        "model:lora_replicas_unknown_slots:count",
        "replica:lora_replica_info:topk",
        Clause("unless", f"{s.on(*replica)} replica:lora_free:max"),
        wrap=f"count {s.by('model')} ({{}})",
    )
    version = 'replica:lora_replica_info:topk{version!=""}'
    slots = f"replica:lora_max:max * {s.on(*replica)} group_left (engine, version) {version}"
    alike = s.by("model", "engine", "version", "slot_kind")
    yield record("model:lora_max:spread", f"max {alike} ({slots}) - min {alike} ({slots})")
    yield record("fleet:lora_replicas_up:sum", f"sum {s.by()} (model:lora_replicas_up:count)")
    yield record("fleet:lora_replicas_down:sum", f"sum {s.by()} (model:lora_replicas_down:max)")
    yield from _targets(s)
    yield _card(s)


def _targets(s: Scope) -> Iterator[Recording]:
    far, near = f'target!~"{LOOPBACK}"', f'target=~"{LOOPBACK}"'
    for name, label in (("lora_target_up", "group"), ("lora_target_failure", "reason")):
        # All sidecars may name their target http://127.0.0.1:8000: the scrape tells them apart.
        yield Recording(
            f"target:{name}:max",
            Either(
                (
                    Branch(s.max_by(s.series(name, far), "target", label)),
                    Branch(s.max_by(s.series(name, near), "instance", "target", label)),
                )
            ),
        )
    yield record("fleet:lora_targets_up:sum", f"sum {s.by()} (target:lora_target_up:max)")
    yield record(
        "fleet:lora_targets_down:sum",
        f"count {s.by()} (target:lora_target_up:max) - sum {s.by()} (target:lora_target_up:max)",
    )
    yield record(
        "job:lora_remote_targets:count", f"count {s.by('job')} ({s.series('lora_target_up', far)})"
    )
    yield record(
        "job:lora_sidecar_targets:count",
        f"count {s.by('job')} ({s.series('lora_target_up', near)})",
    )


def _card(s: Scope) -> Recording:
    """One row for each model. A card with an owner wins over exporters that have no card."""
    told = [
        f"last_over_time({s.series('lora_model_info', matcher)}[{KEPT}]){weight}"
        for matcher, weight in (('owner!=""', " * 3"), ('class!=""', " * 2"), ("", ""))
    ]
    replicas = f"last_over_time({s.series('lora_replica_info')}[{KEPT}])"
    return Recording(
        CARD,
        Either(
            (
                Branch(f"max {s.by('model', 'class', 'owner')} ({told[0]})"),
                Branch(f"max {s.by('model', 'class', 'owner')} ({told[1]})"),
                Branch(f"max {s.by('model', 'class', 'owner')} ({told[2]})"),
                Branch(f"max {s.by('model')} ({replicas}) * 0"),
            ),
            f"group {s.by('model', 'class', 'owner')} (topk {s.by('model')} (1, {{}}))",
        ),
    )

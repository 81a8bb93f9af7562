"""PromQL that several panels share.

Everything is first reduced to one number for a replica or model, so that two exporters on one fleet
double nothing. Of free slots the least counts, which is what the most used slots leave.
"""

from __future__ import annotations

MODEL = 'model=~"$model"'
REPLICA = f'{MODEL},replica_id=~"$replica"'
LOOPBACK = r'"https?://(localhost|127\\.[0-9.]+|\\[::1\\])(:.*|/.*)?"'
SLOTS_BY = "by (model, replica_id, slot_kind)"
MODEL_SLOTS_BY = "by (model, slot_kind)"


STATES = {"active": 4, "waiting": 5, "idle": 3, "offloaded": 2, "registered": 1}
CARD = f"topk by (model) (1, group by (model, class, owner) (lora_model_info{{{MODEL}}}))"
"""Each model's class and owner, once."""


def per_model(name: str, *labels: str, matchers: str = "") -> str:
    """A model's number, whichever exporter tells it."""
    by = ", ".join(("model", *labels))
    within = f"{MODEL},{matchers}" if matchers else MODEL
    return f"max by ({by}) ({name}{{{within}}})"


def per_replica(name: str, *labels: str, within: str = MODEL) -> str:
    """A replica's number, whichever exporter tells it."""
    by = ", ".join(("model", "replica_id", *labels))
    return f"max by ({by}) ({name}{{{within}}})"


def replica_rate(name: str, within: str = MODEL) -> str:
    """How fast a replica's counter grows, per second."""
    return f"max by (model, replica_id) (rate({name}{{{within}}}[$__rate_interval]))"


def per_target(name: str, *labels: str) -> str:
    """A target's number, whichever exporter tells it.

    The target of a sidecar is at an address that says nothing, so there the exporter tells them
    apart; elsewhere the label stays empty.
    """
    return f"({remote_target(name, *labels)} or {beside_target(name, *labels)})"


def remote_target(name: str, *labels: str) -> str:
    """The number of a target with an address of its own."""
    by = ", ".join(("target", *labels))
    return f"max by ({by}) ({name}{{target!~{LOOPBACK}}})"


def beside_target(name: str, *labels: str) -> str:
    """The number of a target beside its exporter."""
    by = ", ".join(("instance", "target", *labels))
    return f"max by ({by}) ({name}{{target=~{LOOPBACK}}})"


def replica_slots(name: str, within: str = MODEL) -> str:
    """Slots of each replica and kind: `max`, `used` or `free`."""
    reduce = "min" if name == "free" else "max"
    return f"{reduce} {SLOTS_BY} (lora_{name}{{{within}}})"


def model_slots(name: str) -> str:
    """Slots of each model and kind, added up over the replicas that tell them."""
    return f"sum {MODEL_SLOTS_BY} ({replica_slots(name)})"


def model_fill() -> str:
    """Share of a model's slots that is used, of replicas that tell both numbers."""
    most, used = replica_slots("max"), replica_slots("used")
    return f"sum {MODEL_SLOTS_BY} ({used}) / sum {MODEL_SLOTS_BY} ({most} and {used})"


def replica_fill(within: str = MODEL) -> str:
    """Share of each replica's slots that is used."""
    return f"{replica_slots('used', within)} / {replica_slots('max', within)}"


def work_waiting() -> str:
    """Adapters, or where only those are told requests, that wait for a slot, of each replica."""
    return f"{per_replica('lora_waiting')} or {per_replica('lora_replica_requests_deferred')}"


def more() -> str:
    """Replicas that a model needs beyond those it has; absent where that is unknown."""
    needed = per_model("lora_model_needed_replicas")
    return f"clamp_min({needed} - {per_model('lora_model_current_replicas')}, 0)"


def out_since() -> str:
    """Seconds for which each model has been out of slots, at most six hours."""
    free = model_slots("free")
    last_free = f"max_over_time((0 * ({free} > 0) + time())[6h:30s])"
    return f"0 * ({free} == 0) + (time() - {last_free}) or 0 * ({free} == 0) + 21600"


def after_loss() -> str:
    """Free slots that are left when the largest replica dies and its adapters go elsewhere."""
    most = f"max {MODEL_SLOTS_BY} ({replica_slots('max')} and {replica_slots('free')})"
    return f"{model_slots('free')} - {most}"


def runs_out_in() -> str:
    """Seconds until a model that is at its lowest in half an hour runs out, if that is sooner.

    A horizon beyond the window would turn one lost slot into a forecast of none.
    """
    free = f"({model_slots('free')})[30m:1m]"
    lowest = f"{model_slots('free')} <= min_over_time({free})"
    falling = f"deriv({free}) < 0 and changes({free}) >= 3"
    return f"(({lowest}) / -({falling})) < 1800 > 0"


def for_each_kind(expression: str) -> str:
    """A model's number on each of the rows that the model has in a table of slots."""
    kinds = f"group {MODEL_SLOTS_BY} (lora_max{{{MODEL}}})"
    rows = f"{kinds} or on (model) group by (model) (lora_model_info{{{MODEL}}})"
    return f"({expression}) * on (model) group_right () ({rows})"


def most(expression: str, count: int) -> str:
    """The series that reach most in the chosen time: the same ones at each moment of it."""
    reached = f"max_over_time(({expression})[$__range:$__interval] @ end())"
    return f"({expression}) and topk({count}, {reached})"


def known_or(expression: str, rows: str) -> str:
    """The expression for these rows, -1 where it has nothing."""
    return f"({expression}) and ({rows}) or 0 * ({rows}) - 1"


def first(name: str, label: str) -> str:
    """One of the values of a label, for each model."""
    return f"topk by (model) (1, {per_model(name, label)} > 0)"


def answering() -> str:
    """Replicas of each model whose table is known."""
    ready = per_model("lora_model_replicas", matchers='state="ready"')
    read = f"group by (model, replica_id) (lora_replica_info{{{MODEL}}})"
    return f"{ready} or on (model) count by (model) ({read})"


def silent() -> str:
    """Replicas of each model that count as current and whose table is not known."""
    return per_model("lora_model_replicas", matchers='state="unknown"')


def otherwise(expression: str, words: str, known: str = "lora_max") -> str:
    """The expression, or one row of -1 that says in words that there is nothing.

    Without any of the series `known` there is no row: silence must not look like good news.
    """
    row = f'label_replace(0 * count({known}) - 1, "note", "{words}", "", "")'
    return f"({expression}) or on () {row}"


def adapter_state(*states: str) -> str:
    """The state of each adapter on each replica, as a number (see words.STATE)."""

    def of(state: str) -> str:
        matchers = f'{REPLICA},state="{state}"'
        return per_replica("lora_adapter_state", "adapter", within=matchers)

    return " or ".join(f"{STATES[state]} * {of(state)}" for state in states)


def next_step() -> str:
    """What to do about each model, most urgent first, as a number (see words.NEXT_STEP)."""
    free, more_ = f"min by (model) ({model_slots('free')})", more()
    room = per_model("lora_model_headroom_replicas", matchers='room="free"')
    steps = (
        (8, f"{silent()} > 0 and {free} == 0"),
        (7, f"{more_} > 0 and {per_model('lora_model_fits')} == 0"),
        (6, f"{more_} > 0 and {more_} > {room}"),
        (5, f"{more_} > 0 and {more_} <= {room}"),
        (4, f"{more_} > 0"),
        (3, f"{free} == 0"),
        (2, f"{silent()} > 0"),
        (1, f"{per_model('lora_model_info')} unless {free}"),
        (0, free),
    )
    return " or ".join(f"0 * ({when}) + {number}" for number, when in steps)

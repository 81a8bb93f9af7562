"""Series of models, owners and nodes: what is planned, and what the plans are made of."""

from __future__ import annotations

from exporter.catalogue.family import Family

_MODEL = ("model",)
_AMOUNT = ("resource", "unit")


def _gauge(name: str, labels: tuple[str, ...], text: str) -> Family:
    return Family(name, "gauge", labels, text)


MODEL_INFO = _gauge(
    "lora_model_info",
    (*_MODEL, "class", "owner"),
    "The model's class and owner from its card; empty without. Always 1.",
)
MODEL_REPLICAS = _gauge(
    "lora_model_replicas",
    (*_MODEL, "state"),
    "Replicas by state: ready (their table is known), unknown (they count as current and their "
    "table is not known); starting and draining where the inventory tells.",
)
CURRENT = _gauge(
    "lora_model_current_replicas",
    _MODEL,
    "Replicas that hold capacity, whether or not they can be read: the larger of what the "
    "inventory places and what was discovered; on Kubernetes those bound to a node and not "
    "terminating.",
)
NEEDED = _gauge(
    "lora_model_needed_replicas",
    _MODEL,
    "Replicas that the load needs. Absent while that is not known; lora_model_unplanned says why.",
)
NEEDED_BY = _gauge(
    "lora_model_needed_replicas_by",
    (*_MODEL, "constraint"),
    "Replicas that throughput, slots or minimum alone would need; the card's spare replicas come "
    "on top of the largest.",
)
SATURATED = _gauge(
    "lora_model_saturated",
    _MODEL,
    "1 when for two minutes no readable replica had a free slot and work waited for one, so that "
    "lora_model_needed_replicas is a lower bound, else 0.",
)
DISTINCT_ADAPTERS = _gauge(
    "lora_model_distinct_adapters",
    _MODEL,
    "Distinct adapters with work, over all replicas, where engines name them. lora_used far "
    "above it means that the same adapter sits on many replicas.",
)
HEADROOM = _gauge(
    "lora_model_headroom_replicas",
    (*_MODEL, "room"),
    "Replicas that fit besides the current ones: in what is free, and (preempting) further ones "
    "by stopping replicas of lower-ranked classes. Models count on the same room: do not add.",
)
FITS = _gauge(
    "lora_model_fits",
    _MODEL,
    "1 when the replicas that are needed beyond the current ones fit into the headroom, else 0.",
)
UNPLACED = _gauge(
    "lora_model_unplaced_replicas",
    _MODEL,
    "Needed replicas that find no room when those of all models are placed together, highest "
    "rank first.",
)
BLOCKED = _gauge(
    "lora_model_blocked",
    (*_MODEL, "reason"),
    "1 for what stops the replicas that are needed or, where all of them fit, one more, even by "
    "stopping others.",
)
WOULD_PREEMPT = _gauge(
    "lora_model_would_preempt_replicas",
    (*_MODEL, "victim"),
    "Replicas of the model victim that would be stopped to reach lora_model_needed_replicas.",
)
OBSERVED = _gauge(
    "lora_model_observed_tokens_per_second",
    _MODEL,
    "Tokens per second that the replicas served between their last two readings, added up; of "
    "the kind that the measurement counts, without one generated tokens.",
)
TARGET_TOKENS = _gauge(
    "lora_model_target_tokens_per_second",
    _MODEL,
    "Tokens per second that the model is to serve, from its card.",
)
MEASURED = _gauge(
    "lora_model_measured_tokens_per_second",
    (*_MODEL, "profile"),
    "Tokens per second that one replica served while it kept its service level, from the "
    "measurement in force.",
)
MIN_REPLICAS = _gauge(
    "lora_model_min_replicas", _MODEL, "Fewest replicas of the model, from its card."
)
MAX_REPLICAS = _gauge(
    "lora_model_max_replicas", _MODEL, "Most replicas of the model, from its card."
)
UNPLANNED = _gauge(
    "lora_model_unplanned",
    (*_MODEL, "reason"),
    "1 for why needed replicas or headroom are not told.",
)
OWNER_QUOTA = _gauge(
    "lora_owner_quota",
    ("owner", *_AMOUNT),
    "What the owner's replicas may hold together, from the settings.",
)
OWNER_QUOTA_USED = _gauge(
    "lora_owner_quota_used",
    ("owner", *_AMOUNT),
    "What the owner's current replicas hold of that, by their cards.",
)
NODE_ALLOCATABLE = _gauge(
    "lora_node_allocatable",
    ("node", *_AMOUNT),
    "What the node has for replicas, from the inventory.",
)
NODE_FREE = _gauge(
    "lora_node_free",
    ("node", *_AMOUNT),
    "What is free on the node: allocatable minus everything placed on it. Negative where more "
    "is placed than there is.",
)

PLAN_FAMILIES: tuple[Family, ...] = (
    MODEL_INFO,
    MODEL_REPLICAS,
    CURRENT,
    NEEDED,
    NEEDED_BY,
    SATURATED,
    DISTINCT_ADAPTERS,
    HEADROOM,
    FITS,
    UNPLACED,
    BLOCKED,
    WOULD_PREEMPT,
    OBSERVED,
    TARGET_TOKENS,
    MEASURED,
    MIN_REPLICAS,
    MAX_REPLICAS,
    UNPLANNED,
    OWNER_QUOTA,
    OWNER_QUOTA_USED,
    NODE_ALLOCATABLE,
    NODE_FREE,
)
"""All that is rendered from plans, in order."""

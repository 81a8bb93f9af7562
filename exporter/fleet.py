"""The vocabulary: what targets say, as frozen dataclasses. Imports nothing of ours.

Unknown is `None`, never 0: an unknown number has no series, is `null` in JSON and `?` on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class SlotKind(StrEnum):
    """How a slot is given back."""

    EXCLUSIVE = "exclusive"
    """Held until released: full means that the next adapter is refused."""
    EVICTABLE = "evictable"
    """A cache: idle adapters give way, so only adapters with work count as used."""


class Source(StrEnum):
    """How `used` was learnt."""

    SLOTS = "slots"
    RESIDENCY = "residency"
    ACTIVITY = "activity"
    ACTIVITY_UPPER_BOUND = "activity_upper_bound"
    GATEWAY = "gateway"
    STATE = "state"
    STATE_RAY = "state+ray"
    OPERATOR = "operator"


class Reason(StrEnum):
    """Why a target gave no slots. A closed set, because it is a label."""

    CONNECT = "connect"
    TIMEOUT = "timeout"
    TLS = "tls"
    AUTH = "auth"
    STATUS = "status"
    TOO_LARGE = "too_large"
    FORMAT = "format"
    NO_LORA = "no_lora"
    NO_STATS = "no_stats"
    AMBIGUOUS = "ambiguous"
    UNSUPPORTED = "unsupported"


class AdapterState(StrEnum):
    """An adapter's present state, in the order in which the first that holds is told."""

    ACTIVE = "active"
    """Has requests in flight, or is held by a session."""
    WAITING = "waiting"
    """Has work but no slot."""
    IDLE = "idle"
    """Resident without work."""
    OFFLOADED = "offloaded"
    """In host memory."""
    REGISTERED = "registered"
    """Accepted by name, nothing more is known."""


STATE_ORDER: Mapping[AdapterState, int] = {state: n for n, state in enumerate(AdapterState)}


class Adapter(NamedTuple):
    """One LoRA adapter, by the name requests use. A tuple, as tables hold thousands."""

    name: str
    state: AdapterState


def order_adapters(states: Mapping[str, AdapterState]) -> tuple[Adapter, ...]:
    """Adapters in the order in which a cap keeps them: by state, then by name."""
    ranked = sorted(states.items(), key=lambda item: (STATE_ORDER[item[1]], item[0]))
    return tuple(Adapter(name, state) for name, state in ranked)


@dataclass(frozen=True, slots=True)
class ReplicaTable:
    """What is known of one replica's adapters and slots at one moment.

    Counts are adapters or slots of the whole replica, all its engines together. Token counts are
    totals since the engine started. `replica` is None where the target is the replica; whoever
    polled it knows its id.
    """

    model: str
    engine: str
    slot_kind: SlotKind
    source: Source
    replica: str | None = None
    version: str | None = None
    node: str | None = None
    max: int | None = None
    used: int | None = None
    resident: int | None = None
    waiting: int | None = None
    registered: int | None = None
    adapters: tuple[Adapter, ...] = ()
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    requests_deferred: float | None = None
    orphans: int | None = None
    oldest_heartbeat: float | None = None
    """Unix time, seconds."""
    largest_holder: int | None = None
    """Slots of the holder with the most."""

    @property
    def free(self) -> int | None:
        """Slots that a new adapter can take now: max - used, at least 0."""
        if self.max is None or self.used is None:
            return None
        return max(self.max - self.used, 0)


@dataclass(frozen=True, slots=True)
class AdapterTable:
    """What one target says. Most targets are one replica, a gateway speaks for many."""

    replicas: tuple[ReplicaTable, ...]
    ghosts: int | None = None
    """Rows of replicas that no longer live; None where nobody could tell."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The outcome of one poll.

    A reason with a table means that part of it could be read (counters, registered adapters), but
    not the slots. `detail` is a sentence for people: it never contains what a target sent in
    confidence (bodies, tokens, ids of sessions).
    """

    table: AdapterTable | None = None
    reason: Reason | None = None
    detail: str = ""

    @property
    def up(self) -> bool:
        """Whether the poll gave a whole table."""
        return self.table is not None and self.reason is None


@dataclass(frozen=True, slots=True)
class CustomMap:
    """Where an endpoint that no reader knows keeps what is wanted: paths into its answer."""

    path: str
    """Of the endpoint, after the target's address."""
    format: str
    """`json` or `prometheus`."""
    slot_kind: SlotKind
    paths: tuple[tuple[str, str], ...]
    """What is wanted, such as `max`, and the path to it."""
    adapter_label: str = ""
    """Label that names an adapter, where the format is `prometheus`."""


@dataclass(frozen=True, slots=True)
class Target:
    """One address that is polled, and how to read it."""

    url: str
    """Base address without credentials, query and trailing slash."""
    group: str
    engine: str = "auto"
    model: str | None = None
    """Overrides the model's own name."""
    replica: str | None = None
    """Overrides the replica's id, where the target is one replica."""
    node: str = ""
    """Node, namespace and pod, where discovery tells them."""
    namespace: str = ""
    pod: str = ""
    max: int | None = None
    """Slots of one replica, told by the operator for where the engine does not tell."""
    base_uses_slot: bool = False
    """Whether requests of the base model take a slot that the engine does not count."""
    prefix: str = ""
    """Path before those of the engine, where the address has none of its own."""
    metrics_path: str | None = None
    """Path of the engine's series, where it is not the usual one."""
    model_relabel: tuple[tuple[str, str], ...] = ()
    """Patterns of model names, and what stands for a name that the first of them matches whole."""
    state_url: str | None = None
    key_prefix: str = ""
    ray_dashboard: str | None = None
    custom: CustomMap | None = None

    @property
    def base(self) -> str:
        """The address with its prefix, before the paths of the engine."""
        return self.url + self.prefix

    def metrics_url(self, usual: str = "/metrics") -> str:
        """Where the engine's series are."""
        return self.base + (usual if self.metrics_path is None else self.metrics_path)


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A replica's last table, and how often it was read and found full."""

    table: ReplicaTable
    replica_id: str
    polls: int | None = None
    full_polls: int | None = None


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """A target after its last poll. Times are unix seconds; None: has not happened."""

    target: Target
    engine: str | None = None
    """The engine that was detected or configured."""
    up: bool | None = None
    reason: Reason | None = None
    detail: str = ""
    polls: int | None = None
    failures: int | None = None
    last_success: float | None = None
    table_at: float | None = None
    """When the last table was read, whole or in part."""
    duration: float | None = None
    """Of the last poll, seconds."""
    replicas: tuple[ReplicaStatus, ...] = ()
    ghosts: int | None = None
    models: tuple[str, ...] = ()
    """The model of each replica that the target was last known to speak for, stale or not."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """All targets at one moment, ordered by address."""

    targets: tuple[TargetStatus, ...] = ()
    at: float = field(default=0.0)
    undiscovered: frozenset[str] = frozenset()
    """Groups whose targets were not all found yet."""

    def replicas(self) -> Iterable[tuple[TargetStatus, ReplicaStatus]]:
        """Each replica that has a table, with the target that told of it."""
        for status in self.targets:
            for replica in status.replicas:
                yield status, replica

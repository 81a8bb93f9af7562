"""Twinkle: a training server on Ray Serve. Slots are exclusive, held until released.

Three levels, each told by the table's `source`:

- `gateway`: `GET {prefix}/twinkle/capacity_info`, one total over all models and replicas. It is
  often untrue (ghosts of killed replicas, replicas that nobody asked yet), and 0/0/0 is what a
  cold start and a flushed store say: unknown.
- `state`: the rows of the server's state store, per replica and model. max =
  `replica::<id>::max_loras`; used = the `model::*` rows that name the replica.
- `state+ray`: the same, joined with Ray's dashboard: rows of replicas that no longer live are
  ghosts, left out and counted apart; live replicas without rows have unknown slots.

The store holds owners' tokens and session ids. They end in this file: rows are counted and
adapters are named by the `adapter_name` that their owner gave, nothing else leaves.

Wire format: recorded from Twinkle 0.5.1, and `GET /api/serve/applications/` of Ray 2.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import orjson

from exporter.engines.base import About, Answers, Engine, Request, count, failed, json_object, text
from exporter.fleet import (
    AdapterState,
    AdapterTable,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
    order_adapters,
)

DEFAULT_PREFIX = "/api/v1"
STATE_PATTERNS = ("replica::*::max_loras", "model::*", "session::*")
NAMES_MAX_AGE = 60.0

_REPLICA_KEY = re.compile(r"replica::(.+)::max_loras", re.DOTALL)
_DEAD_STATES = frozenset({"STOPPED"})
_NOT_SERVING_STATES = frozenset({"STARTING", "STOPPING"})
_MODEL_ROUTE = "/model/"


@dataclass(frozen=True, slots=True)
class _Live:
    """A replica that Ray lists."""

    model: str
    node: str | None
    serving: bool


@dataclass(slots=True)
class _Rows:
    """What the store holds about one replica."""

    max: int | None = None
    names: list[str | None] = field(default_factory=list)
    sessions: list[str | None] = field(default_factory=list)
    base_models: list[str] = field(default_factory=list)
    rows: int = 0


def base_url(target: Target) -> str:
    """The gateway's address with its prefix, which is `/api/v1` unless the address has a path."""
    return target.base if urlsplit(target.base).path else target.base + DEFAULT_PREFIX


def requests(target: Target) -> tuple[Request, ...]:
    """What one poll fetches: totals, or the store where the operator gives it."""
    base = base_url(target)
    parts = urlsplit(target.url)
    names = (
        Request(
            "routes",
            f"{parts.scheme}://{parts.netloc}/-/routes",
            max_age=NAMES_MAX_AGE,
        ),
        Request(
            "capabilities",
            f"{base}/twinkle/get_server_capabilities",
            max_age=NAMES_MAX_AGE,
        ),
    )
    if target.state_url is None:
        return (Request("capacity", f"{base}/twinkle/capacity_info"), *names)
    wanted: list[Request] = [
        Request("health", f"{base}/twinkle/healthz"),
        Request(
            "state",
            target.state_url,
            credentials=False,
            confidential=True,
            key_prefix=target.key_prefix,
            patterns=STATE_PATTERNS,
        ),
        *names,
    ]
    if target.ray_dashboard is not None:
        wanted.append(
            Request(
                "ray",
                f"{target.ray_dashboard}/api/serve/applications/",
                keep=True,
                credentials=False,
                # Its env_vars carry the store's address with its password.
                confidential=True,
            )
        )
    return tuple(wanted)


def read(target: Target, answers: Answers, now: float) -> Reading:
    """The adapter table of one gateway."""
    if target.state_url is None:
        return _read_totals(target, answers)
    missing = failed(answers, "health") or failed(answers, "state")
    if missing is not None:
        return missing
    return _read_state(target, answers, now)


def _read_totals(target: Target, answers: Answers) -> Reading:
    missing = failed(answers, "capacity")
    if missing is not None:
        return missing
    document = json_object(answers["capacity"].body)
    limit = count(document.get("max_loras")) if document is not None else None
    used = count(document.get("used_loras")) if document is not None else None
    if limit is None or used is None:
        return Reading(
            reason=Reason.FORMAT,
            detail="capacity_info: max_loras and used_loras must be whole numbers",
        )
    models = _served_models(target, answers)
    cold = limit == 0 and used == 0
    table = ReplicaTable(
        model=target.model or (models[0] if len(models) == 1 else target.group),
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=Source.GATEWAY,
        max=limit or None,
        used=None if cold else used,
    )
    detail = "the gateway says 0/0/0, as before any replica registered: slots are unknown"
    return Reading(AdapterTable((table,)), detail=detail if cold else "")


def _read_state(target: Target, answers: Answers, now: float) -> Reading:
    entries = _entries(answers, now)
    if entries is None:
        return Reading(reason=Reason.FORMAT, detail="state file: not a JSON object of entries")
    found = _collect(entries)
    if isinstance(found, Reading):
        return found
    ray = answers.get("ray")
    live = _read_ray(target, ray.body) if ray is not None and ray.ok else None
    served = _served_models(target, answers)
    tables = []
    ghosts = None if live is None else 0
    for replica in sorted(found.keys() | (live.keys() if live is not None else set())):
        rows = found.get(replica, _Rows())
        listed = live.get(replica) if live is not None else None
        if live is not None and ghosts is not None:
            if listed is None:
                ghosts += rows.rows
                continue
            if not listed.serving:
                continue
        tables.append(_replica_table(target, replica, rows, listed, served, entries))
    return Reading(AdapterTable(tuple(_rename(target, tables)), ghosts))


def _replica_table(
    target: Target,
    replica: str,
    rows: _Rows,
    live: _Live | None,
    served: list[str],
    entries: Mapping[str, object],
) -> ReplicaTable:
    source = Source.STATE if live is None else Source.STATE_RAY
    limit, used = rows.max, len(rows.names)
    known_used: int | None = used
    if limit is None:
        limit = target.max
        if used == 0:
            known_used = None if limit is None else 0
            source = source if limit is None else Source.OPERATOR
    sessions = {name: _session(entries, name) for name in set(rows.sessions)}
    beats = [beat for alive, beat in sessions.values() if alive and beat is not None]
    holders = Counter(name for name in rows.sessions if name is not None)
    return ReplicaTable(
        model=live.model if live is not None else _base_model(target, rows, served),
        engine=ENGINE.name,
        slot_kind=ENGINE.slot_kind,
        source=source,
        replica=replica,
        node=live.node if live is not None else None,
        max=limit,
        used=known_used,
        adapters=order_adapters({name: AdapterState.ACTIVE for name in rows.names if name}),
        orphans=None if not rows.rows else sum(not sessions[name][0] for name in rows.sessions),
        oldest_heartbeat=min(beats, default=None),
        largest_holder=max(holders.values(), default=None),
    )


def _rename(target: Target, tables: Iterable[ReplicaTable]) -> list[ReplicaTable]:
    """Applies the group's name for the model, which can only mean one model."""
    tables = list(tables)
    if target.model is None or len({table.model for table in tables}) > 1:
        return tables
    return [replace(table, model=target.model) for table in tables]


def _entries(answers: Answers, now: float) -> Mapping[str, object] | None:
    """The store's live entries as parsed JSON; a value that is no JSON stays None."""
    answer = answers["state"]
    if answer.entries is not None:
        return {key: _json(value) for key, value in answer.entries.items()}
    document = json_object(answer.body)
    if document is None:
        return None
    entries: dict[str, object] = {}
    for key, entry in document.items():
        if not isinstance(entry, dict):
            return None
        expires = entry.get("expire_at")
        if isinstance(expires, int | float) and expires <= now:
            continue
        entries[key] = entry.get("value")
    return entries


def _json(value: bytes) -> object:
    try:
        return orjson.loads(value)
    except (orjson.JSONDecodeError, RecursionError):
        return None


def _collect(entries: Mapping[str, object]) -> dict[str, _Rows] | Reading:
    """Rows by replica.

    A row that cannot be read would make used too small, so it fails the poll.
    """
    found: dict[str, _Rows] = defaultdict(_Rows)
    for key, value in entries.items():
        match = _REPLICA_KEY.fullmatch(key)
        if match is not None:
            rows = found[match[1]]
            rows.rows += 1
            rows.max = count(value)
        elif key.startswith("model::"):
            if not isinstance(value, dict):
                return Reading(
                    reason=Reason.FORMAT, detail="state store: a model row is not a JSON object"
                )
            replica = value.get("replica_id")
            if not isinstance(replica, str) or not replica:
                # Not placed on a replica yet, so it holds no slot.
                continue
            rows = found[replica]
            rows.rows += 1
            metadata = value.get("user_metadata")
            rows.names.append(
                text(metadata.get("adapter_name")) if isinstance(metadata, dict) else None
            )
            rows.sessions.append(text(value.get("session_id")))
            base = text(value.get("base_model"))
            if base is not None:
                rows.base_models.append(base)
    return dict(found)


def _session(entries: Mapping[str, object], name: str | None) -> tuple[bool, float | None]:
    """Whether the session exists, and its last heartbeat (unix seconds)."""
    value = entries.get(f"session::{name}") if name is not None else None
    if not isinstance(value, dict):
        return False, None
    beat = value.get("last_heartbeat")
    if isinstance(beat, bool) or not isinstance(beat, int | float) or not math.isfinite(beat):
        return True, None
    return True, float(beat)


def _base_model(target: Target, rows: _Rows, served: list[str]) -> str:
    """The model of a replica that Ray does not tell of.

    Rows spell one model in two ways (with and without its organisation), routes in one.
    """
    if len(served) == 1:
        return served[0]
    if not rows.base_models:
        return target.model or target.group
    spellings = Counter(rows.base_models)
    name = min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
    short = name.rpartition("/")[2]
    matching = [model for model in served if model.rpartition("/")[2] == short]
    return matching[0] if len(matching) == 1 else name


def _read_ray(target: Target, body: bytes) -> dict[str, _Live] | None:
    """Replicas of model applications by id; None where this is no list of applications."""
    document = json_object(body)
    applications = document.get("applications") if document is not None else None
    if not isinstance(applications, dict):
        return None
    own: dict[str, _Live] = {}
    others: dict[str, _Live] = {}
    prefix = urlsplit(base_url(target)).path + _MODEL_ROUTE
    for application in applications.values():
        route = application.get("route_prefix") if isinstance(application, dict) else None
        if not isinstance(route, str) or _MODEL_ROUTE not in route:
            continue
        model = route.split(_MODEL_ROUTE, 1)[1]
        if not model:
            continue
        into = own if route.startswith(prefix) else others
        for listed in _listed(application):
            replica, state = text(listed.get("replica_id")), text(listed.get("state"))
            if replica is not None and state not in _DEAD_STATES:
                node = text(listed.get("node_ip")) or text(listed.get("node_id"))
                into[replica] = _Live(model, node, state not in _NOT_SERVING_STATES)
    # Behind a proxy the prefix that we know is not the one that Ray knows.
    return own or others


def _listed(application: dict[str, Any]) -> Iterable[dict[str, Any]]:
    deployments = application.get("deployments")
    for deployment in deployments.values() if isinstance(deployments, dict) else ():
        replicas = deployment.get("replicas") if isinstance(deployment, dict) else None
        for listed in replicas if isinstance(replicas, list) else ():
            if isinstance(listed, dict):
                yield listed


def _served_models(target: Target, answers: Answers) -> list[str]:
    """Names of the served models: from the routes, which need no token, else capabilities."""
    routes = answers.get("routes")
    document = json_object(routes.body) if routes is not None and routes.ok else None
    prefix = urlsplit(base_url(target)).path + _MODEL_ROUTE
    names = {
        route.removeprefix(prefix)
        for route in document or ()
        if route.startswith(prefix) and route != prefix
    }
    if not names:
        capabilities = answers.get("capabilities")
        found = (
            json_object(capabilities.body) if capabilities is not None and capabilities.ok else None
        )
        models = found.get("supported_models") if found is not None else None
        for model in models if isinstance(models, list) else ():
            name = text(model.get("model_name")) if isinstance(model, dict) else None
            if name is not None:
                names.add(name)
    return sorted(names)


def detection(target: Target) -> tuple[Request, ...]:
    """What tells a Twinkle gateway from other servers."""
    return (Request("capacity", f"{base_url(target)}/twinkle/capacity_info"),)


def claims(target: Target, answers: Answers) -> bool:
    """Whether the address answers with Twinkle's totals."""
    del target
    answer = answers.get("capacity")
    document = json_object(answer.body) if answer is not None and answer.ok else None
    return document is not None and {"max_loras", "used_loras", "free_loras"} <= document.keys()


ENGINE = Engine(
    "twinkle",
    About(
        "Twinkle",
        "recorded from 0.5.1",
        "`replica::*::max_loras` of its store (Redis or file); without it, one total over all "
        "models and replicas, which is often untrue",
        "rows of its store that name the replica; rows of dead replicas are left out where Ray's "
        "dashboard is given, and counted in `lora_target_ghosts`",
    ),
    SlotKind.EXCLUSIVE,
    (Source.GATEWAY, Source.STATE, Source.STATE_RAY, Source.OPERATOR),
    requests,
    read,
    detection,
    claims,
)

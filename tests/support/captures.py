"""Recorded bodies of real engines, as the readings that the exporter makes of them.

`tests/captures/<engine>/<version>/…` holds what servers sent; `times.json` beside the bodies says
when (unix seconds), because readers judge ages. For most engines each folder below a version is one
moment: a file for each answer, named by its key, with the status as its suffix where it was refused
(`models.401`); `target.json` says how the target is set up; `README.md` of the version says whether
the bodies were recorded or made from a published schema.

A golden is what a reading must be, as JSON (`tests/engines/test_golden.py`) and as text
(`tests/exposition/test_golden.py`), under `tests/golden/` at the path of its capture. To write
them anew after a change that is meant, and read the difference:

    UPDATE_GOLDEN=1 .venv/bin/python -m pytest tests/engines/test_golden.py \
        tests/exposition/test_golden.py
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from exporter.current import name_replicas
from exporter.engines import ENGINES
from exporter.engines.base import Answer, Answers
from exporter.engines.twinkle import STATE_PATTERNS
from exporter.fleet import CustomMap, Reading, Reason, SlotKind, Target, TargetStatus

CAPTURES = Path(__file__).parent.parent / "captures"
GOLDEN = Path(__file__).parent.parent / "golden"
VLLM = CAPTURES / "vllm"
TWINKLE = CAPTURES / "twinkle" / "0.5.1"

_PEEKED = re.compile(
    r"replica=(\w+) max=(\w+) used=(\d+) base_models=.* "
    r"live=(?:None|\('(.*)', '(.*)', '(.*)'\))"
)

VLLM_TARGET = Target("http://replica-0.test:8000", "serving", "vllm")
GATEWAY_TARGET = Target("http://gateway.test:8000", "training", "twinkle")
STATE_TARGET = Target(
    "http://gateway.test:8000", "training", "twinkle", state_url="redis://:hunter2@store.test:6379"
)
RAY_TARGET = Target(
    "http://gateway.test:8000",
    "training",
    "twinkle",
    state_url="redis://:hunter2@store.test:6379",
    ray_dashboard="http://gateway.test:8265",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded moment: `path` is where its goldens are, without suffix."""

    path: str
    target: Target
    answers: Answers
    now: float

    def read(self) -> Reading:
        """What the engine's reader makes of it."""
        return ENGINES[self.target.engine].read(self.target, self.answers, self.now)

    def status(self) -> TargetStatus:
        """The reading as it stands in a fleet, with counts and times that never change."""
        reading = self.read()
        table = reading.table
        return TargetStatus(
            self.target,
            engine=self.target.engine,
            up=reading.up,
            reason=reading.reason,
            detail=reading.detail,
            polls=7,
            failures=0 if reading.up else 2,
            last_success=1796080000.5,
            duration=0.025,
            replicas=() if table is None else name_replicas(self.target, table, "this-host"),
            ghosts=None if table is None else table.ghosts,
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded HTTP answer of Twinkle or Ray."""

    status: int
    body: bytes


def times(folder: Path) -> dict[str, float]:
    """When the bodies of a folder were recorded, by name (unix seconds)."""
    found: dict[str, float] = json.loads((folder / "times.json").read_text())
    return found


def recorded(name: str) -> Recorded:
    """A recorded HTTP answer: notes, status line, headers, an empty line, the body."""
    head, _, body = (TWINKLE / name).read_bytes().partition(b"\r\n\r\n")
    status = re.search(rb"^HTTP/1.1 (\d+)", head, re.MULTILINE)
    assert status is not None
    return Recorded(int(status[1]), body)


def state_file(name: str) -> bytes:
    """A state file as Twinkle wrote it."""
    return (TWINKLE / name).read_bytes()


def redis_dump() -> dict[str, bytes]:
    """The rows of the recorded Redis that the exporter asks for, without the key prefix."""
    entries = {}
    for line in (TWINKLE / "redis-22-full-dump.txt").read_text().splitlines():
        key, _, _, value = line.split("\t", 3)
        name = key.removeprefix("twinkle-test:")
        if name.startswith(tuple(pattern.split("*")[0] for pattern in STATE_PATTERNS)):
            entries[name] = value.encode()
    return entries


def peek(name: str) -> tuple[dict[str, bytes], bytes]:
    """The rows of the store, and what Ray's dashboard listed, as a peek tells them.

    A peek is a table of both, made while they were recorded. The keys of the rows are those of
    `redis-09-keys-after-sigkill-of-server.txt`; which replica took which adapter is in its notes:
    m1, m2, m5 and m6 went to 4o327ye5, m3 and m4 to ynz25z4t.
    """
    holders = dict.fromkeys(("m1", "m2", "m5", "m6"), "4o327ye5") | dict.fromkeys(
        ("m3", "m4"), "ynz25z4t"
    )
    entries: dict[str, bytes] = {}
    for line in (TWINKLE / "redis-09-keys-after-sigkill-of-server.txt").read_text().split():
        key = line.removeprefix("twinkle-test:")
        if key.startswith("model::"):
            session, _, adapter = key.removeprefix("model::").rpartition("-")
            row = {
                "token": "fake-token",
                "session_id": session,
                "base_model": "mock-model",
                "user_metadata": {"adapter_name": adapter},
                "replica_id": holders[adapter],
            }
            entries[key] = json.dumps(row).encode()
            entries[f"session::{session}"] = b"{}"
    applications: dict[str, Any] = {}
    for found in _PEEKED.finditer((TWINKLE / name).read_text()):
        replica, limit, used, application, route, state = found.groups()
        assert int(used) == list(holders.values()).count(replica)
        if limit != "None":
            entries[f"replica::{replica}::max_loras"] = limit.encode()
        if application is not None:
            listed = applications.setdefault(application, application_of(route))
            listed["deployments"]["ModelManagement"]["replicas"].append(
                {"replica_id": replica, "state": state, "node_ip": "127.0.0.1"}
            )
    return entries, json.dumps({"applications": applications}).encode()


def application_of(route: str, *replicas: dict[str, Any]) -> dict[str, Any]:
    """An application as Ray's dashboard lists it."""
    return {
        "route_prefix": route,
        "deployments": {"ModelManagement": {"replicas": list(replicas)}},
    }


def without_prefix(path: Path) -> str:
    """Where in `tests/golden` the goldens of a capture are."""
    return str(path.relative_to(CAPTURES))


def vllm_answers(metrics: bytes, models: bytes | None, version: bytes | None) -> Answers:
    """The answers of a vLLM replica; None: it refused."""
    refused = Answer(status=401, reason=Reason.AUTH, detail="the target answered 401")
    return {
        "metrics": Answer(metrics),
        "models": refused if models is None else Answer(models),
        "version": refused if version is None else Answer(version),
    }


def vllm_case(capture: str) -> Case:
    """A recorded moment of vLLM, for instance `0.32.0/main/04-traffic.at1.6s`."""
    return next(case for case in vllm_cases() if case.path == f"vllm/{capture}")


@cache
def vllm_cases() -> tuple[Case, ...]:
    """Each recorded `/metrics` of vLLM with the models and the version of its folder."""
    cases = []
    for folder in sorted(VLLM.glob("*/*")):
        version = next((path.read_bytes() for path in folder.glob("*-version.json")), None)
        at = times(folder)
        for path in sorted(folder.glob("*.metrics.txt")):
            name = path.name.removesuffix(".metrics.txt")
            models = (folder / f"{name}.models.json").read_bytes()
            answers = vllm_answers(path.read_bytes(), models, version)
            cases.append(Case(without_prefix(folder / name), VLLM_TARGET, answers, at[path.name]))
    folder = VLLM / "0.32.0" / "api-key"
    metrics = (folder / "auth-nokey-metrics.txt").read_bytes()
    version = (folder / "auth-nokey-version.json").read_bytes()
    now = times(folder)["auth-nokey-metrics.txt"]
    with_key = (folder / "auth-key-v1_models.json").read_bytes()
    for name, told in (("models-refused", None), ("models-with-key", with_key)):
        answers = vllm_answers(metrics, told, version)
        cases.append(Case(without_prefix(folder / name), VLLM_TARGET, answers, now))
    return tuple(cases)


def twinkle_answers(
    *,
    routes: bool = True,
    capacity: bytes | None = None,
    file: bytes | None = None,
    entries: dict[str, bytes] | None = None,
    ray: bytes | None = None,
) -> Answers:
    """The answers of a Twinkle gateway that serves mock-model."""
    answers = {"health": Answer(recorded("file-01-healthz.http").body)}
    if routes:
        answers["routes"] = Answer(recorded("file-01-serve-routes.http").body)
        answers["capabilities"] = Answer(recorded("file-01-capabilities.http").body)
    if capacity is not None:
        answers["capacity"] = Answer(capacity)
    if file is not None or entries is not None:
        answers["state"] = Answer(file or b"", entries)
    if ray is not None:
        answers["ray"] = Answer(ray)
    return answers


@cache
def twinkle_cases() -> tuple[Case, ...]:
    """Each recorded moment of Twinkle at each of the three levels that can be had of it."""
    cases = []

    def add(name: str, level: str, target: Target, answers: Answers, now: float) -> None:
        cases.append(Case(without_prefix(TWINKLE / level / name), target, answers, now))

    for path in sorted(TWINKLE.glob("*capacity*.http")):
        answer = recorded(path.name)
        if answer.status == 200:
            # The server of redis-09 served two models, so its routes were others.
            answers = twinkle_answers(
                capacity=answer.body, routes=not path.name.startswith("redis-09")
            )
            add(path.stem, "gateway", GATEWAY_TARGET, answers, 0.0)
    at = times(TWINKLE)
    after_kill = recorded("file-06-dashboard-after-kill.http").body
    for path in sorted(TWINKLE.glob("file-*-state-*.json")):
        answers = twinkle_answers(file=path.read_bytes())
        add(path.stem, "state", STATE_TARGET, answers, at[path.name])
        if path.name.startswith("file-06"):
            answers = twinkle_answers(file=path.read_bytes(), ray=after_kill)
            add(path.stem, "state+ray", RAY_TARGET, answers, at[path.name])
    name = "redis-22-full-dump.txt"
    answers = twinkle_answers(entries=redis_dump())
    add(Path(name).stem, "state", STATE_TARGET, answers, at[name])
    for path in sorted(TWINKLE.glob("redis-*-peek-*.txt")):
        entries, ray = peek(path.name)
        routes = not path.name.startswith("redis-09")
        answers = twinkle_answers(entries=entries, routes=routes)
        add(path.stem, "state", STATE_TARGET, answers, at[path.name])
        answers = twinkle_answers(entries=entries, ray=ray, routes=routes)
        add(path.stem, "state+ray", RAY_TARGET, answers, at[path.name])
    name = "redis-08-peek-before-kill.txt"
    answers = twinkle_answers(
        entries=peek(name)[0], ray=recorded("ray-1x2-dashboard-serve-applications.http").body
    )
    add("redis-08-before-kill-recorded-dashboard", "state+ray", RAY_TARGET, answers, at[name])
    return tuple(cases)


MOMENT = 1796074000.0
"""When the bodies of folders were sent (unix seconds)."""


@cache
def folder_cases() -> tuple[Case, ...]:
    """Each moment of the engines that have a folder for each."""
    folders = (path for path in sorted(CAPTURES.glob("*/*/*")) if path.is_dir())
    others = (path for path in folders if path.parts[-3] not in ("vllm", "twinkle"))
    return tuple(
        Case(without_prefix(path), _target_of(path), _answers_of(path), MOMENT) for path in others
    )


def folder_case(path: str) -> Case:
    """One of these, for instance `sglang/0.5.23/traffic`."""
    return next(case for case in folder_cases() if case.path == path)


def _target_of(folder: Path) -> Target:
    told: dict[str, Any] = {"engine": folder.parts[-3]}
    if (folder / "target.json").is_file():
        told |= json.loads((folder / "target.json").read_text())
    if "custom" in told:
        custom = told["custom"]
        kind = SlotKind(custom["slot_kind"])
        told["custom"] = CustomMap(
            **custom | {"slot_kind": kind, "paths": tuple(custom["paths"].items())}
        )
    return Target("http://replica-0.test:8000", "serving", **told)


def _answers_of(folder: Path) -> Answers:
    answers = {}
    for path in sorted(folder.iterdir()):
        if path.name == "target.json":
            continue
        suffix = path.suffix.removeprefix(".")
        if suffix.isdecimal():
            reason = Reason.AUTH if suffix == "401" else Reason.STATUS
            answers[path.stem] = Answer(
                status=int(suffix), reason=reason, detail=f"the target answered {suffix}"
            )
        else:
            answers[path.stem] = Answer(path.read_bytes(), status=200)
    return answers


@cache
def cases() -> tuple[Case, ...]:
    """All recorded moments."""
    return (*vllm_cases(), *twinkle_cases(), *folder_cases())


def check_golden(name: str, text: str) -> None:
    """Compares with the golden of this name, or writes it where UPDATE_GOLDEN is set."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name}: no such golden; see tests/support/captures.py"
    assert text == path.read_text(encoding="utf-8")


def assert_only_goldens(suffix: str, paths: Iterable[str]) -> None:
    """That no golden is left of a capture that is gone, and none is missing."""
    wanted = {path + suffix for path in paths}
    there = {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob(f"*{suffix}")}
    if os.environ.get("UPDATE_GOLDEN"):
        for name in there - wanted:
            (GOLDEN / name).unlink()
        # Other workers may still write theirs.
        there = wanted
    assert there == wanted

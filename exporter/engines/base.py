"""What an engine is to us: what to fetch from a target, and how answers become an adapter table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from exporter.fleet import Reading, Reason, SlotKind, Source, Target


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that a reader wants fetched: a GET, or the entries of a state store."""

    key: str
    """Under which the reader finds the answer."""
    url: str
    max_age: float = 0.0
    """Seconds for which an earlier answer serves as well."""
    keep: bool = False
    """Whether an earlier answer serves, up to the time at which data counts as stale, while a new
    one cannot be had."""
    credentials: bool = True
    """Whether the group's credentials belong to this address."""
    confidential: bool = False
    """Whether what it answers must never be shown."""
    shown: tuple[str, ...] = ()
    """Where an answer is shown to people: only the lines that start with one of these, if any."""
    parse: Callable[[bytes], object] | None = None
    """Applied once to an answer that serves several polls; its result is kept, not the body."""
    accepts: Callable[[bytes], bool] | None = None
    """Whether a body is what was wanted; else `fallback` is asked."""
    fallback: Request | None = None
    turn: int = 0
    """In detection: asked only where no engine claimed what was answered in an earlier turn. Pages
    that are large, or that take something from an engine that is not ours, have the last."""
    etag: str = ""
    """Of the answer that is known: the server then may say 304, that it is still the same."""
    key_prefix: str = ""
    patterns: tuple[str, ...] = ()
    """Key patterns, without the prefix, when a state store is asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request. Without a reason, `body` (or `entries`) is what was sent."""

    body: bytes = b""
    entries: Mapping[str, bytes] | None = None
    """Keys (without prefix) and values, where a state store was asked key by key."""
    status: int | None = None
    etag: str = ""
    date: float | None = None
    """The server's own clock, unix seconds, where it sent a Date header."""
    reason: Reason | None = None
    detail: str = ""
    parsed: object = None
    """What the request's `parse` made of the body, where it was applied."""

    @property
    def ok(self) -> bool:
        """Whether there is something to read."""
        return self.reason is None


Answers = Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class About:
    """What the README's table of engines says of one."""

    title: str
    versions: str
    """Which, and whether they were recorded, read in the source or made from the schema."""
    max: str
    used: str
    """Where the two come from, or who must tell."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine. None of the functions raises, whatever the bytes."""

    name: str
    about: About
    slot_kind: SlotKind
    sources: tuple[Source, ...]
    """All that a table of this engine may name."""
    requests: Callable[[Target], tuple[Request, ...]]
    read: Callable[[Target, Answers, float], Reading]
    """Arguments: the target, its answers by key, the time (unix seconds)."""
    detection: Callable[[Target], tuple[Request, ...]]
    """What to ask an unknown target."""
    claims: Callable[[Target, Answers], bool]
    """Whether the answers to `detection` are this engine's."""
    has_slots: bool = True
    """False: adapters need none, so that max and used are never known, and nothing is ever full."""


def failed(answers: Answers, key: str) -> Reading | None:
    """The reading of a poll in which this answer, which the reader needs, is missing."""
    answer = answers.get(key)
    if answer is None:
        return Reading(reason=Reason.FORMAT, detail=f"{key}: nothing was fetched")
    if answer.reason is not None:
        return Reading(reason=answer.reason, detail=answer.detail)
    return None


def body_of(answers: Answers, key: str) -> bytes:
    """What was answered; nothing where it was refused or never asked."""
    answer = answers.get(key)
    return answer.body if answer is not None and answer.ok else b""


def text(value: object) -> str | None:
    """A name; None for anything that is none."""
    return value if isinstance(value, str) and value else None


def base_name(path: str) -> str:
    """The last part of a path: the rest is nobody's business."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def json_object(body: bytes) -> dict[str, Any] | None:
    """The body as a JSON object; None where it is anything else."""
    try:
        value = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def count(value: object) -> int | None:
    """A number of slots or adapters; None for anything that cannot be one."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    return None

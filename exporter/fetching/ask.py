"""One poll of one target: find its engine, fetch what the engine wants, read the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from exporter.engines import AUTO, ENGINES, detect, detection_requests
from exporter.engines.base import Answer, Engine, Request
from exporter.fetching.http import GroupClient, HttpClient
from exporter.fetching.state import StateClient
from exporter.fleet import Reading, Reason, Target
from exporter.relabel import relabelled
from exporter.settings import TargetGroup

DETECTION_SHARES = (0.5, 0.65, 0.8)
"""Shares of the deadline at which the turns of detection end, so that a page that hangs leaves time
for the others, and to read."""
FALLBACK_SECONDS = 60.0
"""For how long a request's fallback is asked at once, after the request itself gave nothing."""

_NOBODY = frozenset({Reason.CONNECT, Reason.TLS, Reason.TIMEOUT})
"""Where all pages of a turn have one of these, the address need not be asked for others."""

LARGE_BYTES = 512 * 1024
"""Answers that are larger are read in a thread."""
# A thread of its own, as the loop's may all wait for name servers.
_READERS = ThreadPoolExecutor(1, "reading")

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it, for people who debug."""

    request: Request
    answer: Answer
    seconds: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of one poll."""

    reading: Reading
    engine: str | None
    exchanges: tuple[Exchange, ...]
    seconds: float
    note: str = ""
    """What is missing from a table that could be read all the same, for want of credentials."""


@dataclass(slots=True)
class Memory:
    """What is kept of a target from poll to poll. Times are the loop's clock."""

    engine: Engine | None = None
    reader: str = ""
    """The engine whose answers are kept."""
    answers: dict[str, tuple[Answer, float]] = field(default_factory=dict)
    fallback_until: dict[str, float] = field(default_factory=dict)
    last_up: bool | None = None
    note: str = ""
    unanswered: int = 0
    """Polls without an answer since the last one that had one."""


class Asker:
    """Asks the targets of one group."""

    def __init__(
        self,
        http: HttpClient,
        group: TargetGroup,
        stale_after: float,
        clock: Clock = time.time,
    ) -> None:
        """`stale_after`: seconds for which an answer that cannot be renewed may be kept.

        Raises TlsError for certificate files that cannot be used.
        """
        self._http = http
        self._client = GroupClient(group)
        self._state = StateClient(group, http.max_body)
        self._stale_after = stale_after
        self._clock = clock

    async def close(self) -> None:
        """Ends connections that are not of the common pool."""
        await self._state.close()

    async def ask(self, target: Target, memory: Memory, timeout: float) -> Asked:  # noqa: ASYNC109 - one deadline is handed to each request, so that each tells its own reason
        """Polls within `timeout` seconds. Never raises but for cancellation."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + timeout
        exchanges: list[Exchange] = []
        answers: dict[str, Answer] = {}
        engine = memory.engine or ENGINES.get(target.engine)
        if engine is None:
            engine = await self._detect(target, timeout, exchanges)
        if engine is None:
            reading = _undetected(exchanges)
        else:
            if memory.reader != engine.name:
                # Another engine's answers may have the same keys.
                memory.answers.clear()
                memory.fallback_until.clear()
            memory.engine, memory.reader = engine, engine.name
            answers = await self._fetch(target, engine, memory, deadline, exchanges)
            reading = relabelled(target, await self._read(target, engine, answers))
        if reading.table is None:
            # The target may come back as another version, or as another engine.
            memory.answers.clear()
        if target.engine == AUTO and (reading.table is None or reading.reason is Reason.NO_STATS):
            # What answers without a series of that engine may by now be another engine.
            memory.engine = None
        name = engine.name if engine is not None else None
        refused = (
            answer.detail
            for answer in answers.values()
            if reading.up and answer.reason is Reason.AUTH
        )
        note = next(refused, "")
        return Asked(reading, name, tuple(exchanges), loop.time() - started, note)

    async def _read(self, target: Target, engine: Engine, answers: dict[str, Answer]) -> Reading:
        if sum(map(_size, answers.values())) < LARGE_BYTES:
            return engine.read(target, answers, self._clock())
        # Half a million adapters take seconds, in which others want to be polled and scraped.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_READERS, engine.read, target, answers, self._clock())

    async def _detect(
        self, target: Target, seconds: float, exchanges: list[Exchange]
    ) -> Engine | None:
        """Asks each page once, however many engines want it, turn by turn until one claims it."""
        started = asyncio.get_running_loop().time()
        answers: dict[str, dict[str, Answer]] = {}
        for turn, share in enumerate(DETECTION_SHARES):
            deadline = started + seconds * share
            wanted = detection_requests(target, turn)
            pages: dict[str, Request] = {}
            for _, request in wanted:
                known = pages.setdefault(request.url, request)
                if request.confidential and not known.confidential:
                    pages[request.url] = replace(known, confidential=True)
            got = await asyncio.gather(
                *(self._get(request, deadline, exchanges) for request in pages.values())
            )
            by_url = dict(zip(pages, got, strict=True))
            for engine, request in wanted:
                answers.setdefault(engine.name, {})[request.key] = by_url[request.url]
            found = detect(target, answers)
            if found is not None or all(answer.reason in _NOBODY for answer in got):
                return found
        return None

    async def _fetch(
        self,
        target: Target,
        engine: Engine,
        memory: Memory,
        deadline: float,
        exchanges: list[Exchange],
    ) -> dict[str, Answer]:
        requests = engine.requests(target)
        answers = await asyncio.gather(
            *(self._remembered(request, memory, deadline, exchanges) for request in requests)
        )
        return {request.key: answer for request, answer in zip(requests, answers, strict=True)}

    async def _remembered(
        self, request: Request, memory: Memory, deadline: float, exchanges: list[Exchange]
    ) -> Answer:
        """An answer, asked for anew where the last one is too old."""
        now = asyncio.get_running_loop().time()
        known = memory.answers.get(request.key)
        if known is not None and now < known[1] + request.max_age:
            return known[0]
        answer = await self._preferred(request, memory, deadline, exchanges)
        if answer.ok:
            if request.keep:
                memory.answers[request.key] = (answer, now)
        elif request.keep and known is not None and now < known[1] + self._stale_after:
            return known[0]
        if answer.ok and request.parse is not None:
            answer = replace(answer, body=b"", parsed=request.parse(answer.body))
        if request.max_age:
            # A refusal too: an engine need not log it at each poll.
            memory.answers[request.key] = (answer, now)
        return answer

    async def _preferred(
        self, request: Request, memory: Memory, deadline: float, exchanges: list[Exchange]
    ) -> Answer:
        """The request's answer, or its fallback's where that is no use."""
        if request.fallback is None:
            return await self._get(request, deadline, exchanges)
        loop = asyncio.get_running_loop()
        if loop.time() >= memory.fallback_until.get(request.key, 0.0):
            answer = await self._get(request, deadline, exchanges)
            if answer.ok and (request.accepts is None or request.accepts(answer.body)):
                memory.fallback_until.pop(request.key, None)
                return answer
            if answer.reason in (Reason.TIMEOUT, Reason.CONNECT, Reason.TLS):
                return answer
            memory.fallback_until[request.key] = loop.time() + FALLBACK_SECONDS
        return await self._get(request.fallback, deadline, exchanges)

    async def _get(self, request: Request, deadline: float, exchanges: list[Exchange]) -> Answer:
        loop = asyncio.get_running_loop()
        started = loop.time()
        if request.patterns:
            answer = await self._state.get(request, deadline)
        else:
            answer = await self._http.get(request, self._client, deadline)
        exchanges.append(Exchange(request, answer, loop.time() - started))
        return answer


def _size(answer: Answer) -> int:
    """Bytes that are to be read."""
    return len(answer.body) + sum(map(len, (answer.entries or {}).values()))


def _undetected(exchanges: list[Exchange]) -> Reading:
    """Why no engine claimed the target: what went wrong most usefully, else unsupported."""
    for reason in (Reason.TLS, Reason.AUTH, Reason.TOO_LARGE, Reason.TIMEOUT, Reason.CONNECT):
        for exchange in exchanges:
            if exchange.answer.reason is reason:
                return Reading(reason=reason, detail=exchange.answer.detail)
    engines = ", ".join(ENGINES)
    detail = f"no engine that is known ({engines}); name it with engine: in the target's group"
    return Reading(reason=Reason.UNSUPPORTED, detail=detail)

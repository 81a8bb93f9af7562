"""Asks every target on its own schedule and keeps the fleet current.

A slow or broken target delays nobody: each has its own task and deadline, and targets that have
not answered for some polls wait for a place in a lane of their own, so that however many are dead,
those that answer find room.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from exporter.current import CurrentFleet
from exporter.fetching.ask import Asked, Asker, Memory
from exporter.fetching.http import HttpClient
from exporter.fleet import Reading, Reason, Target, TargetStatus
from exporter.settings import Poll, TargetGroup

LOG = logging.getLogger(__name__)

JITTER = 0.05
"""Share of the interval by which a poll is early or late, so that targets do not fall into step."""
START_SPREAD_SECONDS = 0.005
"""Time for each target over which the first polls are spread, at most one interval."""
SUSPECT_SHARE = 4
"""One in this many places is for targets that have not answered for some polls."""
SUSPECT_AFTER = 3
"""Polls without an answer after which a target waits there: a short outage is seen to end soon."""

_UNANSWERED = frozenset({Reason.TIMEOUT, Reason.CONNECT, Reason.TLS, Reason.TOO_LARGE})

OnPoll = Callable[[TargetStatus], None]


@dataclass(slots=True)
class _Polled:
    """A target that is being polled."""

    target: Target
    asker: Asker
    memory: Memory
    task: asyncio.Task[None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to poll, and how: targets by group, and an asker for each group."""

    poll: Poll
    targets: tuple[Target, ...] = ()
    askers: Mapping[str, Asker] = field(default_factory=dict)


def make_plan(http: HttpClient, poll: Poll, groups: tuple[TargetGroup, ...]) -> Plan:
    """A plan for the targets of these groups, without targets yet.

    Raises TlsError for certificate files that cannot be used.
    """
    askers = {group.name: Asker(http, group, poll.stale_after) for group in groups}
    return Plan(poll, askers=askers)


class Poller:
    """Polls until it is stopped. All calls come from one event loop."""

    def __init__(
        self, fleet: CurrentFleet, on_poll: OnPoll, clock: Callable[[], float] = time.time
    ) -> None:
        """`on_poll` is told of each target's status after its poll; `clock`: unix seconds."""
        self._fleet = fleet
        self._on_poll = on_poll
        self._clock = clock
        self._plan = Plan(Poll())
        self._polled: dict[str, _Polled] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._healthy = asyncio.Semaphore(1)
        self._suspect = asyncio.Semaphore(1)

    async def apply(self, plan: Plan) -> None:
        """Goes over to another plan. Targets that are in both keep what is known of them."""
        before = tuple(self._plan.askers.values())
        self._plan = plan
        suspects = max(plan.poll.concurrency // SUSPECT_SHARE, 1)
        self._suspect = asyncio.Semaphore(suspects)
        self._healthy = asyncio.Semaphore(max(plan.poll.concurrency - suspects, 1))
        wanted = {target.url: target for target in plan.targets}
        gone = [url for url, polled in self._polled.items() if wanted.get(url) != polled.target]
        ended = list(self._polled.values())
        for polled in ended:
            polled.task.cancel()
        await asyncio.gather(*(polled.task for polled in ended), return_exceptions=True)
        memories = {url: polled.memory for url, polled in self._polled.items()}
        for url in gone:
            self._fleet.remove(url)
            memories.pop(url)
        self._polled = {}
        for target in wanted.values():
            self._start(target, memories.get(target.url), len(wanted))
        for asker in before:
            await asker.close()

    def retarget(self, targets: tuple[Target, ...]) -> None:
        """Goes over to other targets of the same groups; those that stay are not disturbed."""
        self._plan = replace(self._plan, targets=targets)
        wanted = {target.url: target for target in targets}
        gone = [url for url, polled in self._polled.items() if wanted.get(url) != polled.target]
        for url in gone:
            task = self._polled.pop(url).task
            task.cancel()
            # Until it has ended; nobody else holds it.
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._fleet.remove(url)
        new = [target for target in targets if target.url not in self._polled]
        for target in new:
            self._start(target, None, len(new))

    def _start(self, target: Target, memory: Memory | None, together: int) -> None:
        """Begins to poll a target, one of so many that begin together."""
        if memory is None:
            self._fleet.add(target)
        memory = memory or Memory()
        asker = self._plan.askers[target.group]
        spread = min(START_SPREAD_SECONDS * together, self._plan.poll.interval)
        delay = spread * _phase(target.url)
        poll = self._run(target, asker, memory, delay)
        task = asyncio.create_task(poll, name=f"poll {target.url}")
        self._polled[target.url] = _Polled(target, asker, memory, task)

    async def stop(self) -> None:
        """Ends all polls; the fleet stays as it is."""
        for polled in self._polled.values():
            polled.task.cancel()
        tasks = [polled.task for polled in self._polled.values()]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._polled = {}
        for asker in self._plan.askers.values():
            await asker.close()

    async def _run(self, target: Target, asker: Asker, memory: Memory, delay: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + delay
        swing = 0
        while True:
            await asyncio.sleep(max(due - loop.time(), 0.0))
            suspect = memory.unanswered >= SUSPECT_AFTER
            async with self._suspect if suspect else self._healthy:
                status = await self._poll(target, asker, memory)
            silent = status is None or status.reason in _UNANSWERED
            memory.unanswered = memory.unanswered + 1 if silent else 0
            swing += 1
            interval = self._plan.poll.interval
            early = JITTER * (2 * _phase(f"{target.url} {swing}") - 1)
            # After a stall the missed polls are left out, not made up for.
            due = max(due + interval * (1 + early), loop.time())

    async def _poll(self, target: Target, asker: Asker, memory: Memory) -> TargetStatus | None:
        try:
            asked = await asker.ask(target, memory, self._plan.poll.timeout)
        except Exception as error:
            # A mistake of ours with one target's answer must not end the polls of the others.
            LOG.exception("poll failed", extra={"target": target.url})
            detail = f"a mistake of the exporter's own: {type(error).__name__}"
            asked = Asked(Reading(reason=Reason.FORMAT, detail=detail), None, (), 0.0)
        before, noted = memory.last_up, memory.note
        status = self._fleet.record(target.url, asked, self._clock())
        if status is not None:
            if status.up is not before:
                memory.last_up = status.up
                _log_change(status)
            if asked.note != noted:
                memory.note = asked.note
                if asked.note:
                    fields = {"target": target.url, "group": target.group}
                    LOG.warning("target is read in part", extra={**fields, "detail": asked.note})
            self._on_poll(status)
        return status


def _log_change(status: TargetStatus) -> None:
    fields = {"target": status.target.url, "group": status.target.group}
    if status.up:
        LOG.info("target is up", extra={**fields, "engine": status.engine})
    else:
        reason = status.reason.value if status.reason is not None else ""
        LOG.warning("target is down", extra={**fields, "reason": reason, "detail": status.detail})


def _phase(text: str) -> float:
    """A number from 0 to 1 that is always the same for a text, and spread over texts."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64

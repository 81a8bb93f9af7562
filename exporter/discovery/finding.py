"""Finds the targets of all groups again and again, each way in a task of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from exporter.discovery import discoveries_of
from exporter.discovery.base import Discovery, DiscoveryError, Found
from exporter.discovery.targets import discovered_target, make_target
from exporter.fetching.http import HttpClient
from exporter.fleet import Target
from exporter.settings import TargetGroup

LOG = logging.getLogger(__name__)

Prepared = Mapping[str, tuple[Discovery, ...]]
"""Ways to find targets, by group."""
OnTry = Callable[[str, float | None], None]
"""Told of each attempt: the group, and when it succeeded (unix seconds; None: it failed)."""


@dataclass(slots=True)
class _Source:
    """One way to find targets of a group, and what it last found."""

    discovery: Discovery
    task: asyncio.Task[None] | None = None
    found: tuple[Found, ...] = ()
    succeeded: bool = False
    tried: bool = False
    failing: bool = False


@dataclass(slots=True)
class _Group:
    settings: TargetGroup
    sources: list[_Source] = field(default_factory=list)


class Finding:
    """The targets of all groups as they are now. All calls come from one event loop.

    A way that fails keeps what it last found.
    """

    def __init__(
        self,
        on_change: Callable[[], None],
        on_try: OnTry,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`on_change` is told when targets came or went; `clock`: unix seconds."""
        self._on_change = on_change
        self._on_try = on_try
        self._clock = clock
        self._groups: dict[str, _Group] = {}
        self._doubles: frozenset[str] = frozenset()
        self._by_url: dict[str, Target] | None = None
        """Kept until something changes: a probe of one target must not cost as much as all."""

    async def apply(self, groups: Iterable[TargetGroup], prepared: Prepared) -> None:
        """Goes over to these groups. One whose ways are the same keeps what it found."""
        before, self._groups, self._by_url = self._groups, {}, None
        for settings in groups:
            kept = before.get(settings.name)
            if kept is not None and _ways(kept.settings) == _ways(settings):
                del before[settings.name]
                kept.settings = settings
                self._groups[settings.name], self._by_url = kept, None
                await _close(prepared[settings.name])
                continue
            group = _Group(settings, [_Source(one) for one in prepared[settings.name]])
            self._groups[settings.name], self._by_url = group, None
            for source in group.sources:
                name = f"discovery {settings.name}"
                source.task = asyncio.create_task(self._run(settings.name, source), name=name)
        for group in before.values():
            await _end(group)

    async def stop(self) -> None:
        """Ends all ways."""
        groups, self._groups, self._by_url = self._groups, {}, None
        for group in groups.values():
            await _end(group)

    def targets(self) -> tuple[Target, ...]:
        """The targets of all groups, each address once: the first group that has it keeps it."""
        return tuple(self._targets().values())

    def target(self, url: str) -> Target | None:
        """The one with this address."""
        return self._targets().get(url)

    def _targets(self) -> dict[str, Target]:
        if self._by_url is None:
            self._by_url = self._joined()
        return self._by_url

    def _joined(self) -> dict[str, Target]:
        found: dict[str, Target] = {}
        doubles: set[str] = set()
        for group in self._groups.values():
            own = [make_target(group.settings, url) for url in group.settings.static]
            for source in group.sources:
                own += [discovered_target(group.settings, one) for one in source.found]
            for target in own:
                if found.setdefault(target.url, target).group != target.group:
                    doubles.add(target.url)
        for url in sorted(doubles - self._doubles):
            fields = {"target": url, "group": found[url].group}
            LOG.warning("target is found for several groups", extra=fields)
        self._doubles = frozenset(doubles)
        return found

    @property
    def undiscovered(self) -> frozenset[str]:
        """Groups of which some way has not succeeded yet."""
        return frozenset(
            name
            for name, group in self._groups.items()
            if not all(source.succeeded for source in group.sources)
        )

    @property
    def all_tried(self) -> bool:
        """Whether each way was tried once, whatever came of it."""
        return all(source.tried for group in self._groups.values() for source in group.sources)

    async def _run(self, group: str, source: _Source) -> None:
        while True:
            await self._look(group, source)
            try:
                await source.discovery.wait()
            except Exception:
                LOG.exception("discovery cannot wait", extra={"group": group})
                await asyncio.sleep(1.0)

    async def _look(self, group: str, source: _Source) -> None:
        first = not source.tried
        try:
            found = await source.discovery.find()
        except DiscoveryError as error:
            self._fail(group, source, str(error))
        except Exception as error:
            # A mistake of ours with one list must not end the search for others.
            LOG.exception("discovery failed", extra={"group": group})
            self._fail(group, source, f"a mistake of the exporter's own: {type(error).__name__}")
        else:
            if source.failing:
                LOG.info("targets are found again", extra={"group": group})
            source.failing = False
            self._on_try(group, self._clock())
            changed = set(found) != set(source.found) or not source.succeeded
            source.found, source.succeeded, source.tried = found, True, True
            if changed:
                self._by_url = None
                self._on_change()
            return
        if first:
            self._on_change()

    def _fail(self, group: str, source: _Source, detail: str) -> None:
        if not source.failing:
            fields = {"group": group, "detail": detail, "kept": len(source.found)}
            LOG.warning("targets cannot be found", extra=fields)
        source.failing = source.tried = True
        self._on_try(group, None)


def prepare(groups: Iterable[TargetGroup], http: HttpClient) -> Prepared:
    """The ways that the groups ask for, not started yet.

    Raises TlsError for certificate files that cannot be used, DiscoveryError where an optional
    package is missing.
    """
    return {group.name: discoveries_of(group, http) for group in groups}


async def find_once(
    groups: Iterable[TargetGroup], http: HttpClient
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """The targets of all groups, looked for once; and what went wrong, by group.

    Raises as `prepare` does.
    """
    groups = tuple(groups)
    prepared = prepare(groups, http)
    found: dict[str, Target] = {}
    wrong: list[str] = []
    for group in groups:
        own = [make_target(group, url) for url in group.static]
        for discovery in prepared[group.name]:
            try:
                own += [discovered_target(group, one) for one in await discovery.find()]
            except DiscoveryError as error:
                wrong.append(f"group {group.name}: {error}")
        for target in own:
            found.setdefault(target.url, target)
        await _close(prepared[group.name])
    return tuple(found.values()), tuple(wrong)


def _ways(group: TargetGroup) -> tuple[object, ...]:
    return group.file, group.http, group.dns, group.ray, group.kubernetes


async def _end(group: _Group) -> None:
    tasks = [source.task for source in group.sources if source.task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _close(source.discovery for source in group.sources)


async def _close(discoveries: Iterable[Discovery]) -> None:
    for discovery in discoveries:
        await discovery.close()

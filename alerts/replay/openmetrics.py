"""The fleet's series as an exporter would have shown them, written for promtool to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TextIO

from alerts.replay.evictable import REGISTERED
from alerts.replay.world import START, STEP, Fleet, History, Replica, Run

TARGET = {"job": "lora", "instance": "exporter:10107"}
COUNTED = 16
"""Larger pools get no counters of polls, which cost the most time and serve a single alert here."""
BLOCK = 54 * 3600
"""Seconds of a block: the longest of Prometheus's lengths that one range query can answer."""


@dataclass(slots=True)
class Track:
    """One series."""

    text: str
    runs: list[Run]
    adds_up: bool = False
    """A counter: each step adds the run's value."""
    hidden: bool = True
    """Whether it is missing while the exporter is not scraped."""
    at: int = 0
    """The first run that is not written yet."""
    sum: int = 0


def text(name: str, **labels: str) -> str:
    """A series as text. All series carry what Prometheus adds to a scrape."""
    pairs = ",".join(f'{key}="{value}"' for key, value in (TARGET | labels).items())
    return f"{name}{{{pairs}}}"


def tracks(fleet: Fleet) -> list[Track]:
    """All series of a fleet."""
    whole = [Run(0, fleet.steps, 1)]
    found = [Track(text("up"), _ups(fleet), hidden=False)]
    for history in fleet.histories.values():
        model = history.pool.name
        named = len(model) % 2
        card = {"class": "gold" if named else "", "owner": "search" if named else ""}
        found.append(Track(text("lora_model_info", model=model, **card), whole))
        found += _counts(history)
        for one in history.replicas:
            found += _replica(history, one)
    return found


def _ups(fleet: Fleet) -> list[Run]:
    edges = [0]
    for first, end in fleet.exporter_down:
        edges += [max(first, edges[-1]), max(end, edges[-1])]
    edges.append(fleet.steps)
    return [
        Run(first, end, int(n % 2 == 0))
        for n, (first, end) in enumerate(pairwise(edges))
        if end > first
    ]


def _counts(history: History) -> Iterator[Track]:
    model = history.pool.name
    runs = []
    first = 0
    for step in range(1, history.steps + 1):
        if step == history.steps or history.current[step] != history.current[first]:
            runs.append(Run(first, step, history.current[first]))
            first = step
    yield Track(text("lora_model_current_replicas", model=model), runs)
    if not history.pool.nights_at_zero:
        whole = [Run(0, history.steps, history.pool.replicas)]
        yield Track(text("lora_model_min_replicas", model=model), whole)


def _replica(history: History, one: Replica) -> Iterator[Track]:
    pool = history.pool
    own = {"model": pool.name, "replica_id": one.name}
    kind = {"slot_kind": pool.kind}
    url = f"http://{one.name}:8000"
    edges = [one.first]
    for first, end in sorted(one.down):
        edges += [first, end]
    edges.append(one.end)
    pairs = list(pairwise(edges))
    lives, downs = pairs[::2], pairs[1::2]
    if one.placed < one.first:
        downs.insert(0, (one.placed, one.first))
    up = [Run(*span, 1) for span in lives] + [Run(*span, 0) for span in downs]
    up.sort(key=lambda run: run.first)
    yield Track(text("lora_target_up", target=url, group="serving"), up)
    failing = text("lora_target_failure", target=url, reason="connect")
    yield Track(failing, [Run(*span, 1) for span in downs])
    about = {
        "engine": "twinkle" if pool.kind == "exclusive" else "vllm",
        "version": one.version,
        "source": "state" if pool.kind == "exclusive" else "activity",
    }
    ready = [Run(*span, 1) for span in lives]
    yield Track(text("lora_replica_info", **own, **kind, **about), ready)
    yield Track(text("lora_max", **own, **kind), [Run(*span, one.slots) for span in lives])
    yield Track(text("lora_used", **own, **kind), one.used)
    if pool.replicas <= COUNTED:
        polls = [Run(*span, 3) for span in lives]
        yield Track(text("lora_replica_polls_total", **own), polls, adds_up=True)
        yield Track(text("lora_replica_full_polls_total", **own), one.full, adds_up=True)
    if pool.kind == "evictable":
        waiting = "lora_waiting" if pool.tells_waiting else "lora_replica_requests_waiting"
        yield Track(text(waiting, **own), one.waiting)
        registered = [Run(*span, REGISTERED) for span in lives]
        yield Track(text("lora_registered", **own), registered)


class Writer:
    """Writes the series piece by piece, each the length of a block."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._tracks = tracks(fleet)
        down = {step for first, end in fleet.exporter_down for step in range(first, end)}
        self._seen = [
            "" if step in down else f" {START + step * STEP}\n" for step in range(fleet.steps)
        ]
        self._restarts = sorted(first for first, end in fleet.exporter_down if end - first > 1)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """First and last-but-one steps of each piece."""
        first = 0
        while first < self._fleet.steps:
            until = ((START + first * STEP) // BLOCK + 1) * BLOCK
            end = min(-(-(until - START) // STEP), self._fleet.steps)
            yield first, end
            first = end

    def write(self, path: Path, first: int, end: int) -> None:
        """One piece; in the order of time."""
        with path.open("w") as file:
            for track in self._tracks:
                self._write(file, track, first, end)
            file.write("# EOF\n")

    def _write(self, file: TextIO, track: Track, first: int, end: int) -> None:
        runs = track.runs
        while track.at < len(runs) and runs[track.at].first < end:
            run = runs[track.at]
            start, stop = max(run.first, first), min(run.end, end)
            if track.adds_up:
                file.write(self._counted(track, run.value, start, stop))
            else:
                file.write(self._constant(track, run.value, start, stop))
            if run.end > end:
                return
            track.at += 1

    def _constant(self, track: Track, value: int, start: int, stop: int) -> str:
        head = f"{track.text} {value}"
        if track.hidden:
            return "".join([head + stamp for stamp in self._seen[start:stop] if stamp])
        times = range(START + start * STEP, START + stop * STEP, STEP)
        return "".join([f"{head} {time}\n" for time in times])

    def _counted(self, track: Track, value: int, start: int, stop: int) -> str:
        for restart in self._restarts:
            if start <= restart < stop:
                before = self._counted(track, value, start, restart)
                track.sum = 0
                lines = self._lines(track, value, restart, restart + 1)
                return before + lines + self._counted(track, value, restart + 1, stop)
        return self._lines(track, value, start, stop)

    def _lines(self, track: Track, value: int, start: int, stop: int) -> str:
        head, base = f"{track.text} ", track.sum
        track.sum += value * (stop - start)
        return "".join(
            [
                f"{head}{base + value * n}{stamp}"
                for n, stamp in enumerate(self._seen[start:stop], 1)
                if stamp
            ]
        )

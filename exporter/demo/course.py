"""Shifts that repeat for ever, and who of those at work has a slot. Pure functions of time.

Slots are given in order of arrival and kept while the work lasts, so whoever came after the slots
were full waits. All times are seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Shift:
    """Work of one adapter in each period. It may run on into the next one."""

    name: str
    starts: float
    """Into the period."""
    seconds: float
    """At most a period."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A time during which nothing changes: from `starts` until just before `ends`."""

    starts: float
    ends: float
    running: tuple[str, ...]
    """Who has a slot, in order of arrival."""
    waiting: tuple[str, ...]
    """Who works without a slot, in order of arrival."""


@dataclass(frozen=True, slots=True)
class Course:
    """One period without gaps, repeated for ever."""

    period: float
    segments: tuple[Segment, ...]

    def at(self, seconds: float) -> Segment:
        """The segment of this moment, in times of the period."""
        phase = seconds % self.period
        return next(segment for segment in self.segments if phase < segment.ends)

    def between(self, after: float, until: float) -> Iterator[Segment]:
        """The segments from `after` to `until`, both included, cut at `after`; in real times."""
        cycle = after // self.period * self.period
        while cycle <= until:
            for segment in self.segments:
                starts, ends = cycle + segment.starts, cycle + segment.ends
                if ends > after and starts <= until:
                    yield Segment(max(starts, after), ends, segment.running, segment.waiting)
            cycle += self.period

    def integral(self, value: Callable[[Segment], float], until: float) -> float:
        """The value of the segments, added up over the seconds from 0 to `until`."""
        cycles, phase = divmod(until, self.period)
        whole = sum(value(segment) * (segment.ends - segment.starts) for segment in self.segments)
        part = sum(
            value(segment) * (min(segment.ends, phase) - segment.starts)
            for segment in self.segments
            if segment.starts < phase
        )
        return cycles * whole + part


def make_course(shifts: Iterable[Shift], slots: int, period: float) -> Course:
    """The course of these shifts over this many slots."""
    shifts = tuple(shifts)
    changes = {0.0, period}
    for shift in shifts:
        changes |= {shift.starts, (shift.starts + shift.seconds) % period}
    times = sorted(changes)
    segments = []
    for starts, ends in pairwise(times):
        at_work = [
            (-((starts - shift.starts) % period), shift.name)
            for shift in shifts
            if (starts - shift.starts) % period < shift.seconds
        ]
        names = tuple(name for _, name in sorted(at_work))
        segments.append(Segment(starts, ends, names[:slots], names[slots:]))
    return Course(period, tuple(segments))

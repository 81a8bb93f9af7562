"""CPU time of a call."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable

TICK_SECONDS = 0.001


def cpu_seconds(
    call: Callable[[], object], least_runs: int = 5, least_seconds: float = 0.5
) -> float:
    """The median CPU time of one call, over at least so many runs and so much time."""
    call()
    times: list[float] = []
    gc.collect()
    while len(times) < least_runs or sum(times) < least_seconds:
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
        if len(times) >= 2000:
            break
    return statistics.median(times)


async def tick(gaps: list[float]) -> None:
    """Notes by how much the loop was late, again and again, until it is cancelled."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        gaps.append(time.perf_counter() - before - TICK_SECONDS)


async def stall(call: Callable[[], object]) -> float:
    """The longest time for which the loop did nothing else while a thread made the call."""
    ticking = asyncio.create_task(tick(gaps := [0.0]))
    await asyncio.to_thread(call)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return max(gaps)


def shown(seconds: float) -> str:
    """A time for people."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.1f} µs"


def ratio(peer: float, ours: float) -> str:
    """How many times the peer's time is ours."""
    times = peer / ours
    return f"{times:,.0f}" if times >= 10 else f"{times:.1f}"

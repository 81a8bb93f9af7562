"""`/probe?target=…&engine=…`: reads one target now.

Which targets may be asked is limited: whoever reaches this page would otherwise send requests from
our place in the network. Credentials go to configured targets only.
"""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from urllib.parse import urlsplit

from aiohttp import web

from exporter.current import name_replicas
from exporter.discovery.targets import make_target
from exporter.engines import AUTO, ENGINES
from exporter.exposition.fleet import Exposition
from exporter.fetching.ask import Asked, Asker, Exchange, Memory
from exporter.fetching.http import TlsError
from exporter.fleet import Target, TargetStatus
from exporter.settings import TargetGroup, normalise_url
from exporter.web.keys import STATE, WebState
from exporter.web.metrics import answer, wants_openmetrics

PROBE_GROUP = "probe"
TIMEOUT_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"
TIMEOUT_OFFSET = 0.5
"""Seconds that are left to bring the answer home."""
_SHOWN_BYTES = 4000


class _RefusedError(Exception):
    """A probe that is not made. `status`: for the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def handle(request: web.Request) -> web.StreamResponse:
    """The target's series, or with `debug=true` how they came about."""
    state = request.app[STATE]
    settings = state.settings()
    try:
        group, target = _target(request, state)
        timeout = _timeout(request, settings.poll.timeout)
    except _RefusedError as refused:
        return web.Response(status=refused.status, text=f"{refused}\n")
    if state.probing >= settings.poll.concurrency:
        return web.Response(status=503, text="Too many probes are under way.\n")
    state.probing += 1
    try:
        return await _probe(request, state, group, target, timeout)
    finally:
        state.probing -= 1


async def _probe(
    request: web.Request,
    state: WebState,
    group: TargetGroup,
    target: Target,
    timeout: float,  # noqa: ASYNC109 - handed on, so that each request tells its own reason
) -> web.StreamResponse:
    settings = state.settings()
    try:
        asker = Asker(state.http, group, settings.poll.stale_after, state.wall)
    except TlsError as error:
        return web.Response(status=500, text=f"{error}\n")
    try:
        asked = await asker.ask(target, Memory(), timeout)
    finally:
        await asker.close()
    status = _status(state, target, asked)
    exposition = Exposition(settings.poll.max_adapters)
    exposition.update(status)
    openmetrics = wants_openmetrics(request.headers.get("Accept", ""))
    if request.query.get("debug", "").lower() in ("1", "true"):
        return web.Response(text=_debug(status, asked, exposition.join(False).decode()))
    return await answer(request, exposition.chunks(openmetrics), openmetrics)


def _target(request: web.Request, state: WebState) -> tuple[TargetGroup, Target]:
    """What to ask. Raises _RefusedError."""
    settings = state.settings()
    wanted = request.query.get("target", "")
    if not wanted:
        raise _RefusedError(
            400, "target: wanted an address, as in /probe?target=http://10.0.0.5:8000"
        )
    try:
        url = normalise_url(wanted if "://" in wanted else f"http://{wanted}")
    except ValueError as error:
        raise _RefusedError(400, f"target: wanted {error}") from None
    engine = request.query.get("engine")
    if engine is not None and engine != AUTO and engine not in ENGINES:
        raise _RefusedError(400, f"engine: wanted one of {', '.join((AUTO, *ENGINES))}")
    target = state.finding.target(url)
    if target is not None:
        group = next(group for group in settings.targets if group.name == target.group)
        return group, target if engine is None else replace(target, engine=engine)
    if not _is_allowed(url, settings.probe.allow):
        text = "target: not a configured target and not in probe.allow"
        raise _RefusedError(403, text)
    group = TargetGroup(name=PROBE_GROUP, engine=engine or AUTO, static=(url,))
    return group, make_target(group, url)


def _is_allowed(url: str, allow: tuple[str, ...]) -> bool:
    """Whether the host is named, or its address lies in a network.

    A name that is not allowed as a name is not resolved: what it resolves to may change.
    """
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.lower().rstrip(".")
        return any(
            name == item or (item.startswith("*.") and name.endswith(item[1:])) for item in allow
        )
    return any(address in ipaddress.ip_network(item) for item in allow if _is_network(item))


def _is_network(item: str) -> bool:
    try:
        ipaddress.ip_network(item)
    except ValueError:
        return False
    return True


def _timeout(request: web.Request, at_most: float) -> float:
    """Seconds for the probe: what Prometheus leaves us, at most the poll's own deadline."""
    header = request.headers.get(TIMEOUT_HEADER)
    if header is None:
        return at_most
    try:
        seconds = float(header)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise _RefusedError(400, f"{TIMEOUT_HEADER}: wanted a number of seconds")
    return min(max(seconds - TIMEOUT_OFFSET, seconds / 2), at_most)


def _status(state: WebState, target: Target, asked: Asked) -> TargetStatus:
    reading = asked.reading
    table = reading.table
    return TargetStatus(
        target,
        engine=asked.engine,
        up=reading.up,
        reason=reading.reason,
        detail=reading.detail,
        last_success=state.wall() if reading.up else None,
        duration=asked.seconds,
        replicas=name_replicas(target, table, state.this_host, None) if table is not None else (),
        ghosts=table.ghosts if table is not None else None,
    )


def _debug(status: TargetStatus, asked: Asked, text: str) -> str:
    reason = status.reason.value if status.reason is not None else "none"
    lines = [
        f"target: {status.target.url}",
        f"engine: {status.engine or 'not detected'}",
        f"up: {int(bool(status.up))}",
        f"reason: {reason}",
        f"detail: {status.detail or 'none'}",
        f"duration: {asked.seconds:.3f} s",
        "",
        "# What was fetched",
    ]
    for exchange in asked.exchanges:
        lines += _shown(exchange)
    lines += ["", "# What was read"]
    for replica in status.replicas:
        lines += [f"replica {replica.replica_id}", *_fields(replica.table)]
    return "\n".join([*lines, "", "# The series that result", text])


def _shown(exchange: Exchange) -> list[str]:
    request, answered = exchange.request, exchange.answer
    name = f"{request.key}: {request.url}" if not request.patterns else f"{request.key}: the store"
    outcome = answered.detail or f"HTTP {answered.status}"
    size = f"{len(answered.body)} bytes"
    if answered.entries is not None:
        size = f"{len(answered.entries)} keys"
    lines = ["", f"{name} -> {outcome}, {size}, {exchange.seconds:.3f} s"]
    if request.confidential and answered.ok:
        lines.append("    (not shown: it may hold secrets)")
    elif answered.ok:
        body = answered.body
        if request.shown:
            body = b"\n".join(
                line
                for line in body.split(b"\n")
                if line.startswith(tuple(name.encode() for name in request.shown))
            )
        text = body[:_SHOWN_BYTES].decode(errors="replace")
        lines += [f"    {line}" for line in text.splitlines()]
        if len(body) > _SHOWN_BYTES:
            lines.append(f"    ... and {len(body) - _SHOWN_BYTES} bytes more")
    return lines


def _fields(table: object) -> list[str]:
    names = getattr(table, "__dataclass_fields__", {})
    return [f"    {name}: {getattr(table, name)}" for name in names if name != "adapters"]

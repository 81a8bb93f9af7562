"""How replicas are called, so that two exporters that watch one fleet give the same ids."""

from __future__ import annotations

import ipaddress
import os
import socket
from urllib.parse import urlsplit

from exporter.engines.twinkle import DEFAULT_PREFIX
from exporter.fleet import Target

_PORTS = {"http": 80, "https": 443}


def here() -> str:
    """What this machine is called for others: `$POD_NAME`, else the host name."""
    return os.environ.get("POD_NAME") or socket.gethostname()


def replica_id(target: Target, this_host: str) -> str:
    """The id of a replica that is a target of its own: the operator's name, else host:port.

    A path follows where there is one, as replicas behind one gateway differ in nothing else; but
    for the prefix that every Twinkle server has. A loopback address means another machine for each
    exporter, so `this_host` stands for it.
    """
    if target.replica is not None:
        return target.replica
    parts = urlsplit(target.url)
    host = parts.hostname or ""
    port = parts.port or _PORTS.get(parts.scheme, 0)
    if is_loopback(host):
        host = this_host
    elif ":" in host:
        host = f"[{host}]"
    path = "" if parts.path == DEFAULT_PREFIX else parts.path
    return f"{host}:{port}{path}"


def is_loopback(host: str) -> bool:
    """Whether the host means another machine for each that asks."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

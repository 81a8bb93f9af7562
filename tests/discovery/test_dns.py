"""Names and their records, from a real DNS server whose records change."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import dns.asyncresolver
import pytest

from exporter.discovery.base import DiscoveryError, Found
from exporter.discovery.dns import Dns
from exporter.settings.discovery import DnsDiscovery
from tests.support.programs import free_port, listens, program, running, until

FIRST = """
address=/vllm.test/10.0.0.5
address=/vllm.test/10.0.0.6
address=/six.test/fd00::5
srv-host=_http._tcp.vllm.test,pod-0.vllm.test,8000
srv-host=_http._tcp.vllm.test,pod-1.vllm.test,8001
local=/test/
"""


@contextlib.asynccontextmanager
async def server(folder: Path, records: str, port: int) -> AsyncIterator[None]:
    """A DNS server with these records."""
    file = folder / "dnsmasq.conf"
    file.write_text(records)
    command = (
        program("dnsmasq"),
        "--keep-in-foreground",
        "--no-resolv",
        "--no-hosts",
        "--listen-address=127.0.0.1",
        "--bind-interfaces",
        f"--port={port}",
        f"--conf-file={file}",
        "--user=root",
        "--pid-file",
    )
    async with running(*command):
        await until(lambda: listens(port))
        yield


def look_up(server_port: int, **settings: object) -> Dns:
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = server_port
    defaults = {"names": ("vllm.test",), "port": 8000, "timeout": "2s"}
    return Dns(DnsDiscovery(**{**defaults, **settings}), resolver)


async def test_addresses_come_and_go(tmp_path: Path) -> None:
    port = free_port()
    found = look_up(port)
    async with server(tmp_path, FIRST, port):
        assert await found.find() == (Found("http://10.0.0.5:8000"), Found("http://10.0.0.6:8000"))
        both = look_up(port, names=("vllm.test", "vllm.test."), scheme="https")
        assert [one.url for one in await both.find()] == [
            "https://10.0.0.5:8000",
            "https://10.0.0.6:8000",
        ]
        six = look_up(port, names=("six.test",), type="AAAA")
        assert await six.find() == (Found("http://[fd00::5]:8000"),)
    async with server(tmp_path, "address=/vllm.test/10.0.0.7\nlocal=/test/\n", port):
        assert await found.find() == (Found("http://10.0.0.7:8000"),)
    async with server(tmp_path, "local=/test/\n", port):
        assert await found.find() == ()


async def test_services_have_their_ports(tmp_path: Path) -> None:
    port = free_port()
    found = look_up(port, names=("_http._tcp.vllm.test",), type="SRV", port=None)
    async with server(tmp_path, FIRST, port):
        assert await found.find() == (
            Found("http://pod-0.vllm.test:8000"),
            Found("http://pod-1.vllm.test:8001"),
        )


async def test_a_server_that_is_gone_is_no_answer() -> None:
    with pytest.raises(DiscoveryError, match=r"^vllm\.test A: "):
        await look_up(free_port(), timeout="300ms").find()

"""Targets from DNS: A and AAAA records with a port, or SRV records, which have it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from exporter.discovery.base import DiscoveryError, Found
from exporter.settings import normalise_url
from exporter.settings.discovery import DnsDiscovery

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

MISSING = "discovery by DNS needs the extra dns: pip install 'lora-capacity-exporter[dns]'"


class Dns:
    """The names of one group."""

    def __init__(self, settings: DnsDiscovery, resolver: Resolver | None = None) -> None:
        """`resolver`: the system's, unless told. Raises DiscoveryError where the optional package
        is missing."""
        try:
            import dns.asyncresolver  # noqa: PLC0415 - an extra, imported only where it is used
        except ImportError:
            raise DiscoveryError(MISSING) from None
        self._settings = settings
        self._resolver = resolver or dns.asyncresolver.Resolver()
        self._resolver.lifetime = settings.timeout

    async def find(self) -> tuple[Found, ...]:
        """The targets of all names. Raises DiscoveryError when one cannot be looked up."""
        lookups = (self._of(name) for name in self._settings.names)
        found = [url for urls in await asyncio.gather(*lookups) for url in urls]
        return tuple(Found(url) for url in dict.fromkeys(found))

    async def wait(self) -> None:
        """Until the next look-up."""
        await asyncio.sleep(self._settings.refresh)

    async def close(self) -> None:
        """Nothing is held open."""

    async def _of(self, name: str) -> list[str]:
        import dns.exception  # noqa: PLC0415 - an extra, imported only where it is used
        import dns.resolver  # noqa: PLC0415 - the same

        kind = self._settings.type
        try:
            answer = await self._resolver.resolve(name, kind)
        except (dns.resolver.NoAnswer, dns.resolver.NXDOMAIN):
            # Nothing runs: a headless service without endpoints is no name at all.
            return []
        except (dns.exception.DNSException, OSError) as error:
            raise DiscoveryError(f"{name} {kind}: {type(error).__name__}") from None
        return sorted(self._url(record) for record in answer)

    def _url(self, record: Any) -> str:
        if self._settings.type == "SRV":
            host, port = record.target.to_text(omit_final_dot=True), record.port
        else:
            host, port = record.address, self._settings.port
        shown = f"[{host}]" if ":" in host else host
        try:
            return normalise_url(f"{self._settings.scheme}://{shown}:{port}")
        except ValueError:
            raise DiscoveryError(f"{self._settings.type} record: no address") from None

"""What a way to find targets is to us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class DiscoveryError(Exception):
    """Targets could not be found. The text says why, without anything confidential."""


@dataclass(frozen=True, slots=True)
class Found:
    """One address that was found, and what is known of it. Empty: not known."""

    url: str
    """Base address, normalised."""
    replica: str | None = None
    """Id of the replica, where it is not the address."""
    model: str | None = None
    node: str = ""
    namespace: str = ""
    pod: str = ""


class Discovery(Protocol):
    """One way to find the targets of one group. Used from one task."""

    async def find(self) -> tuple[Found, ...]:
        """All targets, as they are now. Raises DiscoveryError."""
        ...

    async def wait(self) -> None:
        """Returns when it is time to look again."""
        ...

    async def close(self) -> None:
        """Ends what it holds open."""
        ...

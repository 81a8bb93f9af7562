"""What a metric family is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family. `labels` are in the order in which they are rendered.

    Experimental: no released engine is known to tell it, so its meaning may still change.
    """

    name: str
    type: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    help: str
    stability: Literal["stable", "experimental"] = "stable"

    def header(self, openmetrics: bool) -> bytes:
        """HELP and TYPE. OpenMetrics names a counter's family without `_total`."""
        name = self.name
        if openmetrics and self.type == "counter":
            name = name.removesuffix("_total")
        return f"# HELP {name} {self.help}\n# TYPE {name} {self.type}\n".encode()

"""PromQL in pieces: selectors, grouping and the joins that several rules share."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.generator.inputs import Inputs

LOOPBACK = r"https?://(localhost|127\\.[0-9.]+|\\[::1\\])(:.*|/.*)?"
"""Targets of sidecars, whose address says nothing about where they are. As a PromQL string."""
CARD = "model:lora_card:info"


@dataclass(frozen=True, slots=True)
class Scope:
    """Writes PromQL for the aggregation labels and matchers of the inputs."""

    labels: tuple[str, ...]
    matchers: str

    @classmethod
    def of(cls, inputs: Inputs) -> Scope:
        """The scope that the inputs ask for."""
        return cls(inputs.aggregation_labels, inputs.matchers)

    def series(self, name: str, matchers: str = "") -> str:
        """A selector of a series as it is scraped."""
        both = ",".join(part for part in (self.matchers, matchers) if part)
        return f"{name}{{{both}}}" if both else name

    def by(self, *labels: str) -> str:
        """A grouping by these labels and those of the inputs."""
        return f"by ({', '.join((*self.labels, *labels))})"

    def on(self, *labels: str) -> str:
        """A match on these labels and those of the inputs."""
        return f"on ({', '.join((*self.labels, *labels))})"

    def max_by(self, expression: str, *labels: str) -> str:
        """The largest over exporters that watch the same thing."""
        return f"max {self.by(*labels)} ({expression})"

    def per_replica(self, name: str, matchers: str = "") -> str:
        """A replica's number, whichever exporter tells it."""
        return self.max_by(self.series(name, matchers), "model", "replica_id")

    def per_model(self, name: str, matchers: str = "") -> str:
        """A model's number, whichever exporter tells it."""
        return self.max_by(self.series(name, matchers), "model")

    def with_card(self, expression: str) -> str:
        """Adds class and owner. Every model has exactly one such row, so none is silenced."""
        return f"(\n{indent(expression)}\n)\n* {self.on('model')} group_left (class, owner) {CARD}"

    def named(self, label: str = "model") -> str:
        """Text: a label's value, followed by those of the aggregation labels that it has."""
        rest = "".join(
            f"{{{{ with $labels.{name} }}}} ({{{{ . }}}}){{{{ end }}}}" for name in self.labels
        )
        return f"{{{{ $labels.{label} }}}}{rest}"


def indent(text: str, by: str = "  ") -> str:
    """The text, each line moved to the right."""
    return "\n".join(by + line if line else line for line in text.splitlines())

"""Fleets over time as promtool's input, in steps of half a minute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.rules_files import HOME, groups

STEP = 30
"""Seconds between scrapes."""
Value = Callable[[int], float | None]
"""The value at a step; None where there is none."""


def minutes(count: float) -> int:
    """Steps of so many minutes."""
    return int(count * 60 / STEP)


def between(start: float, end: float, value: float | Value = 1) -> Value:
    """A value from one minute to another, and none before and after."""
    first, last = minutes(start), minutes(end)

    def at(step: int) -> float | None:
        if not first <= step < last:
            return None
        return value(step) if callable(value) else value

    return at


def rising(per_minute: float, since: float = 0) -> Value:
    """A counter that starts at a minute."""
    return lambda step: max(step - minutes(since), 0) * per_minute * STEP / 60


@dataclass
class Timeline:
    """Series by text, and for how long."""

    length: float
    """Minutes."""
    series: dict[str, Value] = field(default_factory=dict)
    evaluation: int = STEP
    """Seconds between evaluations of the rules."""
    missed: frozenset[int] = frozenset()
    """Steps at which the scrape of exporter `a` fails."""

    def add(self, name: str, value: float | Value, **labels: str) -> None:
        """One series, of exporter `a` unless the labels say otherwise."""
        every = {"job": "lora", "instance": "a", **labels}
        text = ",".join(f'{key}="{one}"' for key, one in every.items())
        self.series[f"{name}{{{text}}}"] = value if callable(value) else lambda step: value

    def replica(
        self,
        model: str,
        replica_id: str,
        alive: tuple[float, float],
        max_: float,
        used: float | Value,
        *,
        kind: str = "evictable",
        full: float = 0,
        more: Mapping[str, float | Value] | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        """A replica between two minutes. `full`: the share of polls that find no free slot;
        `others`: labels besides its own."""
        start, end = alive
        engine = {"engine": "vllm", "version": "0.32.0", "source": "activity"}
        if kind == "exclusive":
            engine = {"engine": "twinkle", "version": "0.5.1", "source": "state+ray"}
        own = {"model": model, "replica_id": replica_id, **(others or {})}
        self.add("lora_replica_info", between(start, end), slot_kind=kind, **engine, **own)
        self.add("lora_max", between(start, end, max_), slot_kind=kind, **own)
        self.add("lora_used", between(start, end, used), slot_kind=kind, **own)
        self.add("lora_replica_polls_total", between(start, end, rising(6, start)), **own)
        counter = between(start, end, rising(6 * full, start))
        self.add("lora_replica_full_polls_total", counter, **own)
        for name, value in (more or {}).items():
            self.add(name, between(start, end, value), **own)

    def exporter(self, instance: str = "a", alive: tuple[float, float] | None = None) -> None:
        """That an exporter can be scraped."""
        start, end = alive or (0, self.length + 1)
        self.add("up", between(start, end), instance=instance)

    def _values(self, text: str, value: Value) -> str:
        words: list[str] = []
        there = False
        for step in range(minutes(self.length) + 1):
            now = value(step)
            if step in self.missed and 'instance="a"' in text:
                now = 0 if text.startswith("up{") else None
            # A series that ends is marked, as Prometheus does.
            words.append(f"{now:g}" if now is not None else "stale" if there else "_")
            there = now is not None
        return " ".join(words)

    def write(self, file: Path, expressions: Mapping[str, list[dict[str, Any]]]) -> Path:
        """A test file over all rules. The expressions are evaluated at the end."""
        document = {
            "rule_files": [str(HOME / "rules" / f"lora-{name}.yml") for name in _RULES],
            "evaluation_interval": f"{self.evaluation}s",
            "group_eval_order": ["lora-recording", *sorted(set(groups().values()))],
            "tests": [
                {
                    "interval": f"{STEP}s",
                    "input_series": [
                        {"series": text, "values": self._values(text, value)}
                        for text, value in self.series.items()
                    ],
                    "promql_expr_test": [
                        {
                            "expr": expr,
                            "eval_time": f"{self.length * 60:.0f}s",
                            "exp_samples": samples,
                        }
                        for expr, samples in expressions.items()
                    ],
                }
            ],
        }
        file.write_text(yaml.safe_dump(document))
        return file


_RULES = ("recording", "alerts")

"""Reading one replica's metrics, beside the client library's parser on the same bytes."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.fleet import Target
from tests.benchmarks.measure import cpu_seconds, ratio, shown

CAPTURE = Path(__file__).parents[1] / "captures/vllm/0.32.0/main/12-traffic8.at1.1s.metrics.txt"
NOW = 1796074641.0
HEADER = ("Exposition", "Size", "Reader", "`prometheus_client` parser", "Ratio")


def of_engines(count: int) -> bytes:
    """The recorded exposition, as a data-parallel replica of so many engines sends it."""
    lines = []
    for line in CAPTURE.read_text().splitlines():
        engines = range(count) if 'engine="0"' in line else range(1)
        lines += [line.replace('engine="0"', f'engine="{engine}"') for engine in engines]
    return ("\n".join(lines) + "\n").encode()


def rows() -> list[tuple[str, ...]]:
    """One line for each size."""
    read = ENGINES["vllm"].read
    target = Target("http://replica:8000", "g")
    found: list[tuple[str, ...]] = []
    for engines in (1, 14):
        body = of_engines(engines)
        answers = {"metrics": Answer(body, status=200)}
        table = read(target, answers, NOW).table
        assert table is not None
        assert table.replicas[0].used is not None
        text = body.decode()
        ours = cpu_seconds(lambda answers=answers: read(target, answers, NOW))  # type: ignore[misc]
        peer = cpu_seconds(lambda text=text: list(text_string_to_metric_families(text)))  # type: ignore[misc]
        name = f"vLLM 0.32.0, {engines} engine{'s' if engines > 1 else ''}"
        found.append((name, f"{len(body) // 1000} kB", shown(ours), shown(peer), ratio(peer, ours)))
    return found

"""Runs all measurements and writes them into docs/performance.md."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from exporter import __version__
from tests.benchmarks import planning, reading, rendering, scraping

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Measures and writes."""
    today = datetime.datetime.now(datetime.UTC).date()
    text = (
        f"Measured on {today} with lora-capacity-exporter {__version__}, Python "
        f"{platform.python_version()}, prometheus_client {version('prometheus-client')}, "
        f"{os.cpu_count()} cores.\n"
    )
    for title, part in (
        ("Reading one replica", reading),
        ("Rendering the fleet", rendering),
        ("One scrape", scraping),
        ("Planning the cluster", planning),
    ):
        print(title, flush=True)
        table = _table(part.HEADER, part.rows())
        print(table, flush=True)
        text += f"\n### {title}\n\n{table}"
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()

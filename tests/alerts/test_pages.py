"""Runbooks and README: one page for each alert, links that lead somewhere, queries that work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from exporter.cli import main
from tests.alerts.rules_files import HOME, alerts
from tests.alerts.test_lint import known, problems

PAGES = sorted((HOME / "runbooks").glob("*.md"))
CHAPTERS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "When to silence"]
_LINK = re.compile(r"\]\(([^)]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    """Lines of a page's code in a language."""
    found = re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)
    return [line for block in found for line in block.strip().splitlines()]


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    assert {page.stem for page in PAGES} == set(alerts())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_alerts_heading_and_the_same_chapters(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert lines[0] == f"# {page.stem}"
    assert [line[3:] for line in lines if line.startswith("## ")] == CHAPTERS
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize("page", [*PAGES, HOME / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text()):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            place = page.parent / path if path else page
            assert place.exists(), link
            if anchor:
                headings = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
                assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_queries_of_a_page_use_series_that_there_are(page: Path) -> None:
    queries = blocks(page, "promql")
    assert queries
    known().series.setdefault("process_start_time_seconds", known().series["up"])
    known().series.setdefault("process_cpu_seconds_total", known().series["up"])
    known().series.setdefault("vllm:kv_cache_usage_perc", known().series["up"])
    for query in queries:
        # By hand on one fleet a query need not be safe for two exporters.
        found = [
            text
            for text in problems(query)
            if not text.startswith(("two exporters", "may match", "sides with", "divides"))
        ]
        assert not found, query


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in blocks(page, "sh"):
        words = shlex.split(line, comments=True)
        if words[0] != "lora-exporter":
            continue
        with pytest.raises(SystemExit) as ended:
            main([words[1], "--help"])
        assert ended.value.code == 0
        flags = [word for word in words[2:] if word.startswith("--")]
        helped = capsys.readouterr().out
        assert all(re.search(rf"{re.escape(flag)}\b", helped) for flag in flags), line

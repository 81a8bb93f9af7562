"""What each recorded body is exported as, against the checked-in text and against other parsers.

`UPDATE_GOLDEN=1` in the environment writes `tests/golden/**/*.prom` anew, from the same tests.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.exposition.expectation import expected, parsed, text_of
from tests.support.captures import Case, assert_only_goldens, cases, check_golden

each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: str(case.path))


@each_case
def test_recorded_bodies_are_exported_as_the_golden_text(case: Case) -> None:
    check_golden(f"{case.path}.prom", text_of([case.status()], openmetrics=False).decode())


@each_case
@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_other_parsers_read_what_the_table_says(case: Case, openmetrics: bool) -> None:
    status = case.status()
    assert parsed(text_of([status], openmetrics), openmetrics) == expected([status])


@each_case
def test_promtool_accepts_the_text(case: Case) -> None:
    text = text_of([case.status()], openmetrics=False)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_each_golden_text_belongs_to_a_capture() -> None:
    assert_only_goldens(".prom", (case.path for case in cases()))

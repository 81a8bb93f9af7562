"""Each condition, branch and duration is there for a reason: without it a promtool test fails."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from alerts.generator.rules import Alert, Recording
from tests.alerts.rules_files import HOME, alerts, promtool, recorded, write


def mutants(alert: Alert) -> Iterator[tuple[str, Alert]]:
    """What is missing, and the alert without it."""
    for less in alert.expression.mutants():
        yield f"became\n{less}", replace(alert, expression=less)
    yield "for: 0s", replace(alert, for_="0s")
    yield "keep_firing_for: 0s", replace(alert, keep_firing_for="0s")


@pytest.mark.parametrize("name", alerts())
def test_a_test_misses_each_part_of_an_alert(name: str, tmp_path: Path) -> None:
    test = HOME / "tests" / f"{name}.yml"
    described, versions = zip(*mutants(alerts()[name]), strict=True)
    with ThreadPoolExecutor(2) as pool:
        placed = [
            write(tmp_path / str(n), test, recorded(), alert) for n, alert in enumerate(versions)
        ]
        intact = write(tmp_path / "intact", test, recorded(), alerts()[name])
        results = list(pool.map(lambda place: promtool("test", "rules", place), [intact, *placed]))
    assert results[0][0], results[0][1]
    survivors = [what for what, (content, _) in zip(described, results[1:], strict=True) if content]
    assert not survivors, "no test fails where the alert " + "\nor ".join(survivors)


def recording_mutants(n: int) -> Iterator[tuple[str, tuple[Recording, ...]]]:
    """The same for one recording rule, the whole of it included."""
    rules = recorded()
    before, rule, after = rules[:n], rules[n], rules[n + 1 :]
    yield "is missing", before + after
    for less in rule.expression.mutants():
        yield f"became\n{less}", (*before, replace(rule, expression=less), *after)


@pytest.mark.parametrize("n", range(len(recorded())), ids=[rule.name for rule in recorded()])
def test_a_test_misses_each_part_of_a_recording_rule(n: int, tmp_path: Path) -> None:
    test = HOME / "tests" / "recording.yml"
    for number, (what, rules) in enumerate(recording_mutants(n)):
        content, _ = promtool("test", "rules", write(tmp_path / str(number), test, rules))
        assert not content, f"no test fails where {recorded()[n].name} {what}"

"""Each condition, branch and duration is there for a reason: without it a promtool test fails."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from alerts.generator.recordings import TOPICS
from alerts.generator.rules import Alert, Recording
from tests.alerts.rules_files import HOME, alerts, inputs, needed_by, promtool, recorded, write


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


def recording_mutants(
    rules: tuple[Recording, ...], names: set[str]
) -> Iterator[tuple[str, tuple[Recording, ...]]]:
    """The rules without one of the named, or with one that lacks a part."""
    for n, rule in enumerate(rules):
        if rule.name in names:
            before, after = rules[:n], rules[n + 1 :]
            yield f"{rule.name} is missing", before + after
            for less in rule.expression.mutants():
                less_whole = replace(rule, expression=less)
                yield f"{rule.name} became\n{less}", (*before, less_whole, *after)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.__name__.rpartition(".")[2])
def test_a_test_misses_each_part_of_a_recording_rule(topic: ModuleType, tmp_path: Path) -> None:
    test = HOME / "tests" / f"recording-{topic.__name__.rpartition('.')[2]}.yml"
    rules = needed_by(test.read_text(), recorded())
    names = {rule.name for rule in topic.rules(inputs())}
    assert names <= {rule.name for rule in rules}
    described, versions = zip(*recording_mutants(rules, names), strict=True)
    with ThreadPoolExecutor(2) as pool:
        placed = [write(tmp_path / str(n), test, version) for n, version in enumerate(versions)]
        intact = write(tmp_path / "intact", test, rules)
        results = list(pool.map(lambda place: promtool("test", "rules", place), [intact, *placed]))
    assert results[0][0], results[0][1]
    survivors = [what for what, (content, _) in zip(described, results[1:], strict=True) if content]
    assert not survivors, "no test fails where " + "\nor ".join(survivors)

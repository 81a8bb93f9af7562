"""The replay sees what Prometheus sees, and its figures fall when alerts do not do their work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from alerts.generator import product
from alerts.replay.firing import Firing, firing
from alerts.replay.judge import RULES, Firings, lead_minutes, verdicts
from alerts.replay.openmetrics import Track, Writer, tracks
from alerts.replay.prometheus import Server, levels, recorded_names
from alerts.replay.replay import evaluate, made_up, record
from alerts.replay.report import Report
from alerts.replay.truth import build_minutes, exhaustions
from alerts.replay.world import HOUR, WEEK, Fleet, History, Pool, minutes
from tests.alerts.rules_files import HOME, alerts, groups, inputs, promtool, recorded

RESTLESS = (
    Pool("small", "exclusive", 2, 4, 0.75, "churning"),
    Pool("filling", "exclusive", 1, 32, 0.04, "lively", growth=1e6),
)


def test_an_alert_fires_when_promtool_says_so(tmp_path: Path) -> None:
    random, steps = Random(4), 400  # noqa: S311
    series, expected = {}, {}
    for name in "abcdef":
        share = random.uniform(0.5, 0.95)
        active = [step for step in range(steps) if random.random() < share]
        series[name] = " ".join("1" if step in active else "stale" for step in range(steps))
        expected[name] = firing(active, 4, 3, steps)
    rule = {"alert": "A", "expr": "x == 1", "for": "2m", "keep_firing_for": "90s"}
    (tmp_path / "r.yml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}))
    checks = [
        {
            "expr": 'count by (name) (ALERTS{alertstate="firing"})',
            "eval_time": f"{step * 30}s",
            "exp_samples": [
                {"labels": f'{{name="{name}"}}', "value": 1}
                for name, found in expected.items()
                if any(one.first <= step < one.end for one in found)
            ],
        }
        for step in range(steps)
    ]
    assert sum(len(found) for found in expected.values()) > 20
    document = {
        "rule_files": ["r.yml"],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [
                    {"series": f'x{{name="{name}"}}', "values": values}
                    for name, values in series.items()
                ],
                "promql_expr_test": checks,
            }
        ],
    }
    (tmp_path / "t.yml").write_text(yaml.safe_dump(document, width=10_000_000))
    content, said = promtool("test", "rules", tmp_path / "t.yml")
    assert content, said[:2000]


def _values(track: Track, fleet: Fleet, restarts: set[int]) -> str:
    """A series as promtool's input, with the markers that Prometheus writes when it is gone."""
    down = {step for first, end in fleet.exporter_down for step in range(first, end)}
    values: list[str] = ["_"] * fleet.steps
    total = 0
    for run in track.runs:
        for step in range(run.first, run.end):
            total = run.value + (0 if step in restarts else total)
            if not (track.hidden and step in down):
                values[step] = str(total if track.adds_up else run.value)
    for step in range(1, fleet.steps):
        if values[step] == "_" and values[step - 1] not in ("_", "stale"):
            values[step] = "stale"
    return " ".join(values)


def _as_promtool_sees_it(fleet: Fleet, firings: Firings) -> dict[str, Any]:
    down = [span for span in fleet.exporter_down if span[1] - span[0] > 1]
    restarts = {first for first, _ in down}
    checks = []
    for step in range(HOUR, fleet.steps, 7):
        count: dict[tuple[str, str], int] = {}
        for name, labels, one in _each(firings):
            if one.first <= step < one.end:
                key = (name, labels.get("model", ""))
                count[key] = count.get(key, 0) + 1
        checks.append(
            {
                "expr": 'count by (alertname, model) (ALERTS{alertstate="firing"})',
                "eval_time": f"{step * 30}s",
                "exp_samples": [
                    {
                        "labels": f'{{alertname="{name}"'
                        + (f',model="{model}"}}' if model else "}"),
                        "value": value,
                    }
                    for (name, model), value in count.items()
                ],
            }
        )
    return {
        "rule_files": [
            str(HOME / "rules" / f"lora-{name}.yml") for name in ("recording", "alerts")
        ],
        "evaluation_interval": "30s",
        "group_eval_order": ["lora-recording", *sorted(set(groups().values()))],
        "tests": [
            {
                "interval": "30s",
                "input_series": [
                    {"series": track.text, "values": _values(track, fleet, restarts)}
                    for track in tracks(fleet)
                    if track.runs
                ],
                "promql_expr_test": checks,
            }
        ],
    }


def _each(firings: Firings) -> Iterator[tuple[str, dict[str, str], Firing]]:
    for name, by_labels in firings.items():
        for labels, found in by_labels.items():
            yield from ((name, dict(labels), one) for one in found)


def test_the_replay_fires_what_promtool_fires(tmp_path: Path) -> None:
    fleet = made_up(RESTLESS, 9 * HOUR, 3)
    fleet.exporter_down = [(3 * HOUR, 3 * HOUR + 1), (4 * HOUR, 4 * HOUR + 3)]
    server = Server(tmp_path / "replay")
    server.backfill(Writer(fleet))
    # Rates depend on when in the interval rules are evaluated: for promtool it is with the scrape.
    every = [
        alert
        for alert in alerts().values()
        if alert.name in RULES and "ratio10m" not in alert.expr()
    ]
    record(server, inputs(), every, fleet.steps)
    with server.running():
        firings = evaluate(server, every, fleet.steps, later=0)
    names = {name for name, _, _ in _each(firings)}
    assert names >= {"LoraSlotsExhausted", "LoraSlotsAlmostExhausted", "LoraSlotsFillingUp"}
    test = tmp_path / "t.yml"
    test.write_text(yaml.safe_dump(_as_promtool_sees_it(fleet, firings), width=10_000_000))
    content, said = promtool("test", "rules", test)
    assert content, said[:3000]


def filled(over: int) -> Fleet:
    """A pool of twenty slots that fills up evenly over so many minutes, after six hours."""
    history = History(Pool("pool", "exclusive", 2, 10, 0.5), 12 * HOUR)
    began, last = 6 * HOUR, 6 * HOUR + minutes(over)
    for step in range(history.steps):
        part = min(max(step - began, 0) / minutes(over), 1)
        history.free.append(round(20 * (1 - part)) if step < last + HOUR else 20)
    history.total, history.largest = [20] * history.steps, [10] * history.steps
    return Fleet(history.steps, {"pool": history})


def _told(**alerts: list[Firing]) -> Firings:
    none: dict[str, dict[tuple[tuple[str, str], ...], list[Firing]]] = {name: {} for name in RULES}
    return none | {name: {(("model", "pool"),): found} for name, found in alerts.items()}


@pytest.mark.parametrize("over", [20, 45, 90])
def test_a_fill_takes_as_long_as_it_took(over: int) -> None:
    (one,) = exhaustions(filled(over).histories["pool"])
    assert one.build == pytest.approx(over, abs=2 * over / 20)
    assert one.slow is (over > 30)


def test_noise_before_a_jump_is_no_fill() -> None:
    noise = [5 + step % 4 for step in range(4 * HOUR)]
    assert build_minutes([*noise, 0], [20] * (4 * HOUR + 1), 4 * HOUR) < 5


def test_alerts_that_do_not_fire_are_missed() -> None:
    fleet = filled(90)
    (one,) = exhaustions(fleet.histories["pool"])
    silent = Report(fleet, _told(), [])
    assert silent.share([one]) == 0
    assert "**not reached**" in silent.markdown()
    missed = {v.alert: v.missed for v in verdicts(fleet, _told(), [one])}
    assert missed["LoraSlotsExhausted"] == 1


def test_an_announcement_counts_from_where_it_did_not_end_again() -> None:
    fleet = filled(90)
    (one,) = exhaustions(fleet.histories["pool"])
    early = Firing(one.first - 3 * HOUR, one.first - 2 * HOUR)
    late = Firing(one.first - minutes(25), one.first - minutes(5))
    assert lead_minutes(_told(LoraSlotsFillingUp=[early]), one) == 0
    both = _told(LoraSlotsFillingUp=[early, late])
    assert lead_minutes(both, one) == 25
    assert Report(fleet, both, []).share([one]) == 1


def test_a_forecast_of_nothing_is_false() -> None:
    fleet = filled(90)
    (one,) = exhaustions(fleet.histories["pool"])
    true = Firing(one.first - minutes(30), one.first)
    false = Firing(HOUR, HOUR + minutes(20))
    weeks = fleet.steps / WEEK
    report = Report(fleet, _told(LoraSlotsFillingUp=[true, false]), [])
    assert report.false_per_week() == pytest.approx(1 / weeks)


def test_each_level_reads_only_what_was_recorded_before() -> None:
    known: set[str] = set()
    found = levels(recorded(), [alert.expr() for alert in alerts().values()])
    for level in found:
        for rule in level:
            assert recorded_names(rule.expr()) <= known
        known |= {rule.name for rule in level}
    wanted = set().union(*(recorded_names(alert.expr()) for alert in alerts().values()))
    assert wanted <= known


def test_every_judged_alert_exists() -> None:
    every = {alert.name for group in product.alerts(inputs()).values() for alert in group}
    assert set(RULES) <= every

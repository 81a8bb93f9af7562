"""promtool on the shipped rules: they load, and each does what its test says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.alerts.rules_files import HOME, TESTS, alerts, promtool


def test_prometheus_accepts_the_rules() -> None:
    files = sorted((HOME / "rules").glob("*.yml"))
    assert len(files) == 2
    content, said = promtool("check", "rules", *files)
    assert content, said


@pytest.mark.parametrize("test", TESTS, ids=lambda path: path.stem)
def test_rules_do_what_their_tests_say(test: Path) -> None:
    content, said = promtool("test", "rules", test)
    assert content, said


def test_every_alert_has_a_test_which_sees_it_fire_and_stay_silent() -> None:
    for name in alerts():
        document = yaml.safe_load((HOME / "tests" / f"{name}.yml").read_text())
        seen = [
            bool(case.get("exp_alerts"))
            for block in document["tests"]
            for case in block["alert_rule_test"]
            if case["alertname"] == name
        ]
        assert True in seen, name
        assert False in seen, name


def test_every_expected_alert_is_whole() -> None:
    for test in TESTS:
        for block in yaml.safe_load(test.read_text())["tests"]:
            for case in block.get("alert_rule_test", []):
                for alert in case.get("exp_alerts", []):
                    assert set(alert["exp_annotations"]) == {
                        "summary",
                        "description",
                        "runbook_url",
                        "dashboard_url",
                    }, (test.name, case)

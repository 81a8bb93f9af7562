"""The rendered files are current, bad inputs are told, other inputs give other rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.generator.__main__ import main
from alerts.generator.inputs import InputError, load
from alerts.generator.product import HOME, INPUTS, alerts, rules
from tests.alerts.rules_files import promtool


def changed(folder: Path, **keys: Any) -> Path:
    """The shipped inputs with other top-level keys; None leaves one out."""
    document = yaml.safe_load(INPUTS.read_text()) | keys
    file = folder / "inputs.yml"
    file.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}))
    return file


def test_the_rendered_files_are_current() -> None:
    assert main(["--check"]) == 0


def test_a_difference_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = changed(tmp_path, exporter_job="other")
    assert main(["--check", "--inputs", str(file)]) == 1
    assert "alerts/rules/lora-alerts.yml: not current; run make alerts" in capsys.readouterr().err


def test_rules_of_other_inputs_go_elsewhere(tmp_path: Path) -> None:
    file, folder = changed(tmp_path, exporter_job="other"), tmp_path / "made" / "rules"
    assert main(["--inputs", str(file), "--output", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == set(rules(load(file)))
    assert 'up{job="other"}' in (folder / "lora-alerts.yml").read_text()
    assert main(["--inputs", str(file), "--output", str(folder), "--check"]) == 0
    assert main(["--check"]) == 0


def test_the_operator_gets_the_same_rules() -> None:
    plain = [
        group
        for name in ("lora-recording.yml", "lora-alerts.yml")
        for group in yaml.safe_load((HOME / "rules" / name).read_text())["groups"]
    ]
    rule = yaml.safe_load((HOME / "rules" / "prometheusrule.yaml").read_text())
    assert (rule["apiVersion"], rule["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert rule["spec"] == {"groups": plain}


@pytest.mark.parametrize("labels", [[], ["cluster", "namespace"], ["region", "cluster", "env"]])
def test_prometheus_accepts_other_labels_and_matchers(tmp_path: Path, labels: list[str]) -> None:
    file = changed(tmp_path, aggregation_labels=labels, matchers='env=~"prod|stage"')
    made = rules(load(file))
    for name in ("lora-recording.yml", "lora-alerts.yml"):
        place = tmp_path / name
        place.write_text(made[name])
        content, said = promtool("check", "rules", place)
        assert content, said
        grouped = "".join(f"{label}, " for label in labels)
        if "recording" in name:
            assert f"max by ({grouped}model, replica_id, slot_kind) (lora_max{{env=~" in made[name]
        else:
            assert 'up{env=~"prod|stage",job="lora"}' in made[name]


def test_matchers_in_the_queries_of_texts(tmp_path: Path) -> None:
    inputs = load(changed(tmp_path, matchers='env="50%`"', aggregation_labels=[]))
    (exhausted, *_) = alerts(inputs)["lora-slots"]
    series = r'lora_model_would_preempt_replicas{env="50%%\x60",model=%q}'
    query = f"max by (victim) (last_over_time({series}[2m])) > 0"
    assert f"with printf `{query}` $labels.model | query" in exhausted.room


def test_the_same_numbers_everywhere(tmp_path: Path) -> None:
    document = yaml.safe_load(INPUTS.read_text())
    common = document["common"]
    common["dip"]["value"] = "7m"
    text = rules(load(changed(tmp_path, common=common)))["lora-alerts.yml"]
    assert 'max_over_time(model:lora_free:sum{slot_kind="exclusive"}[7m]) == 0' in text
    assert "[2m]" not in text


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"aggregation_labels": ["clu-ster"]},
            "inputs.yml: aggregation_labels.0: wanted the name of a label, found 'clu-ster'",
        ),
        (
            {"aggregation_labels": ["model"]},
            "inputs.yml: aggregation_labels.0: wanted a label that Prometheus adds, not one of "
            "the exporter's own, found 'model'",
        ),
        (
            {"matchers": '{env="x"}'},
            'inputs.yml: matchers: wanted matchers such as env="prod", region=~"eu-.*", without '
            "braces, found '{env=\"x\"}'",
        ),
        (
            {"runbook_url": "runbooks/"},
            "inputs.yml: runbook_url: wanted an http or https address without a slash at its end, "
            "found 'runbooks/'",
        ),
        ({"exporter_job": None}, "inputs.yml: exporter_job: Field required"),
        ({"labels": []}, "inputs.yml: labels: Extra inputs are not permitted"),
    ],
)
def test_bad_inputs_are_told(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        load(changed(tmp_path, **keys))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("common", "dip"),
            {"value": "1m30s", "reason": "long enough to be one"},
            "inputs.yml: common.dip.value: wanted a duration such as 30s, 10m, 1h or 1w, "
            "found '1m30s'",
        ),
        (
            ("common", "scrape_interval"),
            {"value": "2m", "reason": "long enough to be one"},
            "inputs.yml: common: scrape_interval: wanted at most 75s, as rates are over 5m",
        ),
        (
            ("common", "dip"),
            {"value": "30s", "reason": "long enough to be one"},
            "inputs.yml: common: dip: wanted at least twice the scrape_interval",
        ),
        (
            ("alerts", "LoraSlotsExhausted"),
            {"severity": "page", "for": {"value": "1m", "reason": "long enough to be one"}},
            "inputs.yml: alerts.LoraSlotsExhausted.severity: Input should be 'critical', "
            "'warning' or 'info', found 'page'",
        ),
        (
            ("alerts", "LoraSlotsExhausted"),
            {"severity": "info", "for": {"value": "1m"}},
            "inputs.yml: alerts.LoraSlotsExhausted.for.reason: Field required",
        ),
        (("alerts", "LoraTypo"), {}, "inputs.yml: alerts.LoraTypo: no such alert"),
    ],
)
def test_bad_numbers_are_told(
    tmp_path: Path, place: tuple[str, str], value: dict[str, Any], message: str
) -> None:
    document = yaml.safe_load(INPUTS.read_text())
    section, key = place
    with pytest.raises(InputError) as error:
        alerts(load(changed(tmp_path, **{section: document[section] | {key: value}})))
    assert str(error.value) == message


def test_an_alert_without_numbers_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = yaml.safe_load(INPUTS.read_text())["alerts"]
    del numbers["LoraGhosts"]
    assert main(["--check", "--inputs", str(changed(tmp_path, alerts=numbers))]) == 2
    assert capsys.readouterr().err == (
        "inputs.yml: alerts.LoraGhosts: wanted the numbers of this alert\n"
    )


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yml: cannot be read: No such file"):
        load(tmp_path / "none.yml")
    broken = tmp_path / "broken.yml"
    broken.write_text("a: [")
    with pytest.raises(InputError, match=r"broken\.yml: wanted YAML: "):
        load(broken)
    broken.write_text("[]")
    with pytest.raises(InputError, match=r"broken\.yml: wanted a mapping of keys"):
        load(broken)

"""Rules to YAML: plain rule files, a PrometheusRule object, and the table of the README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from alerts.generator.inputs import Inputs
from alerts.generator.rules import Alert, Recording

RECORDING_GROUP = "lora-recording"
_HEADER = (
    "# Generated from alerts/inputs.yml by `python -m alerts.generator`; edit that and run it.\n"
)


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as they stand."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(document: Any) -> str:
    """YAML with the note on where it comes from."""
    return _HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000)


def recording_group(rules: Iterable[Recording]) -> dict[str, Any]:
    """One group, as its rules depend on each other and must be of one moment."""
    return {
        "name": RECORDING_GROUP,
        "rules": [{"record": rule.name, "expr": rule.expr()} for rule in rules],
    }


def alert_group(name: str, alerts: Iterable[Alert], inputs: Inputs) -> dict[str, Any]:
    """The alerts of one topic."""
    return {"name": name, "rules": [alert_rule(alert, inputs) for alert in alerts]}


def alert_rule(alert: Alert, inputs: Inputs) -> dict[str, Any]:
    """One alert as Prometheus reads it."""
    return {
        "alert": alert.name,
        "expr": alert.expr(),
        "for": alert.for_,
        "keep_firing_for": alert.keep_firing_for,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description + alert.room,
            "runbook_url": f"{inputs.runbook_url}/{alert.name}.md",
            "dashboard_url": f"{inputs.dashboard_url}{alert.dashboard}",
        },
    }


def prometheus_rule(groups: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The same for the Prometheus operator, which takes templates as they are."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "lora-capacity",
            "labels": {"app.kubernetes.io/name": "lora-capacity-exporter"},
        },
        "spec": {"groups": list(groups)},
    }


def table(groups: Mapping[str, Iterable[Alert]]) -> str:
    """The alerts for people: name, severity, for, what it says."""
    lines = ["| Alert | Severity | For | What it says |", "| --- | --- | --- | --- |"]
    lines += [
        f"| [{alert.name}](runbooks/{alert.name}.md) | {alert.severity} | {alert.for_} "
        f"| {alert.summary} |"
        for alerts in groups.values()
        for alert in alerts
    ]
    return "\n".join(lines)

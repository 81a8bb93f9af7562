"""Runs promtool on the shipped rules, or on changed ones."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from alerts.generator import product, render
from alerts.generator.inputs import Inputs, load
from alerts.generator.recordings import recordings
from alerts.generator.rules import Alert, Recording

HOME = product.HOME
_RECORDED = re.compile(r"\b[a-z]+:\w+:\w+\b")
TESTS = sorted((HOME / "tests").glob("*.yml"))


@cache
def inputs() -> Inputs:
    """The shipped inputs."""
    return load(product.INPUTS)


@cache
def alerts() -> dict[str, Alert]:
    """The shipped alerts by name."""
    return {alert.name: alert for group in product.alerts(inputs()).values() for alert in group}


@cache
def groups() -> dict[str, str]:
    """Each alert's group."""
    return {a.name: group for group, built in product.alerts(inputs()).items() for a in built}


@cache
def recorded() -> tuple[Recording, ...]:
    """The shipped recording rules."""
    return recordings(inputs())


def promtool(*arguments: str | Path) -> tuple[bool, str]:
    """Whether promtool was content, and what it said."""
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode == 0, done.stdout + done.stderr


def needed_by(expression: str, rules: tuple[Recording, ...]) -> tuple[Recording, ...]:
    """The recording rules that an expression is made of: the others cost time only."""
    kept: list[Recording] = []
    names = set(_RECORDED.findall(expression))
    for rule in reversed(rules):
        if rule.name in names:
            names.update(_RECORDED.findall(rule.expr()))
            kept.append(rule)
    return tuple(reversed(kept))


def write(
    folder: Path, test: Path, recording: tuple[Recording, ...], alert: Alert | None = None
) -> Path:
    """A test file and rules beside it as in the repository; the test's new place."""
    (folder / "rules").mkdir(parents=True)
    (folder / "tests").mkdir()
    if alert is not None:
        recording = needed_by(alert.expr(), recording)
    documents: dict[str, Any] = {"lora-recording.yml": [render.recording_group(recording)]}
    documents["lora-alerts.yml"] = (
        [] if alert is None else [render.alert_group(groups()[alert.name], [alert], inputs())]
    )
    for name, content in documents.items():
        (folder / "rules" / name).write_text(yaml.safe_dump({"groups": content}))
    place = folder / "tests" / test.name
    place.write_text(test.read_text())
    return place

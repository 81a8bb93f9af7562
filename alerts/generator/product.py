"""Every file that is made from the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from alerts.generator import render
from alerts.generator.alerts import GROUPS
from alerts.generator.inputs import InputError, Inputs, load
from alerts.generator.recordings import recordings
from alerts.generator.rules import Alert

HOME = Path(__file__).parents[1]
INPUTS = HOME / "inputs.yml"
_BEGIN, _END = "<!-- alerts -->\n", "<!-- end of alerts -->\n"


def alerts(inputs: Inputs) -> Mapping[str, tuple[Alert, ...]]:
    """All alerts, by group."""
    inputs.only(frozenset(one.name for group in GROUPS.values() for one in group))
    return {name: tuple(one.build(inputs) for one in group) for name, group in GROUPS.items()}


def files(inputs: Inputs, readme: str) -> dict[str, str]:
    """Path below `alerts/`, and content. `readme`: the README as it is."""
    built = alerts(inputs)
    recording = render.recording_group(recordings(inputs))
    groups = [render.alert_group(name, group, inputs) for name, group in built.items()]
    return {
        "rules/lora-recording.yml": render.to_yaml({"groups": [recording]}),
        "rules/lora-alerts.yml": render.to_yaml({"groups": groups}),
        "rules/prometheusrule.yaml": render.to_yaml(render.prometheus_rule([recording, *groups])),
        "README.md": _with_table(readme, render.table(built)),
    }


def _with_table(readme: str, table: str) -> str:
    before, begin, rest = readme.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise InputError(f"README.md: wanted the lines {_BEGIN.strip()} and {_END.strip()}")
    return f"{before}{_BEGIN}\n{table}\n\n{_END}{after}"


def made(path: Path = INPUTS) -> dict[Path, str]:
    """The same from a file of inputs, with whole paths."""
    readme = (HOME / "README.md").read_text()
    return {HOME / name: text for name, text in files(load(path), readme).items()}

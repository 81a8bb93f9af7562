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


def rules(inputs: Inputs) -> dict[str, str]:
    """Rule files by name, and their content."""
    built = alerts(inputs)
    recording = render.recording_group(recordings(inputs))
    groups = [render.alert_group(name, group, inputs) for name, group in built.items()]
    return {
        "lora-recording.yml": render.to_yaml({"groups": [recording]}),
        "lora-alerts.yml": render.to_yaml({"groups": groups}),
        "prometheusrule.yaml": render.to_yaml(render.prometheus_rule([recording, *groups])),
    }


def _with_table(readme: str, table: str) -> str:
    before, begin, rest = readme.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise InputError(f"README.md: wanted the lines {_BEGIN.strip()} and {_END.strip()}")
    return f"{before}{_BEGIN}\n{table}\n\n{_END}{after}"


def made(path: Path, output: Path | None) -> dict[Path, str]:
    """Whole paths, and content, from a file of inputs. Without `output`: what is committed."""
    inputs = load(path)
    folder = HOME / "rules" if output is None else output
    wanted = {folder / name: text for name, text in rules(inputs).items()}
    if output is None:
        readme = HOME / "README.md"
        wanted[readme] = _with_table(readme.read_text(), render.table(alerts(inputs)))
    return wanted

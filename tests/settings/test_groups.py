"""What a group of targets says, and how it comes to each target."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.discovery.targets import make_target
from exporter.fleet import CustomMap, SlotKind, Target
from exporter.loading import load

GROUP = """
targets:
  - name: serving
    engine: sglang
    static: ["http://h:1/", "http://h:2"]
    path_prefix: /replica
    metrics_path: /v1/metrics
    slots: {max: 4, base_uses_slot: true}
    model_relabel: {"(.*)-instruct": "$1", "m": "n"}
    headers:
      X-Scope-OrgID: {value: search}
      X-Api-Key: {value_file: key}
  - name: mine
    engine: custom
    static: ["http://h:3"]
    custom:
      path: /metrics
      format: prometheus
      slot_kind: exclusive
      used: 'slots{state="used"}'
      max: slots_max
      active: at_work
      adapter_label: adapter
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text("k")
    path = tmp_path / "lora.yml"
    path.write_text(GROUP)
    return path


def targets(file: Path) -> list[Target]:
    return [make_target(group, url) for group in load(file).targets for url in group.static]


def test_each_target_has_what_its_group_says(file: Path) -> None:
    first, second, mapped = targets(file)
    assert first == Target(
        "http://h:1",
        "serving",
        "sglang",
        max=4,
        base_uses_slot=True,
        prefix="/replica",
        metrics_path="/v1/metrics",
        model_relabel=(("(.*)-instruct", "$1"), ("m", "n")),
    )
    assert (second.url, second.base) == ("http://h:2", "http://h:2/replica")
    assert second.metrics_url() == "http://h:2/replica/v1/metrics"
    assert mapped.custom == CustomMap(
        "/metrics",
        "prometheus",
        SlotKind.EXCLUSIVE,
        (("max", "slots_max"), ("used", 'slots{state="used"}'), ("active", "at_work")),
        "adapter",
    )


def test_a_headers_file_starts_at_the_folder_of_the_settings(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    headers = load(file).targets[0].headers
    assert headers["X-Api-Key"].value_file == file.parent / "key"
    assert headers["X-Scope-OrgID"].value == "search"


def test_a_replica_is_named_by_its_address_without_the_prefix(file: Path) -> None:
    first = targets(file)[0]
    assert first.url == "http://h:1"
    assert first.metrics_url("/other").startswith("http://h:1/replica/v1/")

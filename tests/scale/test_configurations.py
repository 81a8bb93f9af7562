"""The shipped configurations: Prometheus takes them, and they keep what the rules need."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import promql_parser
import pytest
import yaml

from exporter.catalogue.own import EXPORTER_FAMILIES
from exporter.naming import is_loopback
from exporter.settings import TargetGroup
from tests.alerts.promql import kind, nodes
from tests.alerts.rules_files import promtool
from tests.support.prometheus import DEPLOY, ROOT, shipped

NAMES = sorted(path.name for path in DEPLOY.glob("*.yml"))
SHARDS = [name for name in NAMES if "shard" in name]
DOCUMENT = (ROOT / "docs" / "scale-out.md").read_text()


def needed() -> set[str]:
    """Scraped series that the shipped rules ask for."""
    names = set()
    for file in (ROOT / "alerts" / "rules").glob("*.yml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                for node in nodes(promql_parser.parse(rule["expr"])):
                    if kind(node) == "VectorSelector" and ":" not in node.name:
                        names.add(node.name)
    return names


def kept(relabelling: list[dict[str, Any]]) -> re.Pattern[str]:
    """What the only rule of a relabelling keeps."""
    (rule,) = relabelling
    assert (rule["source_labels"], rule["action"]) == (["__name__"], "keep")
    return re.compile(rule["regex"])


@pytest.mark.parametrize("name", NAMES)
def test_prometheus_accepts(name: str, tmp_path: Path) -> None:
    config = yaml.safe_load((DEPLOY / name).read_text())
    for job in config.get("scrape_configs", ()):
        # Debian's Prometheus is built without Kubernetes.
        assert job.pop("kubernetes_sd_configs", [{"role": "pod"}]) == [{"role": "pod"}]
    config["rule_files"] = [str(DEPLOY / file) for file in config.get("rule_files", ())]
    file = tmp_path / name
    agent = ["--agent"] if "remote_write" in config else []
    if agent:
        del config["rule_files"]
    # JSON is YAML.
    file.write_text(json.dumps(config))
    content, said = promtool("check", "config", *agent, file)
    assert content, said
    config["scrape_configs"] = [{"job_name": "a", "relabel_configs": [{"action": "nonsense"}]}]
    file.write_text(json.dumps(config))
    assert not promtool("check", "config", *agent, file)[0]


@pytest.mark.parametrize("name", SHARDS)
def test_another_shard_is_the_file_with_another_number(name: str) -> None:
    assert (DEPLOY / name).read_text().replace('"1" in place of "0"', "").count('"0"') == 2
    config = shipped(name, {'"0"': '"1"'}, {"lora-probe": []})
    assert config["global"]["external_labels"] == {"cluster": "eu", "shard": "1"}


def test_shards_scrape_alike_whether_or_not_they_send() -> None:
    alone, sends = shipped("probe-shard.yml"), shipped("remote-write-shard.yml")
    for config in (alone, sends):
        del config["scrape_configs"][-1]["metric_relabel_configs"]
    assert alone["scrape_configs"] == sends["scrape_configs"]


@pytest.mark.parametrize("name", SHARDS)
def test_probes_have_a_series_of_up_each(name: str) -> None:
    """And what shards share is the target, before its place is taken by the exporter."""
    job = shipped(name, pods={"lora-probe": []})["scrape_configs"][0]
    steps = job["relabel_configs"]
    targets = [step.get("target_label") for step in steps]
    assert steps[targets.index("instance")]["source_labels"] == ["__param_target"]
    assert steps[targets.index("__tmp_shard")]["source_labels"] == ["__param_target"]
    assert targets.index("__param_target") < targets.index("__tmp_shard")


def test_what_is_sent_is_what_rules_are_made_of_and_nothing_recorded() -> None:
    (writes,) = shipped("remote-write-shard.yml")["remote_write"]
    sent = kept(writes["write_relabel_configs"])
    assert {name for name in needed() if not sent.fullmatch(name)} == set()
    recorded = yaml.safe_load((ROOT / "alerts" / "rules" / "lora-recording.yml").read_text())
    names = {rule["record"] for rule in recorded["groups"][0]["rules"]}
    assert {name for name in names if sent.fullmatch(name)} == set()


@pytest.mark.parametrize(
    ("name", "target_up"),
    [("probe-shard.yml", False), ("remote-write-shard.yml", True), ("sidecars.yml", False)],
)
def test_what_is_kept_of_a_planner_is_all_but_slots_and_targets(name: str, target_up: bool) -> None:
    job = shipped(name, pods={"lora": []})["scrape_configs"][-1]
    keeps = kept(job["metric_relabel_configs"])
    left_out = {name for name in needed() - {"up"} if not keeps.fullmatch(name)}
    slots = r"lora_(max|used|free|resident|waiting|registered|(adapter|replica|target)_\w+)"
    assert {name for name in left_out if not re.fullmatch(slots, name)} == set()
    assert left_out >= {"lora_max", "lora_used", "lora_replica_info"}
    assert ("lora_target_up" in left_out) is not target_up


def test_what_is_dropped_of_sidecars_is_of_no_use_to_rules() -> None:
    job = shipped("sidecars.yml", pods={"lora": []})["scrape_configs"][0]
    (rule,) = job["metric_relabel_configs"]
    assert rule["action"] == "drop"
    assert rule["regex"] in {family.name for family in EXPORTER_FAMILIES}
    assert rule["regex"] not in needed()


def _written() -> list[str]:
    """Scrape configurations that stand in documents."""
    texts = [(ROOT / name).read_text() for name in ("README.md", "docs/discovery.md")]
    blocks = [
        block for text in texts for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    ]
    return [block for block in blocks if block.startswith("scrape_configs:")]


@pytest.mark.parametrize("block", _written())
def test_prometheus_accepts_what_documents_tell_to_write(block: str, tmp_path: Path) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text(block)
    content, said = promtool("check", "config", file)
    assert content, said
    for job in yaml.safe_load(block)["scrape_configs"]:
        labels = [step["target_label"] for step in job.get("relabel_configs", ())]
        assert ("__param_target" in labels) is ("instance" in labels)


def test_documents_tell_of_probes() -> None:
    assert sum("/probe" in block for block in _written()) == 2


def test_the_settings_of_the_documented_sidecar_are_good() -> None:
    (block,) = re.findall(r"```yaml\n(- name: lora-exporter\n.*?)```", DOCUMENT, re.DOTALL)
    (container,) = yaml.safe_load(block)
    values = {one["name"]: one.get("value", "") for one in container["env"]}
    (group,) = json.loads(values["LORA_EXPORTER_TARGETS"])
    read = TargetGroup(**group)
    assert all(is_loopback(urlsplit(url).hostname or "") for url in read.static)
    # Kubernetes expands variables that stand before.
    used = re.findall(r"\$\((\w+)\)", read.replica_name or "")
    assert used == ["POD_NAMESPACE", "POD_NAME"]
    assert set(used) <= set(list(values)[: list(values).index("LORA_EXPORTER_TARGETS")])
    (port,) = container["ports"]
    assert port["name"] in (DEPLOY / "sidecars.yml").read_text()


def test_the_document_tells_of_each_file() -> None:
    told = set(re.findall(r"deploy/prometheus/([\w-]+\.yml)", DOCUMENT))
    assert told == set(NAMES)

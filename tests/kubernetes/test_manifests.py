"""The manifests in `deploy/kubernetes`: they parse, agree with each other, and with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporter import __version__
from exporter.discovery.kubernetes import KubernetesTargets
from exporter.inventory.kubernetes import KubernetesSource
from exporter.loading import load, warnings
from exporter.settings import Settings
from exporter.settings.cluster import KubernetesInventory
from exporter.settings.discovery import KubernetesDiscovery
from tests.kubernetes.fake import FakeApi, kubeconfig, kubernetes
from tests.support.programs import until

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
FILES = {
    "rbac.yaml": ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"],
    "rbac-namespaced.yaml": ["ServiceAccount", "Role", "RoleBinding"],
    "rbac-endpoints.yaml": ["ServiceAccount", "Role", "RoleBinding"],
    "exporter.yaml": ["ConfigMap", "Deployment", "Service"],
    "sidecar.yaml": ["Deployment"],
}
IMAGE = f"lora-capacity-exporter:{__version__}"
Rights = set[tuple[str, str, str]]
"""Group of the API, resource, verb."""


def objects(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def one(file: str, kind: str) -> dict[str, Any]:
    (found,) = (each for each in objects(file) if each["kind"] == kind)
    return found


def rights(role: dict[str, Any]) -> Rights:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(api: FakeApi) -> Rights:
    found: Rights = set()
    for verb, path, _ in api.requests:
        group = path.split("/")[2] if path.startswith("/apis/") else ""
        found.add((group, path.rpartition("/")[2], verb))
    return found


def ours() -> Iterator[dict[str, Any]]:
    """The exporter's container in each of the manifests."""
    for file in ("exporter.yaml", "sidecar.yaml"):
        spec = one(file, "Deployment")["spec"]["template"]["spec"]
        yield from (each for each in spec["containers"] if each["image"] == IMAGE)


def test_each_file_has_what_it_should() -> None:
    assert {path.name for path in FOLDER.iterdir()} == FILES.keys()
    for file, kinds in FILES.items():
        found = objects(file)
        assert [each["kind"] for each in found] == kinds
        for each in found:
            assert each["apiVersion"]
            assert re.fullmatch(r"[a-z0-9-]+", each["metadata"]["name"])
            assert ("namespace" in each["metadata"]) == (not each["kind"].startswith("Cluster"))


@pytest.mark.parametrize("file", ["rbac.yaml", "rbac-namespaced.yaml", "rbac-endpoints.yaml"])
def test_bindings_bind_what_is_there(file: str) -> None:
    account, role, binding = objects(file)
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": role["kind"],
        "name": role["metadata"]["name"],
    }
    (subject,) = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", **account["metadata"]}
    assert binding["metadata"].get("namespace") == role["metadata"].get("namespace")


async def test_the_rights_are_those_that_the_code_uses(tmp_path: Path) -> None:
    settings = load_config(tmp_path)
    async with kubernetes() as api:
        access = {"kubeconfig_file": kubeconfig(tmp_path, api)}
        source = KubernetesSource(KubernetesInventory(**access))
        await source.read(settings)

        async def watched() -> bool:
            return api.watching == 3

        await until(watched)
        await source.close()
        assert used(api) == rights(one("rbac.yaml", "ClusterRole"))


@pytest.mark.parametrize(
    ("role", "resource", "file"),
    [
        ("pod", "/api/v1/namespaces/prod/pods", "rbac-namespaced.yaml"),
        (
            "endpointslice",
            "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices",
            "rbac-endpoints.yaml",
        ),
    ],
)
async def test_the_rights_of_discovery_are_those_that_it_uses(
    tmp_path: Path, role: str, resource: str, file: str
) -> None:
    async with kubernetes() as api:
        access = {"kubeconfig_file": kubeconfig(tmp_path, api)}
        keys = {"role": role, "selector": "app=vllm", "port": "http"}
        targets = KubernetesTargets(KubernetesDiscovery(**access, **keys), "prod")
        await targets.find()

        async def watched() -> bool:
            return api.watching == 1

        await until(watched)
        await targets.close()
        assert used(api) == rights(one(file, "Role"))
        assert {path for _, path, _ in api.requests} == {resource}


def load_config(folder: Path) -> Settings:
    file = folder / "lora.yml"
    file.write_text(one("exporter.yaml", "ConfigMap")["data"]["lora.yml"])
    return load(file)


def test_the_configuration_is_good(tmp_path: Path) -> None:
    settings = load_config(tmp_path)
    assert list(warnings(settings)) == []
    assert settings.inventory.kubernetes is not None
    (group,) = settings.targets
    assert group.kubernetes is not None
    engine = one("sidecar.yaml", "Deployment")["spec"]["template"]
    key, _, value = group.kubernetes.selector.partition("=")
    assert engine["metadata"]["labels"][key] == value
    assert engine["metadata"]["labels"][settings.inventory.kubernetes.model_label] == "chat"
    ports = engine["spec"]["containers"][0]["ports"]
    assert group.kubernetes.port in [port["name"] for port in ports]


def test_parts_of_the_deployment_fit_together() -> None:
    config, deployment, service = objects("exporter.yaml")
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    account = one("rbac.yaml", "ServiceAccount")["metadata"]
    assert template["spec"]["serviceAccountName"] == account["name"]
    assert {each["metadata"]["namespace"] for each in objects("exporter.yaml")} == {
        account["namespace"]
    }
    assert deployment["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    assert service["spec"]["selector"] == template["metadata"]["labels"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert template["spec"]["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]
    (mount,) = container["volumeMounts"]
    file = container["args"][container["args"].index("--config.file") + 1]
    assert file.removeprefix(f"{mount['mountPath']}/") in config["data"]


def test_the_container_is_locked_down_and_probed() -> None:
    containers = list(ours())
    assert len(containers) == 2
    for container in containers:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["livenessProbe"]["httpGet"]["path"] == "/-/healthy"
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert container["ports"][0]["containerPort"] == 10107
    pod = one("exporter.yaml", "Deployment")["spec"]["template"]["spec"]["securityContext"]
    for context in (pod, containers[1]["securityContext"]):
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, 65532)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "readinessProbe" in containers[0]
    assert "readinessProbe" not in containers[1]


def test_the_sidecar_knows_its_pod() -> None:
    sidecar = list(ours())[1]
    (variable,) = sidecar["env"]
    assert variable["name"] == "POD_NAME"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    target = sidecar["args"][sidecar["args"].index("--target") + 1]
    engine = one("sidecar.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert target == f"http://127.0.0.1:{engine['ports'][0]['containerPort']}"

"""Targets that are pods."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from exporter.discovery.base import DiscoveryError, Found
from exporter.discovery.kubernetes import KubernetesTargets
from exporter.kubernetes.mirror import Pace
from exporter.settings.discovery import KubernetesDiscovery
from tests.kubernetes.fake import FakeApi, failure, kubeconfig
from tests.kubernetes.objects import container, pod

QUICK = Pace(answer=2.0, first_delay=0.01, longest_delay=0.05, steady=0.2)
VLLM = {"app": "vllm"}


Make = Callable[..., KubernetesTargets]


@pytest.fixture
async def make(api: FakeApi, tmp_path: Path) -> AsyncIterator[Make]:
    made: list[KubernetesTargets] = []

    def one(namespace: str | None = None, **keys: Any) -> KubernetesTargets:
        keys = {"selector": "app=vllm", "port": "http", **keys}
        settings = KubernetesDiscovery(kubeconfig_file=kubeconfig(tmp_path, api), **keys)
        made.append(KubernetesTargets(settings, namespace, QUICK))
        return made[-1]

    yield one
    for pods in made:
        await pods.close()


def urls(found: tuple[Found, ...]) -> set[str]:
    return {one.url for one in found}


def vllm(name: str, port: int = 8000, **keys: Any) -> dict[str, Any]:
    return pod(name, container("proxy"), container("vllm", port, gpu="1"), labels=VLLM, **keys)


async def test_a_pod_is_a_target_with_its_names(api: FakeApi, make: Make) -> None:
    api.put("pods", vllm("chat-0", ip="10.1.0.7", node="gpu-3"))
    (found,) = await make().find()
    assert found == Found(
        "http://10.1.0.7:8000",
        replica="prod/chat-0",
        model=None,
        node="gpu-3",
        namespace="prod",
        pod="chat-0",
    )


async def test_ports_by_number_and_name_and_addresses_of_version_6(
    api: FakeApi, make: Make
) -> None:
    api.put("pods", vllm("a", ip="2001:db8:0::5"))
    api.put("pods", pod("no-such-port", container(), labels=VLLM, ip="10.1.0.9"))
    sidecar = {**container("sidecar", 9000), "restartPolicy": "Always"}
    api.put("pods", pod("b", container(), labels=VLLM, ip="10.1.0.8", init=(sidecar,)))
    assert urls(await make().find()) == {"http://[2001:db8::5]:8000", "http://10.1.0.8:9000"}
    found = await make(port=8443, scheme="https").find()
    assert urls(found) == {
        "https://[2001:db8::5]:8443",
        "https://10.1.0.8:8443",
        "https://10.1.0.9:8443",
    }


async def test_only_ready_pods_or_all_that_run(api: FakeApi, make: Make) -> None:
    api.put("pods", vllm("ready", ip="10.1.0.1"))
    api.put("pods", vllm("starts", ip="10.1.0.2", ready=False))
    api.put("pods", vllm("pending", ip=None, phase="Pending", ready=False))
    api.put("pods", vllm("unbound", ip=None, phase="Pending", ready=False, node=None))
    api.put("pods", vllm("ends", ip="10.1.0.3", terminating=True))
    api.put("pods", vllm("done", ip="10.1.0.4", phase="Succeeded", ready=False))
    api.put("pods", vllm("failed", ip="10.1.0.5", phase="Failed", ready=False))
    assert urls(await make().find()) == {"http://10.1.0.1:8000"}
    assert urls(await make(ready_only=False).find()) == {
        "http://10.1.0.1:8000",
        "http://10.1.0.2:8000",
    }


async def test_the_model_comes_from_a_label_or_an_annotation(api: FakeApi, make: Make) -> None:
    label = "example.com/model"
    api.put("pods", pod("a", container(port=1), labels={**VLLM, label: "qwen3-8b"}))
    api.put("pods", pod("b", container(port=2), labels=VLLM, annotations={label: "Qwen/Qwen3-8B"}))
    api.put("pods", pod("c", container(port=3), labels=VLLM))
    found = await make(model_label=label).find()
    assert {one.pod: one.model for one in found} == {
        "a": "qwen3-8b",
        "b": "Qwen/Qwen3-8B",
        "c": None,
    }


async def test_changes_are_seen_at_once(api: FakeApi, make: Make) -> None:
    pods = make()
    assert await pods.find() == ()
    api.put("pods", vllm("a", ip="10.1.0.1", ready=False))
    api.put("pods", vllm("a", ip="10.1.0.1"))
    await pods.wait()
    assert urls(await pods.find()) == {"http://10.1.0.1:8000"}
    api.put("pods", vllm("a", ip="10.1.0.1", terminating=True))
    await pods.wait()
    assert await pods.find() == ()


async def test_one_namespace_or_all(api: FakeApi, make: Make) -> None:
    api.put("pods", vllm("a", ip="10.1.0.1"))
    api.put("pods", vllm("a", ip="10.1.0.2", namespace="dev"))
    assert {one.replica for one in await make().find()} == {"prod/a", "dev/a"}
    assert {one.replica for one in await make("dev").find()} == {"dev/a"}
    assert api.requests[-1][1] == "/api/v1/namespaces/dev/pods"


async def test_a_failure_is_told_once_for_each_attempt(api: FakeApi, make: Make) -> None:
    async def refused(request: object) -> Any:
        del request
        return failure(403, "Forbidden")

    pods = make("dev")
    api.always["list"] = refused
    for _ in range(3):
        with pytest.raises(DiscoveryError, match="403; wanted the right to list and watch pods"):
            await pods.find()
        await pods.wait()
    api.always.clear()
    await pods.wait()
    assert await pods.find() == ()


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DiscoveryError) as caught:
        KubernetesTargets(KubernetesDiscovery(selector="app=vllm", port=8000), None)
    assert str(caught.value) == (
        "Kubernetes needs the extra kubernetes: pip install 'lora-capacity-exporter[kubernetes]'"
    )

"""Targets that are endpoints of Services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from exporter.discovery.base import DiscoveryError, Found
from exporter.discovery.kubernetes import KubernetesTargets
from exporter.kubernetes.mirror import Pace
from exporter.settings.discovery import KubernetesDiscovery
from tests.kubernetes.fake import FakeApi, failure, kubeconfig
from tests.kubernetes.objects import endpoint, endpoint_slice

QUICK = Pace(answer=2.0, first_delay=0.01, longest_delay=0.05, steady=0.2)
SLICES = "endpointslices"
VLLM = {"app": "vllm"}
Make = Callable[..., KubernetesTargets]


@pytest.fixture
async def make(api: FakeApi, tmp_path: Path) -> AsyncIterator[Make]:
    made: list[KubernetesTargets] = []

    def one(namespace: str | None = None, **keys: Any) -> KubernetesTargets:
        keys = {"role": "endpointslice", "selector": "app=vllm", "port": "http", **keys}
        settings = KubernetesDiscovery(kubeconfig_file=kubeconfig(tmp_path, api), **keys)
        made.append(KubernetesTargets(settings, namespace, QUICK))
        return made[-1]

    yield one
    for targets in made:
        await targets.close()


def urls(found: tuple[Found, ...]) -> set[str]:
    return {one.url for one in found}


async def test_an_endpoint_is_a_target_with_the_names_of_its_pod(api: FakeApi, make: Make) -> None:
    labels = {**VLLM, "example.com/model": "qwen3-8b"}
    ready = endpoint("chat-0", "10.1.0.7", "gpu-3", ready=True, serving=True, terminating=False)
    api.put(SLICES, endpoint_slice("chat", ready, labels=labels))
    (found,) = await make(model_label="example.com/model").find()
    assert found == Found(
        "http://10.1.0.7:8000",
        replica="prod/chat-0",
        model="qwen3-8b",
        node="gpu-3",
        namespace="prod",
        pod="chat-0",
    )


async def test_an_endpoint_outside_the_cluster_has_no_pod(api: FakeApi, make: Make) -> None:
    api.put(SLICES, endpoint_slice("chat", endpoint(None, "192.0.2.7", None), labels=VLLM))
    (found,) = await make().find()
    assert found == Found("http://192.0.2.7:8000", namespace="prod")


async def test_only_ready_endpoints_or_all_that_run(api: FakeApi, make: Make) -> None:
    slices = endpoint_slice(
        "chat",
        endpoint("ready", "10.1.0.1", ready=True),
        # what is not told counts as ready
        endpoint("untold", "10.1.0.2"),
        endpoint("starts", "10.1.0.3", ready=False, serving=False, terminating=False),
        endpoint("ends", "10.1.0.4", ready=False, serving=True, terminating=True),
        labels=VLLM,
    )
    api.put(SLICES, slices)
    ready = {"http://10.1.0.1:8000", "http://10.1.0.2:8000"}
    assert urls(await make().find()) == ready
    assert urls(await make(ready_only=False).find()) == {*ready, "http://10.1.0.3:8000"}


async def test_a_pod_of_several_slices_is_one_target(api: FakeApi, make: Make) -> None:
    six = endpoint("a", "2001:db8:0::5", ready=True)
    api.put(SLICES, endpoint_slice("a-v6", six, family="IPv6", labels=VLLM))
    four = endpoint("a", "10.1.0.1", ready=True)
    api.put(SLICES, endpoint_slice("chat", four, labels=VLLM))
    api.put(SLICES, endpoint_slice("chat-headless", four, labels=VLLM))
    alone = endpoint("b", "2001:db8::6", ready=True)
    api.put(SLICES, endpoint_slice("z-v6", alone, family="IPv6", labels=VLLM))
    found = await make().find()
    assert len(found) == 2
    assert urls(found) == {"http://10.1.0.1:8000", "http://[2001:db8::6]:8000"}


async def test_slices_without_the_port_or_without_addresses_have_no_targets(
    api: FakeApi, make: Make
) -> None:
    ready = endpoint("a", "10.1.0.1", ready=True)
    other = (("metrics", 9000), ("any", None))
    api.put(SLICES, endpoint_slice("other", ready, ports=other, labels=VLLM))
    api.put(SLICES, endpoint_slice("empty", ports=(), labels=VLLM))
    name = endpoint(None, "vllm.example.com", ready=True)
    api.put(SLICES, endpoint_slice("named", name, family="FQDN", labels=VLLM))
    assert await make().find() == ()
    assert urls(await make(port="metrics").find()) == {"http://10.1.0.1:9000"}
    assert urls(await make(port=8443, scheme="https").find()) == {"https://10.1.0.1:8443"}


async def test_changes_are_seen_at_once(api: FakeApi, make: Make) -> None:
    targets = make("prod")
    assert await targets.find() == ()
    one, two = endpoint("a", "10.1.0.1", ready=True), endpoint("b", "10.1.0.2", ready=True)
    api.put(SLICES, endpoint_slice("chat", one, labels=VLLM))
    await targets.wait()
    assert urls(await targets.find()) == {"http://10.1.0.1:8000"}
    api.put(SLICES, endpoint_slice("chat", one, two, labels=VLLM))
    await targets.wait()
    assert urls(await targets.find()) == {"http://10.1.0.1:8000", "http://10.1.0.2:8000"}
    api.delete(SLICES, "chat-x7k2p", "prod")
    await targets.wait()
    assert await targets.find() == ()
    paths = {path for _, path, _ in api.requests}
    assert paths == {"/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices"}


async def test_a_refusal_names_the_right_that_is_wanted(api: FakeApi, make: Make) -> None:
    async def refused(request: object) -> Any:
        del request
        return failure(403, "Forbidden")

    api.always["list"] = refused
    wanted = "403; wanted the right to list and watch endpointslices in prod"
    with pytest.raises(DiscoveryError, match=wanted):
        await make("prod").find()

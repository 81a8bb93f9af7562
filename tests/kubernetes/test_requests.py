"""What a pod holds on its node, as the scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.cluster import Resources
from exporter.kubernetes.requests import held, quantity
from tests.kubernetes.objects import container, pod

GPU = "nvidia.com/gpu"
Mi = 2**20


def c(cpu: str = "", memory: str = "", gpu: str = "", name: str = "main") -> dict[str, Any]:
    asked = {"cpu": cpu, "memory": memory, "gpu": gpu}
    return container(name, None, **{key: text for key, text in asked.items() if text})


def sidecar(cpu: str, name: str = "sidecar") -> dict[str, Any]:
    return {**c(cpu, name=name), "restartPolicy": "Always"}


def status(**containers: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "ready": True, **told} for name, told in containers.items()]


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [
        ("0", 1, 0),
        ("8", 1000, 8000),
        ("500m", 1000, 500),
        ("0.5", 1000, 500),
        (".5", 1000, 500),
        ("1.", 1000, 1000),
        ("100n", 1000, 1),
        ("1500u", 1000, 2),
        ("95890m", 1000, 95890),
        ("128974848", 1, 128974848),
        ("129e6", 1, 129_000_000),
        ("129E6", 1, 129_000_000),
        ("1e-3", 1000, 1),
        ("129M", 1, 129_000_000),
        ("123Mi", 1, 123 * Mi),
        ("40Gi", 1, 40 * 2**30),
        ("1.5Gi", 1, 3 * 2**29),
        ("2k", 1, 2000),
        ("1T", 1, 10**12),
        ("1Pi", 1, 2**50),
        ("1E", 1, 10**18),
        ("1Ei", 1, 2**60),
        ("1G", 1, 10**9),
        ("263894012Ki", 1, 263894012 * 1024),
        ("128974848000m", 1, 128974848),
    ],
)
def test_quantities(text: str, scale: int, expected: int) -> None:
    assert quantity(text, scale) == expected


@pytest.mark.parametrize("text", ["", "1 Gi", "Gi", "1KiB", "ten", "1e", "0x10", "1e999", "1.2.3"])
def test_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        quantity(text, 1)


CASES: dict[str, tuple[dict[str, Any], Resources]] = {
    "nothing is asked for": (pod("p", c()), Resources()),
    "containers add up": (
        pod("p", c("500m", "64Mi"), c("1", "64Mi", "2", name="b")),
        Resources(128 * Mi, 1500, 2000),
    ),
    "limits stand for requests that are not given": (
        pod("p", {"name": "a", "resources": {"limits": {"cpu": "2", GPU: "1"}, "requests": {}}}),
        Resources(0, 2000, 1000),
    ),
    "but not where they are": (
        pod("p", {"name": "a", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}),
        Resources(0, 1000, 0),
    ),
    "an init container that needs more, once": (
        pod("p", c("1", "64Mi"), init=(c("3", "32Mi"), c("2", "16Mi"))),
        Resources(64 * Mi, 3000, 0),
    ),
    "an init container that needs less": (
        pod("p", c("4"), init=(c("3"),)),
        Resources(0, 4000, 0),
    ),
    "a sidecar is there as long as the containers": (
        pod("p", c("4"), init=(sidecar("500m"),)),
        Resources(0, 4500, 0),
    ),
    "an init container runs beside the sidecars before it": (
        pod("p", c("1"), init=(sidecar("500m"), c("3"))),
        Resources(0, 3500, 0),
    ),
    "and not beside those after it": (
        pod("p", c("1"), init=(c("3"), sidecar("500m"))),
        Resources(0, 3000, 0),
    ),
    "several sidecars": (
        pod("p", c("1"), init=(sidecar("1", "s"), c("2"), sidecar("1", "t"), c("3"))),
        Resources(0, 5000, 0),
    ),
    "each resource by itself": (
        pod("p", c("1", "512Mi"), init=(c("2", "64Mi"),)),
        Resources(512 * Mi, 2000, 0),
    ),
    "overhead comes on top": (
        pod("p", c("1"), init=(c("2"),), overhead={"cpu": "250m", "memory": "120Mi"}),
        Resources(120 * Mi, 2250, 0),
    ),
    "what the pod as a whole asks for goes first, but for GPUs": (
        pod(
            "p",
            c("1", "64Mi", "2"),
            resources={"requests": {"cpu": "6", GPU: "9"}, "limits": {"cpu": "8"}},
            overhead={"cpu": "500m"},
        ),
        Resources(64 * Mi, 6500, 2000),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_pod_holds(case: str) -> None:
    one, expected = CASES[case]
    assert held(one, GPU) == expected


@pytest.mark.parametrize(
    ("told", "conditions", "cores"),
    [
        ({"resources": {"requests": {"cpu": "2"}}}, [], 2000),
        ({"resources": {"requests": {"cpu": "500m"}}}, [], 1000),
        ({"allocatedResources": {"cpu": "3"}}, [], 3000),
        ({"resources": {"requests": {"cpu": "500m"}}}, ["Infeasible"], 500),
        ({"resources": {"requests": {"cpu": "500m"}}}, ["Deferred"], 1000),
        ({"resources": {}}, ["Infeasible"], 1000),
    ],
)
def test_a_pod_that_is_resized_holds_the_more_of_before_and_after(
    told: dict[str, Any], conditions: list[str], cores: int
) -> None:
    one = pod("p", c("1"))
    one["status"]["containerStatuses"] = status(main=told)
    one["status"]["conditions"] += [
        {"type": "PodResizePending", "status": "True", "reason": reason} for reason in conditions
    ]
    assert held(one, GPU).cores == cores


def test_another_resource_may_be_the_gpu() -> None:
    one = pod("p", {"name": "a", "resources": {"requests": {"amd.com/gpu": "4", GPU: "1"}}})
    assert held(one, "amd.com/gpu").gpus == 4000

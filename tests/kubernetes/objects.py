"""Pods, endpoint slices, nodes and priority classes in the shapes that real clusters have them."""

from __future__ import annotations

import itertools
from typing import Any

Object = dict[str, Any]
_NUMBERS = itertools.count(1)
CREATED = "2026-11-30T09:12:44Z"


def container(name: str = "main", port: int | None = None, **requests: str) -> Object:
    """A container; resources by name, `gpu` short for `nvidia.com/gpu`."""
    wanted = {("nvidia.com/gpu" if key == "gpu" else key): value for key, value in requests.items()}
    limits = {"nvidia.com/gpu": requests["gpu"]} if "gpu" in requests else {}
    found: Object = {
        "name": name,
        "image": "registry.example/image:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": wanted, "limits": limits} if wanted else {},
        "terminationMessagePath": "/dev/termination-log",
    }
    if port is not None:
        found["ports"] = [{"name": "http", "containerPort": port, "protocol": "TCP"}]
    return found


def pod(
    name: str,
    *containers: Object,
    node: str | None = "node-a",
    namespace: str = "prod",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    ip: str | None = "10.1.0.5",
    phase: str = "Running",
    ready: bool = True,
    terminating: bool = False,
    restarts: int = 0,
    priority_class: str | None = None,
    priority: int | None = 0,
    init: tuple[Object, ...] = (),
    **spec: Any,
) -> Object:
    """A pod, by default one that runs and is ready."""
    meta: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"00000000-0000-4000-8000-{next(_NUMBERS):012}",
        "creationTimestamp": CREATED,
        "labels": labels or {},
        "annotations": annotations or {},
        "managedFields": [{"manager": "kubelet", "operation": "Update"}],
        "ownerReferences": [{"kind": "ReplicaSet", "name": "x", "controller": True}],
    }
    if terminating:
        meta["deletionTimestamp"] = CREATED
        meta["deletionGracePeriodSeconds"] = 30
    running = [one["name"] for one in containers]
    found: Object = {
        "metadata": meta,
        "spec": {
            "containers": list(containers) or [container()],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
            ],
            **spec,
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": "PodScheduled", "status": "True" if node else "False"},
                {"type": "Initialized", "status": "True"},
                {"type": "ContainersReady", "status": "True" if ready else "False"},
                {"type": "Ready", "status": "True" if ready else "False"},
            ],
            "containerStatuses": [
                {"name": one, "ready": ready, "restartCount": restarts} for one in running
            ],
            "qosClass": "Burstable",
        },
    }
    if init:
        found["spec"]["initContainers"] = list(init)
    if node is not None:
        found["spec"]["nodeName"] = node
    if priority_class is not None:
        found["spec"]["priorityClassName"] = priority_class
    if priority is not None:
        found["spec"]["priority"] = priority
    if ip is not None:
        found["status"]["podIP"] = ip
        found["status"]["podIPs"] = [{"ip": ip}]
    return found


def mirror_pod(name: str, *containers: Object, node: str) -> Object:
    """A static pod of a node, as its mirror in the API."""
    found = pod(
        f"{name}-{node}",
        *containers,
        node=node,
        namespace="kube-system",
        annotations={"kubernetes.io/config.mirror": "f6d5", "kubernetes.io/config.source": "file"},
        priority_class="system-node-critical",
        priority=2_000_001_000,
    )
    found["metadata"]["ownerReferences"] = [{"kind": "Node", "name": node, "controller": True}]
    return found


def daemon(name: str, node: str, *containers: Object) -> Object:
    """A pod of a DaemonSet, which tolerates what its node suffers from."""
    found = pod(f"{name}-{node}", *containers, node=node, namespace="kube-system")
    found["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": name, "controller": True}]
    found["spec"]["tolerations"] = [{"operator": "Exists"}]
    return found


def node(
    name: str,
    *,
    ready: str | None = "True",
    cordoned: bool = False,
    labels: dict[str, str] | None = None,
    taints: list[Object] | None = None,
    **allocatable: str,
) -> Object:
    """A node; by default with 8 GPUs."""
    shape = {"cpu": "95890m", "memory": "1056Gi", "gpu": "8", **allocatable}
    amounts = {("nvidia.com/gpu" if key == "gpu" else key): value for key, value in shape.items()}
    spec: Object = {"podCIDR": "10.1.0.0/24", "providerID": f"aws:///eu-west-1a/{name}"}
    all_taints = list(taints or ())
    if cordoned:
        spec["unschedulable"] = True
        all_taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if all_taints:
        spec["taints"] = all_taints
    conditions: list[Object] = [{"type": "MemoryPressure", "status": "False"}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    return {
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-8000-{next(_NUMBERS):012}",
            "creationTimestamp": CREATED,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                **(labels or {}),
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": spec,
        "status": {
            "capacity": {**amounts, "cpu": "96", "pods": "110"},
            "allocatable": {
                **{key: value for key, value in amounts.items() if value != "none"},
                "ephemeral-storage": "95551679124",
                "hugepages-2Mi": "0",
                "pods": "110",
            },
            "conditions": conditions,
            "images": [{"names": ["registry.example/image:1"], "sizeBytes": 9_000_000_000}] * 5,
        },
    }


def priority_class(name: str, value: int) -> Object:
    """A PriorityClass."""
    return {
        "metadata": {"name": name, "creationTimestamp": CREATED},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def endpoint(
    pod_name: str | None, address: str, node: str | None = "node-a", **conditions: bool
) -> Object:
    """An endpoint, of a pod or of something outside the cluster; conditions as they are told."""
    found: Object = {"addresses": [address], "conditions": conditions}
    if pod_name is not None:
        found["targetRef"] = {"kind": "Pod", "namespace": "prod", "name": pod_name}
    if node is not None:
        found["nodeName"] = node
        found["zone"] = "eu-1a"
    return found


def endpoint_slice(
    service: str,
    *endpoints: Object,
    suffix: str = "x7k2p",
    namespace: str = "prod",
    family: str = "IPv4",
    ports: tuple[tuple[str, int | None], ...] = (("http", 8000),),
    labels: dict[str, str] | None = None,
) -> Object:
    """A slice as its controller writes it: the Service's labels, and the Service's name."""
    own = {
        "kubernetes.io/service-name": service,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    return {
        "metadata": {
            "name": f"{service}-{suffix}",
            "generateName": f"{service}-",
            "namespace": namespace,
            "creationTimestamp": CREATED,
            "labels": {**(labels or {}), **own},
            "ownerReferences": [{"kind": "Service", "name": service, "controller": True}],
        },
        "addressType": family,
        # a slice of a Service without endpoints has null for both
        "endpoints": list(endpoints) or None,
        "ports": [{"name": name, "protocol": "TCP", "port": port} for name, port in ports] or None,
    }

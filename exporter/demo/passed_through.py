"""Simulated servers that pass vLLM's series through: NIM, and a worker of NVIDIA Dynamo.

Formats: vLLM's as recorded; NIM has them under a path of its own, Dynamo's system port beside its
own series and its list of adapters, made from its schema.
"""

from __future__ import annotations

from exporter.demo.pages import Pages
from exporter.demo.prometheus import gauge, render
from exporter.demo.scenario import ServingReplica
from exporter.demo.vllm_metrics import families
from exporter.demo.vllm_server import models_document


def nim_pages(replica: ServingReplica, started: float) -> Pages:
    """What NIM shows. `started`: unix seconds."""
    return {
        "/v1/metrics": lambda seconds: render(families(replica, seconds, started)),
        "/v1/models": lambda seconds: models_document(replica, int(started + seconds)),
        "/v1/health/ready": lambda _: {"object": "health.response", "message": "ready"},
    }


def dynamo_pages(replica: ServingReplica, started: float) -> Pages:
    """What the system port of a Dynamo worker shows. `started`: unix seconds."""
    labels = {"dynamo_component": "backend", "dynamo_namespace": "dynamo"}
    loras = {name: 1000 + number for number, name in enumerate(replica.registered)}

    def metrics(seconds: float) -> str:
        own = gauge("dynamo_component_uptime_seconds", "", [(labels, seconds)])
        return render((own, *families(replica, seconds, started)))

    return {
        "/metrics": metrics,
        "/v1/loras": lambda _: {"status": "success", "loras": loras, "count": len(loras)},
        "/health": lambda _: {"status": "ready"},
        "/live": lambda _: {"status": "live"},
    }

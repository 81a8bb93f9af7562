"""The metrics of a simulated Ray node, on which Ray Serve LLM runs replicas of one model.

Format: made from Ray's published series. Serve holds adapters in a cache of its own, larger than
the engine's slots, and keeps the series of adapters that it dropped, at 0. vLLM's series come
through Ray under names of its own, with the replica's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exporter.demo.pages import Pages
from exporter.demo.prometheus import Family, Labels, gauge, render, total
from exporter.demo.scenario import ServingReplica
from exporter.demo.vllm_metrics import lora_samples

CACHE = 6
"""`max_num_adapters_per_replica`: adapters that one replica holds."""

_SESSION = {"SessionName": "session_2026"}
_NODE = {**_SESSION, "NodeAddress": "10.20.0.21"}


def rayserve_pages(replicas: Sequence[ServingReplica], started: float) -> Pages:
    """What the node shows. A replica's name is its id in Serve. `started`: unix seconds."""
    return {"/metrics": lambda seconds: render(_families(replicas, seconds, started))}


def held(replica: ServingReplica, seconds: float) -> tuple[str, ...]:
    """The adapters that Serve holds for the replica: those that had work last."""
    worked = replica.last_work(seconds)
    return tuple(sorted(worked, key=lambda name: -worked[name])[:CACHE])


def _families(
    replicas: Sequence[ServingReplica], seconds: float, started: float
) -> Iterator[Family]:
    yield gauge("ray_node_cpu_count", "Total CPUs available on a ray node", [(_NODE, 32)])
    yield gauge(
        "ray_serve_num_multiplexed_models",
        "The number of multiplexed models on the current replica.",
        [(_of_serve(one), len(held(one, seconds))) for one in replicas],
    )
    yield gauge(
        "ray_serve_registered_multiplexed_model_id",
        "The model id registered on the current replica.",
        [
            ({**_of_serve(one), "model_id": name}, int(name in held(one, seconds)))
            for one in replicas
            for name in one.last_work(seconds)
        ],
    )
    yield gauge(
        "ray_vllm_lora_requests_info",
        "Running stats on lora requests.",
        [
            (labels | _of_engine(one), value)
            for one in replicas
            for labels, value in lora_samples(one, seconds, started)
        ],
    )
    moments = [(_of_engine(one, one.model), one.at(seconds)) for one in replicas]
    for name, text, field in (
        ("running", "Number of requests in model execution batches.", "requests_running"),
        ("waiting", "Number of requests waiting to be processed.", "requests_waiting"),
    ):
        values = [(labels, getattr(moment, field)) for labels, moment in moments]
        yield gauge(f"ray_vllm_num_requests_{name}", text, values)
    for name, text in (
        ("prompt_tokens", "Number of prefill tokens processed."),
        ("generation_tokens", "Number of generation tokens processed."),
    ):
        values = [(labels, getattr(moment, name)) for labels, moment in moments]
        yield total(f"ray_vllm_{name}_total", text, values)


def _of_serve(replica: ServingReplica) -> Labels:
    deployment = f"LLMServer:{replica.model}"
    return {**_NODE, "application": "llm", "deployment": deployment, "replica": replica.name}


def _of_engine(replica: ServingReplica, model: str | None = None) -> dict[str, str]:
    labels = {**_SESSION, "ReplicaId": replica.name}
    return labels if model is None else {**labels, "engine": "0", "model_name": model}

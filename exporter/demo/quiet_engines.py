"""Simulated servers that tell little or nothing of slots: LoRAX, TensorRT-LLM, Tinker's API.

Formats: made from LoRAX's source, from the series that TensorRT-LLM publishes, and from the schema
of Tinker's public client.
"""

from __future__ import annotations

from typing import Any

from exporter.demo.pages import Pages
from exporter.demo.prometheus import gauge, render, total
from exporter.demo.scenario import ServingReplica


def lorax_pages(replica: ServingReplica, started: float) -> Pages:
    """LoRAX: a queue, counters of failures, and which model it serves."""
    del started

    def metrics(seconds: float) -> str:
        moment = replica.at(seconds)
        return render(
            (
                gauge("lorax_queue_length", "", [({}, moment.requests_waiting)]),
                total("lorax_request_success", "", [({}, moment.requests_finished)]),
                total("lorax_request_failure", "", [({"err": "load_adapter"}, 2)]),
            )
        )

    def info(seconds: float) -> dict[str, Any]:
        del seconds
        return {
            "model_id": f"/data/{replica.model}",
            "model_dtype": "torch.float16",
            "version": replica.version,
            "sha": None,
        }

    return {"/metrics": metrics, "/info": info, "/health": lambda _: ""}


def tensorrtllm_pages(replica: ServingReplica, started: float) -> Pages:
    """TensorRT-LLM, served by `trtllm-serve`: tokens and requests, nothing of adapters."""
    labels = {"engine_type": "trtllm", "model_name": replica.model}

    def metrics(seconds: float) -> str:
        moment = replica.at(seconds)
        finished = {**labels, "finished_reason": "stop"}
        return render(
            (
                total("trtllm_request_success_total", "", [(finished, moment.requests_finished)]),
                total("trtllm_prompt_tokens_total", "", [(labels, moment.prompt_tokens)]),
                total("trtllm_generation_tokens_total", "", [(labels, moment.generation_tokens)]),
            )
        )

    row = {
        "id": replica.model,
        "object": "model",
        "created": int(started),
        "owned_by": "tensorrt_llm",
    }
    return {
        "/prometheus/metrics": metrics,
        "/v1/models": lambda _: {"object": "list", "data": [row]},
        "/version": lambda _: {"version": replica.version},
        # Statistics of iterations, which the real server hands out once.
        "/metrics": lambda _: [],
        "/health": lambda _: "",
    }


def tinker_pages(replica: ServingReplica, started: float) -> Pages:
    """A server with Tinker's training API: which model it trains."""
    del started
    document = {"supported_models": [{"model_name": replica.model}]}
    return {
        "/api/v1/get_server_capabilities": lambda _: document,
        "/api/v1/healthz": lambda _: {"status": "ok"},
    }

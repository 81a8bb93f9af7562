"""A simulated llama.cpp server: adapters that are all loaded and have no slots.

Format: recorded from build 11434; of a request's parameters and the server's properties most are
left out. What it calls slots is room for requests, which adapters share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exporter.demo.pages import Pages
from exporter.demo.prometheus import Family, gauge, render, total
from exporter.demo.scenario import ServingReplica, requests_of

REQUEST_SLOTS = 6
_CONTEXT = 8192


def llamacpp_pages(replica: ServingReplica, started: float) -> Pages:
    """What the server shows, when started with `--metrics`. `started`: unix seconds."""
    return {
        "/lora-adapters": lambda _: _adapters(replica),
        "/slots": lambda seconds: _slots(replica, seconds),
        "/metrics": lambda seconds: render(_families(replica, seconds)),
        "/props": lambda _: _props(replica),
        "/v1/models": lambda _: _models(replica, int(started)),
        "/health": lambda _: {"status": "ok"},
    }


def processing(replica: ServingReplica, seconds: float) -> tuple[str, ...]:
    """The adapter of each request that has room; what comes after these is deferred."""
    running = replica.at(seconds).running
    asked = [adapter for adapter in running for _ in range(requests_of(adapter))]
    return tuple(asked[:REQUEST_SLOTS])


def deferred(replica: ServingReplica, seconds: float) -> int:
    """Requests that wait for room."""
    return replica.at(seconds).requests_running - len(processing(replica, seconds))


def _adapters(replica: ServingReplica) -> list[dict[str, Any]]:
    return [
        {"id": number, "path": name, "scale": 1.0, "task_name": "", "prompt_prefix": ""}
        for number, name in enumerate(replica.registered)
    ]


def _slots(replica: ServingReplica, seconds: float) -> list[dict[str, Any]]:
    at_work = processing(replica, seconds)
    known = replica.registered
    slots = []
    for number in range(REQUEST_SLOTS):
        busy = number < len(at_work)
        # A slot goes on telling of its last request after that has ended.
        adapter = known.index(at_work[number]) if busy else number % len(known)
        slots.append(
            {
                "id": number,
                "n_ctx": _CONTEXT,
                "speculative": False,
                "is_processing": busy,
                "id_task": 100 + number,
                "params": {
                    "temperature": 0.8,
                    "max_tokens": 512,
                    "stream": False,
                    "lora": [{"id": adapter, "scale": 1.0}],
                },
                "next_token": [{"has_next_token": busy, "n_remain": 200 if busy else -1}],
            }
        )
    return slots


def _families(replica: ServingReplica, seconds: float) -> Iterator[Family]:
    moment = replica.at(seconds)
    for name, text, value in (
        (
            "prompt_tokens_total",
            "Number of prompt tokens processed, excluding cached tokens",
            moment.prompt_tokens,
        ),
        (
            "tokens_predicted_total",
            "Number of generation tokens processed",
            moment.generation_tokens,
        ),
    ):
        yield total(f"llamacpp:{name}", text, [({}, value)])
    for name, text, value in (
        (
            "requests_processing",
            "Number of requests processing",
            len(processing(replica, seconds)),
        ),
        ("requests_deferred", "Number of requests deferred", deferred(replica, seconds)),
    ):
        yield gauge(f"llamacpp:{name}", text, [({}, value)])


def _props(replica: ServingReplica) -> dict[str, Any]:
    return {
        "default_generation_settings": {"params": {"lora": []}, "n_ctx": _CONTEXT},
        "total_slots": REQUEST_SLOTS,
        "model_alias": replica.model,
        "model_path": f"/models/{replica.model}.gguf",
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "build_info": replica.version,
        "is_sleeping": False,
    }


def _models(replica: ServingReplica, created: int) -> dict[str, Any]:
    row = {"id": replica.model, "object": "model", "created": created, "owned_by": "llamacpp"}
    return {"object": "list", "data": [row]}

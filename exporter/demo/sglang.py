"""A simulated SGLang server: its LoRA pool in `/metrics` and `/v1/loads`, its settings, its models.

Format: made by the serialisers of SGLang 0.5.23 (series, loads) or read in their source (settings,
models). Of the series that have nothing to do with adapters or load some are left out. Two
tensor-parallel ranks report, and both mean the same pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from exporter.demo.pages import Pages
from exporter.demo.prometheus import Family, gauge, render, total
from exporter.demo.scenario import ServingReplica

_TENSOR_RANKS = 2
_REQUESTS_AT_MOST = 64
_TOKENS_AT_MOST = 65_536
_TOKENS_IN_CACHE = 800
"""Of one running request."""


def sglang_pages(replica: ServingReplica, started: float) -> Pages:
    """What the server shows. `started`: unix seconds."""
    return {
        "/metrics": lambda seconds: render(families(replica, seconds)),
        "/v1/loads": lambda seconds: _loads(replica, seconds, started),
        "/server_info": lambda _: _info(replica),
        "/v1/models": lambda _: _models(replica, int(started)),
        "/health": lambda _: "",
    }


def families(replica: ServingReplica, seconds: float) -> Iterator[Family]:
    """The families of `/metrics`. The pool's gauges keep the last batch's value while idle."""
    moment = replica.at(seconds)
    used = replica.last_batch(seconds)
    ranks = [
        {
            "engine_type": "unified",
            "model_name": replica.model,
            "moe_ep_rank": "0",
            "pp_rank": "0",
            "tp_rank": f"{rank}",
        }
        for rank in range(_TENSOR_RANKS)
    ]
    in_cache = moment.requests_running * _TOKENS_IN_CACHE
    for name, text, value in (
        ("num_running_reqs", "The number of running requests.", moment.requests_running),
        ("num_queue_reqs", "The number of requests in the waiting queue.", moment.requests_waiting),
        ("num_grammar_queue_reqs", "The number of requests in the grammar waiting queue.", 0),
        ("token_usage", "The token usage.", round(in_cache / _TOKENS_AT_MOST, 4)),
        ("num_used_tokens", "The number of used tokens.", in_cache),
        (
            "lora_pool_slots_used",
            "Number of LoRA adapter slots currently occupied in GPU memory.",
            used,
        ),
        (
            "lora_pool_slots_total",
            "Total number of LoRA adapter slots available (max_loras_per_batch).",
            replica.slots,
        ),
        (
            "lora_pool_utilization",
            "LoRA pool utilization ratio (used/total). 1.0 means pool is full.",
            used / replica.slots,
        ),
        (
            "max_total_num_tokens",
            "Maximum total number of tokens in the KV cache pool.",
            _TOKENS_AT_MOST,
        ),
    ):
        yield gauge(f"sglang:{name}", text, [(labels, value) for labels in ranks])
    for name, text, count in (
        ("prompt_tokens", "Number of prefill tokens processed.", moment.prompt_tokens),
        ("generation_tokens", "Number of generation tokens processed.", moment.generation_tokens),
        ("num_requests", "Number of requests processed.", moment.requests_finished),
    ):
        streamed = count // 3
        shares = (("false", count - streamed), ("true", streamed))
        yield total(
            f"sglang:{name}_total",
            text,
            [
                ({"is_streaming": told, "model_name": replica.model}, value)
                for told, value in shares
            ],
        )


def _loads(replica: ServingReplica, seconds: float, started: float) -> dict[str, Any]:
    moment = replica.at(seconds)
    used = replica.last_batch(seconds)
    in_cache = moment.requests_running * _TOKENS_IN_CACHE
    load = {
        "timestamp": started + seconds,
        "dp_rank": 0,
        "num_running_reqs": moment.requests_running,
        "num_waiting_reqs": moment.requests_waiting,
        "num_used_tokens": in_cache,
        "num_total_tokens": in_cache,
        "max_total_num_tokens": _TOKENS_AT_MOST,
        "max_running_requests": _REQUESTS_AT_MOST,
        "token_usage": round(in_cache / _TOKENS_AT_MOST, 4),
        "utilization": round(moment.requests_running / _REQUESTS_AT_MOST, 4),
        "lora": {
            "slots_used": used,
            "slots_total": replica.slots,
            "utilization": used / replica.slots,
        },
        "queues": {
            "waiting": moment.requests_waiting,
            "grammar": 0,
            "paused": 0,
            "retracted": 0,
            "prealloc_ready": 0,
        },
    }
    return {
        "timestamp": datetime.fromtimestamp(started + seconds, UTC).isoformat(timespec="seconds"),
        "version": replica.version,
        "accelerator": "NVIDIA H200",
        "num_accelerators": _TENSOR_RANKS,
        "loads": [load],
    }


def _info(replica: ServingReplica) -> dict[str, Any]:
    return {
        "model_path": f"/models/{replica.model}",
        "served_model_name": replica.model,
        "api_key": None,
        "enable_lora": True,
        "max_loras_per_batch": replica.slots,
        "max_loaded_loras": 2 * replica.slots,
        "dp_size": 1,
        "tp_size": _TENSOR_RANKS,
        "version": replica.version,
    }


def _models(replica: ServingReplica, created: int) -> dict[str, Any]:
    def row(name: str, root: str, parent: str | None) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "sglang",
            "root": root,
            "parent": parent,
        }

    base = row(replica.model, f"/models/{replica.model}", None)
    adapters = [row(name, f"/adapters/{name}", replica.model) for name in replica.registered]
    return {"object": "list", "data": [base, *adapters]}

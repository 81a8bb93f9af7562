"""The exporter in a cluster: pods come and go, and then nobody tells of them any more."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.fake import FakeApi, kubeconfig, kubernetes
from tests.kubernetes.objects import container, node, pod, priority_class
from tests.support.process import Process, started
from tests.support.programs import until
from tests.support.servers import http_server, vllm_routes, vllm_text

LABEL = "lora-exporter/model"


def settings(kubernetes: Path) -> dict[str, Any]:
    access = {"kubeconfig_file": kubernetes.name}
    return {
        "web": {"listen_address": "127.0.0.1:0"},
        "poll": {"interval": "200ms", "timeout": "200ms", "stale_after": "60s"},
        "planning": {"interval": "100ms", "demand_window": "1s"},
        "targets": [
            {
                "name": "serving",
                "engine": "vllm",
                "kubernetes": {
                    **access,
                    "namespaces": ["prod"],
                    "selector": "app=vllm",
                    "port": "http",
                    "model_label": LABEL,
                },
            }
        ],
        "classes": {"gold": {"priority_class": "high"}, "batch": {"priority_class": "low"}},
        "models": {
            "chat": {"class": "gold", "gpus": 1},
            "batch-llm": {"class": "batch", "gpus": 2},
        },
        "inventory": {"kubernetes": access},
    }


def replica(name: str, model: str, address: str, gpus: str, **keys: Any) -> dict[str, Any]:
    port = int(address.rpartition(":")[2])
    labels = {"app": "vllm", LABEL: model}
    one = container("vllm", port, gpu=gpus)
    return pod(name, one, labels=labels, ip="127.0.0.1", **keys)


async def headroom(process: Process, model: str) -> tuple[str | None, str | None]:
    series = f'lora_model_headroom_replicas{{model="{model}",room='
    free = await process.sample(series + '"free"}')
    return free, await process.sample(series + '"preempting"}')


async def test_pods_come_and_go_until_the_api_server_dies(exporter: Path, tmp_path: Path) -> None:
    api = FakeApi()
    api.put("nodes", node("node-a", gpu="4"))
    api.put("nodes", node("node-b", gpu="4", cordoned=True))
    api.put("priorityclasses", priority_class("high", 1000))
    api.put("priorityclasses", priority_class("low", 10))
    async with contextlib.AsyncExitStack() as stack:
        addresses = [
            await stack.enter_async_context(http_server(vllm_routes(vllm_text(model="x"))))
            for _ in range(3)
        ]
        server = contextlib.AsyncExitStack()
        await server.enter_async_context(kubernetes(api))
        stack.push_async_exit(server.__aexit__)
        config = tmp_path / "lora.yml"
        config.write_text(yaml.safe_dump(settings(kubeconfig(tmp_path, api))))
        process = await stack.enter_async_context(
            started(exporter, "serve", "--config.file", str(config))
        )
        # nothing runs yet
        await process.sample_is('lora_model_headroom_replicas{model="chat",room="free"}', "4")
        await process.sample_is("lora_exporter_targets", "0.0")

        first = replica("chat-0", "chat", addresses[0], "1", priority=1000, ready=False)
        api.put("pods", first)
        await process.sample_is('lora_model_replicas{model="chat",state="starting"}', "1")
        assert await process.sample("lora_exporter_targets") == "0.0"
        first = replica("chat-0", "chat", addresses[0], "1", priority=1000)
        api.put("pods", first)
        target = f'lora_target_up{{target="{addresses[0]}",group="serving"}}'
        await process.sample_is(target, "1")
        text = await process.text("/metrics")
        info = next(line for line in text.splitlines() if line.startswith("lora_replica_info{"))
        for label in (
            'model="chat"',
            'replica_id="prod/chat-0"',
            'pod="chat-0"',
            'namespace="prod"',
            'node="node-a"',
        ):
            assert label in info

        api.put("pods", replica("batch-0", "batch-llm", addresses[1], "2", priority=10))
        api.put("pods", pod("train", container(gpu="1"), namespace="ml", priority=10))
        await process.sample_is('lora_model_current_replicas{model="batch-llm"}', "1")

        async def has_room() -> bool:
            # 4 GPUs: one of ours, two that can be had, one of somebody else's
            return await headroom(process, "chat") == ("0", "2")

        await until(has_room)
        assert await process.sample('lora_exporter_class_mistakes{reason="missing"}') == "0.0"

        api.put(
            "pods",
            replica("batch-0", "batch-llm", addresses[1], "2", priority=10, terminating=True),
        )
        await process.sample_is('lora_model_current_replicas{model="batch-llm"}', "0")
        assert await headroom(process, "chat") == ("0", "0")
        await process.sample_is("lora_exporter_targets", "1.0")
        api.delete("pods", "batch-0", "prod")
        await process.sample_is('lora_model_headroom_replicas{model="chat",room="free"}', "2")
        other = replica("chat-1", "chat", addresses[2], "1", priority=1000, node="node-b")
        api.put("pods", other)
        await process.sample_is('lora_model_current_replicas{model="chat"}', "2")
        assert await headroom(process, "chat") == ("2", "0")
        await process.sample_is("lora_exporter_targets", "2.0")

        await server.aclose()
        failures = 'lora_exporter_discovery_failures_total{group="serving"}'

        async def is_lost() -> bool:
            return float(await process.sample(failures) or 0) >= 2

        await until(is_lost)
        await process.logged("inventory cannot be read")
        ages = (
            'lora_exporter_discovery_last_success_timestamp_seconds{group="serving"}',
            "lora_exporter_inventory_last_success_timestamp_seconds",
        )
        before = [await process.sample(series) for series in ages]
        polls = f'lora_target_polls_total{{target="{addresses[0]}"}}'
        polled = float(await process.sample(polls) or 0)

        async def polled_on() -> bool:
            return float(await process.sample(polls) or 0) >= polled + 3

        await until(polled_on)
        assert [await process.sample(series) for series in ages] == before
        assert None not in before
        assert await process.sample(target) == "1"
        assert await process.sample('lora_model_current_replicas{model="chat"}') == "2"
        assert await headroom(process, "chat") == ("2", "0")

        # it comes back, and is followed again
        api.compact()
        api.delete("pods", "chat-1", "prod")
        await server.enter_async_context(kubernetes(api))
        await process.sample_is('lora_model_current_replicas{model="chat"}', "1")
        await process.sample_is("lora_exporter_targets", "1.0")
        assert not [line for line in process.other if "Traceback" in line]
        status, _ = await process.ends()
        assert status == 0
    assert not [line for line in process.log if "Unclosed" in str(line)]

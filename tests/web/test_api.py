"""The JSON API: answers are what the OpenAPI document says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from exporter.web.api.openapi import OPERATIONS, document
from exporter.web.api.schema import CapacityInfo, Error, Replicas
from tests.support.programs import free_port
from tests.support.servers import Handler, http_server, text_handler, vllm_routes, vllm_text
from tests.support.service import Client, serving, settings

FULL = '{"max_loras":5,"used_loras":7,"free_loras":0}'


def gateway(text: str = FULL) -> dict[str, Handler]:
    return {
        "/api/v1/twinkle/capacity_info": text_handler(text),
        "/-/routes": text_handler('{"/api/v1/model/tuned": "models-tuned"}'),
    }


async def get(client: Client, path: str) -> tuple[int, Any]:
    status, text = await client.get(path)
    return status, json.loads(text)


async def test_replicas_and_what_is_down() -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    async with http_server(vllm_routes()) as url, serving(settings(url, dead)) as client:
        await client.ready()
        status, found = await get(client, "/api/v1/replicas")
        assert (await get(client, "/api/v1/replicas?model=base"))[1]["replicas"]
        missing = await get(client, "/api/v1/replicas?model=x")
    assert status == 200
    answer = Replicas.model_validate(found)
    (replica,) = answer.replicas
    assert (replica.model, replica.max, replica.used, replica.free) == ("base", 4, 1, 3)
    assert (replica.target, replica.up, replica.resident) == (url, True, None)
    assert found["replicas"][0]["resident"] is None
    assert [(down.target, down.reason) for down in answer.down] == [(dead, "connect")]
    assert missing == (404, {"error": "no model 'x'; known: base"})


async def test_totals_of_the_fleet() -> None:
    two = vllm_text(max_lora=2, running="a,b,c")
    async with (
        http_server(vllm_routes()) as one_url,
        http_server(vllm_routes(two)) as two_url,
        serving(settings(one_url, two_url)) as client,
    ):
        await client.ready()
        found = await get(client, "/api/v1/capacity_info")
    # 4 + 2 slots, 1 + 3 used: three free on the first, none on the second.
    assert found == (
        200,
        {
            "max_loras": 6,
            "used_loras": 4,
            "free_loras": 3,
            "complete": True,
            "unknown_replicas": 0,
        },
    )


async def test_totals_are_incomplete_while_something_is_unknown() -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    async with http_server(gateway()) as url, serving(settings(url, dead)) as client:
        await client.ready()
        for path in ("/api/v1/capacity_info", "/api/v1/twinkle/capacity_info"):
            status, found = await get(client, path)
            answer = CapacityInfo.model_validate(found)
            assert (status, answer.max_loras, answer.used_loras, answer.free_loras) == (
                200,
                5,
                7,
                0,
            )
            assert (answer.complete, answer.unknown_replicas) == (False, 1)


async def test_nothing_known_is_null_and_never_zero() -> None:
    cold = '{"max_loras":0,"used_loras":0,"free_loras":0}'
    async with http_server(gateway(cold)) as url, serving(settings(url)) as client:
        await client.ready()
        status, found = await get(client, "/api/v1/capacity_info")
        assert status == 200
        assert (found["max_loras"], found["used_loras"], found["free_loras"]) == (None, None, None)
        assert found["unknown_replicas"] == 1
        refused = await get(client, "/api/v1/twinkle/capacity_info")
    assert refused == (503, {"error": "the slots of no replica are known"})


async def test_kinds_of_slots_are_never_added_up() -> None:
    async with (
        http_server(vllm_routes()) as one,
        http_server(gateway()) as two,
        serving(settings(one, two)) as client,
    ):
        await client.ready()
        status, found = await get(client, "/api/v1/capacity_info")
        assert (status, "never added up" in found["error"]) == (400, True)
        for query, limit in (
            ("slot_kind=exclusive", 5),
            ("slot_kind=evictable", 4),
            ("model=tuned", 5),
            ("model=base", 4),
        ):
            assert (await get(client, f"/api/v1/capacity_info?{query}"))[1]["max_loras"] == limit


@pytest.mark.parametrize(("query", "status"), [("slot_kind=x", 400), ("model=x", 404)])
async def test_questions_that_have_no_answer(query: str, status: int) -> None:
    async with serving(settings()) as client:
        found = await get(client, f"/api/v1/capacity_info?{query}")
    assert found[0] == status
    Error.model_validate(found[1])


async def test_the_document_describes_what_is_served() -> None:
    async with http_server(gateway()) as url, serving(settings(url)) as client:
        await client.ready()
        status, served = await get(client, "/api/v1/openapi.json")
        assert (status, served) == (200, json.loads(json.dumps(document())))
        assert set(served["paths"]) == {operation.path for operation in OPERATIONS}
        for path, item in served["paths"].items():
            query = "?tokens_per_sec=1" if path.endswith("target") else ""
            status, found = await get(client, path.format(name="tuned") + query)
            schema = item["get"]["responses"][str(status)]["content"]["application/json"]["schema"]
            described = served["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            assert set(found) == set(described["properties"]), path
            assert set(described["required"]) == set(described["properties"]), path

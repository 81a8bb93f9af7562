"""`/api/v1/models/{name}/…` of a running service: the command line's functions, over the fleet."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from exporter.settings import Settings
from exporter.web.api.openapi import document
from exporter.web.api.plan_schema import Headroom, Model, Models, Owners, Target
from tests.support.programs import until
from tests.support.servers import http_server, vllm_routes
from tests.support.service import Client, serving

PLANNED: dict[str, Any] = {
    "classes": {"gold": 100, "batch": 0},
    "models": {
        "base": {"class": "gold", "gpus": 1},
        "batch-llm": {"class": "batch", "gpus": 1},
        "free": {},
    },
    "inventory": {"nodes": {"a": {"gpus": 4, "replicas": {"batch-llm": 2}}}},
}


def planned(*urls: str, measurements: Path | None = None) -> Settings:
    quick = {"interval": "100ms", "timeout": "100ms", "stale_after": "300ms"}
    found: dict[str, Any] = {
        **PLANNED,
        "web": {"listen_address": "127.0.0.1:0"},
        "poll": quick,
        "planning": {"interval": "100ms"},
    }
    if urls:
        found["targets"] = [{"name": "g", "static": list(urls)}]
    if measurements is not None:
        found["measurements"] = {"file": str(measurements)}
    return Settings(**found)


async def get(client: Client, path: str) -> tuple[int, Any]:
    status, text = await client.get(path)
    return status, json.loads(text)


async def test_headroom() -> None:
    async with serving(planned()) as client:
        whole = await get(client, "/api/v1/models/base/headroom")
        counted = await get(client, "/api/v1/models/base/headroom?limit=3")
        free = await get(client, "/api/v1/models/free/headroom")
    assert whole[0] == 200
    answer = Headroom.model_validate(whole[1])
    assert (answer.free, answer.preempting, answer.room, answer.limited) == (2, 2, 4, False)
    limited = Headroom.model_validate(counted[1])
    assert (limited.free, limited.preempting, limited.limited) == (2, 1, True)
    assert (free[1]["room"], free[1]["reason"]) == (None, "no_requests")


OWNED: dict[str, Any] = {
    "classes": {"gold": 100, "batch": 0},
    "owners": {"search": {"gpus": 3, "memory": "64GiB"}, "idle": {"replicas": 2}},
    "models": {
        "base": {"class": "gold", "owner": "search", "gpus": 1, "target_tokens_per_second": 500},
        "batch-llm": {"class": "batch", "owner": "lab", "gpus": 1},
        "big": {"class": "batch", "gpus": 8},
    },
    "inventory": {"nodes": {"a": {"gpus": 4, "replicas": {"base": 1, "batch-llm": 2}}}},
    "web": {"listen_address": "127.0.0.1:0"},
}


async def test_models_and_owners(tmp_path: Path) -> None:
    measured = tmp_path / "m.yml"
    measured.write_text("base: [{tokens_per_second: 150, profile: p, measured_at: 2026-11-01}]\n")
    settings = Settings(**OWNED, measurements={"file": str(measured)})
    async with serving(settings) as client:
        status, found = await get(client, "/api/v1/models")
        one = await get(client, "/api/v1/models/base")
        owners = await get(client, "/api/v1/owners")
        page = (await client.get("/"))[1]
        owned = await client.sample(
            'lora_owner_quota{owner="idle",resource="replicas",unit="integer"}'
        )
    assert status == 200
    assert sorted(Models.model_validate(found).models) == ["base", "batch-llm", "big"]
    assert one == (200, found["models"]["base"])
    base = Model.model_validate(one[1])
    assert (base.needed, base.current, base.more, base.room) == (4, 1, 3, 2)
    assert (base.fits, base.unplaced, base.blocked) == (False, 1, ["quota"])
    assert base.preempted == {"batch-llm": 1}
    assert base.measured is not None
    assert (base.measured.profile, base.measured.measured_at) == ("p", "2026-11-01")
    big = Model.model_validate(found["models"]["big"])
    assert big.nearest is not None
    assert (big.blocked, big.nearest.misses) == (["gpus", "no_node"], {"gpus": 7.0})
    told = Owners.model_validate(owners[1]).owners
    assert {owner: its.models for owner, its in told.items()} == {
        "idle": [],
        "lab": ["batch-llm"],
        "search": ["base"],
    }
    assert {name: (its.quota, its.used) for name, its in told["search"].quotas.items()} == {
        "memory": (64 * 2**30, 0),
        "gpus": (3, 1),
    }
    assert owned == "2"
    assert re.search(r'<td class="number needed">4</td>', page)
    assert '<table id="quotas">' in page


async def test_a_target_counts_what_was_discovered_up_or_not(tmp_path: Path) -> None:
    measured = tmp_path / "m.yml"
    measured.write_text("base: [{tokens_per_second: 100, profile: p}]\n")
    path = "/api/v1/models/base/target?tokens_per_sec=500"
    async with contextlib.AsyncExitStack() as stack:
        replica = await stack.enter_async_context(contextlib.AsyncExitStack())
        url = await replica.enter_async_context(http_server(vllm_routes()))
        client = await stack.enter_async_context(serving(planned(url, measurements=measured)))
        await client.ready()
        status, found = await get(client, path)
        answer = Target.model_validate(found)
        assert (status, answer.needed, answer.current, answer.more) == (200, 5, 1, 4)
        assert (answer.fits, answer.preempted, answer.blocked) == (True, {"batch-llm": 2}, [])
        await replica.aclose()

        async def is_gone() -> bool:
            return not (await get(client, "/api/v1/replicas"))[1]["replicas"]

        await until(is_gone)
        # Its table is stale and gone; the capacity that it holds is not.
        assert (await get(client, path))[1]["current"] == 1
        measured.write_text("base: [{tokens_per_second: 250, profile: p}]\n")

        async def is_measured_anew() -> bool:
            return bool((await get(client, path))[1]["needed"] == 2)

        await until(is_measured_anew)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("x", 404, "no model 'x'; known: base, batch-llm, free"),
        ("x/headroom", 404, "no model 'x'; known: base, batch-llm, free"),
        ("x/target?tokens_per_sec=1", 404, "no model 'x'; known: base, batch-llm, free"),
        ("base/headroom?limit=0", 400, "limit: wanted a positive whole number"),
        ("base/headroom?limit=x", 400, "limit: wanted a positive whole number"),
        ("base/target", 400, "tokens_per_sec: wanted a positive finite number"),
        ("base/target?tokens_per_sec=x", 400, "tokens_per_sec: wanted a positive finite number"),
        ("base/target?tokens_per_sec=inf", 400, "tokens_per_sec: wanted a positive finite number"),
        ("base/target?tokens_per_sec=1", 409, "model 'base' was not measured; "),
    ],
)
async def test_questions_that_have_no_answer(path: str, status: int, text: str) -> None:
    async with serving(planned()) as client:
        found = await get(client, f"/api/v1/models/{path}")
    question = path.partition("?")[0].removeprefix("base").removeprefix("x")
    described = document()["paths"]["/api/v1/models/{name}" + question]
    assert found[0] == status
    assert found[1]["error"].startswith(text)
    assert str(status) in described["get"]["responses"]


def test_names_in_paths_are_described() -> None:
    parameters = document()["paths"]["/api/v1/models/{name}/target"]["get"]["parameters"]
    assert [(one["name"], one["in"], one["required"]) for one in parameters] == [
        ("name", "path", True),
        ("tokens_per_sec", "query", False),
    ]

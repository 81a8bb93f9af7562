"""The OpenAPI document, made from the types of the answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from exporter import __version__
from exporter.fleet import SlotKind
from exporter.snapshot import Snapshot
from exporter.web.api import models, slots
from exporter.web.api.plan_schema import Headroom, Model, Models, Owners, Target
from exporter.web.api.schema import CapacityInfo, Error, Replicas

DOCUMENT_PATH = "/api/v1/openapi.json"

Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One GET of the API."""

    path: str
    handler: Handler
    summary: str
    answer: type[BaseModel]
    queries: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Query parameters and their schemas."""
    refusals: tuple[int, ...] = ()


_MODEL = ("model", {"type": "string"})
_SLOT_KIND = ("slot_kind", {"type": "string", "enum": [kind.value for kind in SlotKind]})

OPERATIONS = (
    Operation(
        "/api/v1/replicas",
        slots.replicas,
        "All replicas that have a table, and the targets that are down.",
        Replicas,
        (_MODEL,),
        (404,),
    ),
    Operation(
        "/api/v1/capacity_info",
        slots.capacity_info,
        "Slots of the fleet: max, used, free.",
        CapacityInfo,
        (_MODEL, _SLOT_KIND),
        (400, 404),
    ),
    Operation(
        "/api/v1/twinkle/capacity_info",
        slots.twinkle_capacity_info,
        "The same for Twinkle's own client: 503 where nothing is known, never zeros.",
        CapacityInfo,
        (_MODEL, _SLOT_KIND),
        (400, 404, 503),
    ),
    Operation(
        "/api/v1/models",
        models.models,
        "All models that have a card or a target: current, needed, headroom, what blocks.",
        Models,
    ),
    Operation(
        "/api/v1/models/{name}",
        models.model,
        "One of them.",
        Model,
        refusals=(404,),
    ),
    Operation(
        "/api/v1/owners",
        models.owners,
        "Owners: their models, their quotas, and what of these is used.",
        Owners,
    ),
    Operation(
        "/api/v1/snapshot",
        models.snapshot,
        "All that plans are made of, for `lora-exporter plan`.",
        Snapshot,
    ),
    Operation(
        "/api/v1/models/{name}/headroom",
        models.headroom,
        "How many more replicas of the model fit.",
        Headroom,
        (("limit", {"type": "integer", "minimum": 1}),),
        (400, 404),
    ),
    Operation(
        "/api/v1/models/{name}/target",
        models.target,
        "What it takes to serve so many tokens per second.",
        Target,
        (("tokens_per_sec", {"type": "number", "exclusiveMinimum": 0}),),
        (400, 404, 409),
    ),
)


def document() -> dict[str, Any]:
    """The API as OpenAPI 3.1."""
    answers = dict.fromkeys(operation.answer for operation in OPERATIONS)
    types: list[type[BaseModel]] = [*answers, Error]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in types],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "lora-capacity-exporter", "version": __version__},
        "paths": {operation.path: {"get": _get(operation)} for operation in OPERATIONS},
        "components": {"schemas": schemas["$defs"]},
    }


def _get(operation: Operation) -> dict[str, Any]:
    return {
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)\}", operation.path)
        ]
        + [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in operation.queries
        ],
        "responses": {
            "200": _response(operation.answer, "The answer."),
            **{str(code): _response(Error, "Why there is none.") for code in operation.refusals},
        },
    }


def _response(model: type[BaseModel], description: str) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": reference}}}


async def handle(request: web.Request) -> web.Response:
    """The document."""
    del request
    return web.Response(body=orjson.dumps(document()), content_type="application/json")

"""Answers of the API as JSON."""

from __future__ import annotations

from aiohttp import web
from pydantic import BaseModel

from exporter.web.api.schema import Error


def answer(body: BaseModel, status: int = 200) -> web.Response:
    """The body as JSON."""
    return web.Response(
        body=body.model_dump_json(by_alias=True).encode(),
        status=status,
        content_type="application/json",
    )


def refuse(status: int, text: str) -> web.Response:
    """Why there is no answer."""
    return answer(Error(error=text), status)

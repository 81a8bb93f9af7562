"""Servers of each engine, made of the bodies that its captures hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from aiohttp import web

from exporter.engines import ENGINES
from exporter.engines.base import Answers, Request
from tests.support.captures import (
    GATEWAY_TARGET,
    Case,
    folder_case,
    recorded,
    twinkle_answers,
    vllm_case,
)
from tests.support.servers import Handler

Pages = Mapping[str, bytes]
"""Bodies by path; a path that is not there is a 404."""

_VLLM = vllm_case("0.32.0/main/04-traffic.at1.6s")
_TWINKLE = Case(
    "",
    GATEWAY_TARGET,
    twinkle_answers(capacity=recorded("file-02-capacity-after-add-5.http").body),
    0.0,
)


def pages_of(case: Case) -> dict[str, bytes]:
    """What the case's server answers to all that its reader asks."""
    return pages(case.target.engine, case.answers)


def pages(engine: str, answers: Answers) -> dict[str, bytes]:
    """The bodies of these answers at the paths where the engine's reader looks for them."""
    target = replace(GATEWAY_TARGET, engine=engine)
    found = {}
    for asked in _with_fallbacks(ENGINES[engine].requests(target)):
        answer = answers.get(asked.key)
        if answer is not None and answer.ok:
            found[urlsplit(asked.url).path] = answer.body
    return found


def _with_fallbacks(requests: tuple[Request, ...]) -> list[Request]:
    found = list(requests)
    found += [request.fallback for request in requests if request.fallback is not None]
    return found


_DYNAMO = pages_of(folder_case("dynamo/1.6/vllm"))
_SGLANG = pages_of(folder_case("sglang/0.5.23/traffic"))
SERVERS: Mapping[str, tuple[str, Pages]] = {
    "vllm": ("vllm", pages_of(_VLLM)),
    "vllm, its models with a key": ("vllm", {"/metrics": _VLLM.answers["metrics"].body}),
    "vllm, no statistics": ("vllm", {"/v1/models": _VLLM.answers["models"].body}),
    "vllm behind nim": ("nim", pages_of(folder_case("nim/2/vllm"))),
    "sglang behind nim": ("nim", pages_of(folder_case("nim/2/sglang"))),
    "vllm behind dynamo": ("dynamo", _DYNAMO | {"/v1/models": b'{"data": []}'}),
    "dynamo alone": ("dynamo", pages_of(folder_case("dynamo/1.6/alone"))),
    "dynamo without lora": ("vllm", {"/metrics": _DYNAMO["/metrics"]}),
    "sglang": ("sglang", _SGLANG),
    "sglang, all but metrics with a key": ("sglang", {"/metrics": _SGLANG["/metrics"]}),
    "llamacpp": (
        "llamacpp",
        pages_of(folder_case("llamacpp/b11434/before"))
        | {"/v1/models": b'{"data": [{"id": "tiny.gguf", "owned_by": "llamacpp"}]}'},
    ),
    "tensorrtllm": ("tensorrtllm", pages_of(folder_case("tensorrtllm/made/serve"))),
    "tensorrtllm, no series": ("tensorrtllm", pages_of(folder_case("tensorrtllm/made/no-series"))),
    "rayserve": ("rayserve", pages_of(folder_case("rayserve/2.60/behind-vllm"))),
    "lorax": ("lorax", pages_of(folder_case("lorax/made/traffic"))),
    "twinkle": ("twinkle", pages_of(_TWINKLE)),
    "tinker": ("tinker", pages_of(folder_case("tinker/made/one-model"))),
}
"""The engine, and what a server of it answers, by what it is."""


class Changing:
    """A server at one address that answers as one engine now and as another then."""

    def __init__(self, answered: Pages) -> None:
        self.pages = answered
        self.asked: list[tuple[str, str]] = []
        """Method and path of each request so far."""

    @property
    def routes(self) -> dict[str, Handler]:
        """For `http_server`."""
        return {"/{path:.*}": self._handle}

    async def _handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.path))
        body = self.pages.get(request.path)
        return web.Response(status=404) if body is None else web.Response(body=body)

"""Headers of a group: sent to its targets, to nobody else, and shown nowhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from exporter.discovery.targets import make_target
from exporter.engines.base import Request
from exporter.fetching.ask import Asker, Memory
from exporter.fetching.http import GroupClient, HttpClient
from exporter.fleet import Reason
from exporter.settings import Auth, Header, TargetGroup
from tests.support.servers import http_server, vllm_routes


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(1_000_000) as client:
        yield client


def group(file: Path) -> TargetGroup:
    headers = {"X-Scope-OrgID": Header(value="search"), "X-Api-Key": Header(value_file=file)}
    return TargetGroup(name="g", headers=headers)


async def test_headers_are_sent_and_files_are_followed(http: HttpClient, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("one\n")
    seen = []

    async def look(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-Scope-OrgID"), request.headers.get("X-Api-Key")))
        return web.Response()

    client = GroupClient(group(file))
    deadline = asyncio.get_running_loop().time() + 5
    async with http_server({"/": look}) as url:
        await http.get(Request("k", f"{url}/"), client, deadline)
        file.write_text("another\n")
        await http.get(Request("k", f"{url}/"), client, deadline)
        # A state store or a dashboard is not the group's target.
        await http.get(Request("k", f"{url}/", credentials=False), client, deadline)
    assert seen == [("search", "one"), ("search", "another"), (None, None)]


async def test_headers_go_beside_credentials(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("secret-key")
    both = group(file).model_copy(update={"auth": Auth(bearer_token_file=file)})
    assert GroupClient(both).headers() == {
        "X-Scope-OrgID": "search",
        "X-Api-Key": "secret-key",
        "Authorization": "Bearer secret-key",
    }


@pytest.mark.parametrize("content", ["", "two\nlines", "\u00e9"])
async def test_a_file_that_is_no_header_is_a_matter_of_auth(
    http: HttpClient, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "key"
    file.write_text(content)
    async with http_server(vllm_routes()) as url:
        deadline = asyncio.get_running_loop().time() + 5
        answer = await http.get(Request("k", f"{url}/metrics"), GroupClient(group(file)), deadline)
    assert answer.reason is Reason.AUTH
    assert str(file) in answer.detail
    assert content not in answer.detail or not content


async def test_values_are_neither_logged_nor_in_what_was_asked(
    http: HttpClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    file.write_text("hunter2")
    one = group(file)
    asker = Asker(http, one, 30.0)
    with caplog.at_level(logging.DEBUG):
        async with http_server(vllm_routes()) as url:
            asked = await asker.ask(make_target(one, url), Memory(), 5.0)
    await asker.close()
    assert asked.reading.up
    assert "hunter2" not in caplog.text + repr(asked) + repr(one)

"""State stores: a file that its server replaces, and a real Redis with the least rights."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from redis.asyncio import Redis

from exporter.engines.base import Answer, Request
from exporter.engines.twinkle import STATE_PATTERNS
from exporter.fetching.state import StateClient
from exporter.fleet import Reason
from exporter.settings import State, TargetGroup
from tests.support import servers
from tests.support.programs import free_port, redis_server

RIGHTS = (
    "user reader on >s3cret %R~tw*kle::replica::*::max_loras %R~tw*kle::model::* "
    "%R~tw*kle::session::* +scan +get +mget +ping +hello"
)
"""The prefix has a star, which a scan must not take for a pattern; an ACL does, and more."""


async def read(state: State, max_body: int = 1_000_000, seconds: float = 5.0) -> Answer:
    group = TargetGroup(name="g", engine="twinkle", state=state)
    client = StateClient(group, max_body)
    request = Request("state", state.url, key_prefix=state.key_prefix, patterns=STATE_PATTERNS)
    try:
        return await client.get(request, asyncio.get_running_loop().time() + seconds)
    finally:
        await client.close()


def file_state(path: Path) -> State:
    return State(url=f"file://{path}")


async def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"a": 1}')
    assert (await read(file_state(path))).body == b'{"a": 1}'


async def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = await read(file_state(tmp_path / "none"))
    assert (missing.reason, missing.detail) == (
        Reason.CONNECT,
        "state file: No such file or directory",
    )
    (tmp_path / "large").write_bytes(b"x" * 1001)
    assert (await read(file_state(tmp_path / "large"), 1000)).reason is Reason.TOO_LARGE
    assert (await read(file_state(tmp_path))).reason is Reason.FORMAT


async def test_a_pipe_in_place_of_the_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    answer = await read(file_state(tmp_path / "pipe"))
    assert (answer.reason, answer.detail) == (
        Reason.FORMAT,
        "state file: not a regular file",
    )


async def command(redis: Redis, *words: str) -> None:
    # The library leaves this one call without types.
    await redis.execute_command(*words)  # type: ignore[no-untyped-call]


async def fill(port: int, prefix: str, models: int) -> None:
    async with Redis(port=port) as redis:
        await redis.mset(
            {
                f"{prefix}replica::r1::max_loras": "5",
                f"{prefix}session::s1": json.dumps({"last_heartbeat": 1.0}),
                f"{prefix}token_count::raw-token": "3",
                f"{prefix}future::f1": "{}",
                "twinkle::replica::other::max_loras": "1",
            }
        )
        for n in range(models):
            await redis.set(f"{prefix}model::m{n}", json.dumps({"replica_id": "r1"}))


async def test_redis_with_the_least_rights(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    async with redis_server(tmp_path) as port:
        await fill(port, "tw*kle::", 1200)
        async with Redis(port=port) as admin:
            await command(admin, "ACL", "SETUSER", *RIGHTS.split()[1:])
            await command(admin, "CONFIG", "RESETSTAT")
        state = State(
            url=f"redis://127.0.0.1:{port}/0",
            key_prefix="tw*kle::",
            username="reader",
            password_file=password,
        )
        answer = await read(state)
        async with Redis(port=port) as admin:
            used = {name.removeprefix("cmdstat_") for name in await admin.info("commandstats")}
    assert answer.entries is not None
    assert len(answer.entries) == 1202
    assert answer.entries["replica::r1::max_loras"] == b"5"
    assert not [key for key in answer.entries if "token" in key or "future" in key]
    assert not {"set", "del", "keys", "mset", "expire"} & used


async def test_redis_that_refuses(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    async with redis_server(tmp_path, "--requirepass", "right") as port:
        url = f"redis://127.0.0.1:{port}/0"
        for state in (State(url=url), State(url=url, password_file=wrong)):
            answer = await read(state)
            assert answer.reason is Reason.AUTH
            assert "wrong" not in answer.detail


async def test_redis_whose_account_may_not_read_rows(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("p")
    async with redis_server(tmp_path) as port:
        await fill(port, "", 1)
        async with Redis(port=port) as admin:
            rights = "SETUSER half on >p %R~replica::* +scan +mget +hello +ping"
            await command(admin, "ACL", *rights.split())
        state = State(url=f"redis://127.0.0.1:{port}", username="half", password_file=secret)
        answer = await read(state)
    assert answer.reason is Reason.AUTH
    assert answer.detail == "state store: the account may not scan and read the keys"


async def test_redis_that_holds_too_much(tmp_path: Path) -> None:
    async with redis_server(tmp_path) as port:
        await fill(port, "", 100)
        answer = await read(State(url=f"redis://127.0.0.1:{port}/0"), max_body=500)
    assert answer.reason is Reason.TOO_LARGE


async def test_a_key_of_another_type_is_left_out(tmp_path: Path) -> None:
    async with redis_server(tmp_path) as port:
        async with Redis(port=port) as admin:
            await admin.lpush("model::list", "x")
            await admin.set("model::m", "{}")
        answer = await read(State(url=f"redis://127.0.0.1:{port}/0"))
    assert answer.entries == {"model::m": b"{}"}


async def test_redis_that_is_down_or_silent() -> None:
    down = await read(State(url=f"redis://127.0.0.1:{free_port()}/0"))
    assert (down.reason, down.detail) == (Reason.CONNECT, "state store: cannot connect")

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del writer
        await reader.read()

    async with servers.raw_server(silent) as url:
        port = url.rpartition(":")[2]
        hung = await read(State(url=f"redis://127.0.0.1:{port}/0"), seconds=0.3)
    assert (hung.reason, hung.detail) == (Reason.TIMEOUT, "state store: no answer in time")


@pytest.mark.parametrize("spoken", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xff\r\n"])
async def test_something_else_than_redis(spoken: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(spoken)
        await writer.drain()

    async with servers.raw_server(other) as url:
        port = url.rpartition(":")[2]
        answer = await read(State(url=f"redis://127.0.0.1:{port}/0"), seconds=2.0)
    assert answer.reason in (Reason.FORMAT, Reason.CONNECT)

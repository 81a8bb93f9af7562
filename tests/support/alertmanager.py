"""The real Alertmanager with the shipped example, and everything that it notifies."""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from tests.support.programs import free_port, program, running, until

HOME = Path(__file__).parents[2] / "alerts"
EXAMPLE = HOME / "alertmanager.example.yml"


@dataclass(frozen=True, slots=True)
class Message:
    """A text to people."""

    to: str
    """Channel or mail address."""
    title: str
    text: str


@dataclass(slots=True)
class Received:
    """What was notified, in the order in which it came."""

    pages: list[dict[str, Any]] = field(default_factory=list)
    """Alertmanager's JSON."""
    chat: list[Message] = field(default_factory=list)
    mail: list[Message] = field(default_factory=list)

    def messages(self) -> list[Message]:
        """All texts to people."""
        return self.chat + self.mail


@contextlib.asynccontextmanager
async def _chat_and_pager(received: Received) -> AsyncIterator[str]:
    async def chat(request: web.Request) -> web.Response:
        sent = await request.json()
        (attached,) = sent["attachments"]
        received.chat.append(Message(sent["channel"], attached["title"], attached["text"]))
        return web.Response(text="ok")

    async def page(request: web.Request) -> web.Response:
        received.pages.append(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/chat", chat)
    app.router.add_post("/page", page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _mail_server(received: Received) -> AsyncIterator[int]:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 localhost\r\n")
        while line := (await reader.readline()).decode().strip():
            if line == "DATA":
                writer.write(b"354 go on\r\n")
                body = (await reader.readuntil(b"\r\n.\r\n"))[: -len(b".\r\n")]
                mail = email.message_from_bytes(body, policy=email.policy.default)
                content = mail.get_body(("plain",))
                text = content.get_content().replace("\r\n", "\n") if content is not None else ""
                received.mail.append(Message(mail["To"], mail["Subject"], text))
            writer.write(b"221 bye\r\n" if line == "QUIT" else b"250 fine\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _local(node: Any, times: Mapping[str, str]) -> Any:
    """The same settings with these times."""
    if isinstance(node, dict):
        return {key: times.get(key) or _local(value, times) for key, value in node.items()}
    return [_local(value, times) for value in node] if isinstance(node, list) else node


def _example(url: str, smtp_port: int, times: Mapping[str, str]) -> dict[str, Any]:
    document: dict[str, Any] = _local(yaml.safe_load(EXAMPLE.read_text()), times)
    document["global"] = {
        "smtp_smarthost": f"127.0.0.1:{smtp_port}",
        "smtp_from": "alertmanager@example.org",
        "smtp_require_tls": False,
        "slack_api_url": f"{url}/chat",
    }
    document["templates"] = [str(HOME / pattern) for pattern in document["templates"]]
    for receiver in document["receivers"]:
        for webhook in receiver.get("webhook_configs", []):
            webhook["url"] = f"{url}/page"
    return document


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running Alertmanager."""

    port: int
    received: Received

    async def post(self, *alerts: Mapping[str, Any]) -> None:
        """Sends alerts as Prometheus does."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{self.port}/api/v2/alerts", json=alerts) as response,
        ):
            assert response.status == 200, await response.text()

    async def alerts(self) -> list[dict[str, Any]]:
        """What it knows of, inhibited ones included."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}/api/v2/alerts") as response,
        ):
            found: list[dict[str, Any]] = await response.json()
            return found

    async def ready(self) -> bool:
        """Whether it answers."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.port}/-/ready") as response,
            ):
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False


@contextlib.asynccontextmanager
async def alertmanager(folder: Path, **times: str) -> AsyncIterator[Alertmanager]:
    """Runs the example, its receivers on loopback. `times`: such as group_wait, everywhere."""
    received = Received()
    port = free_port()
    async with _chat_and_pager(received) as url, _mail_server(received) as smtp_port:
        file = folder / "alertmanager.yml"
        file.write_text(yaml.safe_dump(_example(url, smtp_port, times)))
        command: Sequence[str] = (
            program("prometheus-alertmanager"),
            f"--config.file={file}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.external-url=http://alertmanager.example.org",
            "--cluster.listen-address=",
        )
        async with running(*command):
            it = Alertmanager(port, received)
            await until(it.ready)
            yield it

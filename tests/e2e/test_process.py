"""The real process against replicas that behave badly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
from pathlib import Path

import trustme
from aiohttp import web

from exporter import __version__
from exporter.settings import TargetGroup
from tests.support import servers
from tests.support.process import Process, started
from tests.support.programs import until
from tests.support.servers import http_server, raw_server, text_handler, vllm_routes

LISTEN = ("--web.listen-address", "127.0.0.1:0")
QUICK = ("--poll.interval", "1s", "--poll.timeout", "700ms", "--poll.stale-after", "3s")


def run(command: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(command), *arguments], capture_output=True, text=True, check=False, cwd="/"
    )


def test_version_and_wrong_usage(exporter: Path) -> None:
    assert run(exporter, "--version").stdout == f"lora-exporter {__version__}\n"
    assert run(exporter, "serve", "--nonsense").returncode == 2
    wrong = run(exporter, "serve", "--poll.interval", "often")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("flag --poll.interval: poll.interval: found 'often'")


def test_check(exporter: Path) -> None:
    settings = Path(__file__).parents[1] / "settings"
    good = run(exporter, "check", str(settings / "good.yml"))
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("good, 2 groups and 3 targets\n")
    same = run(exporter, "check", "--config.file", str(settings / "good.yml"))
    assert (same.returncode, same.stdout) == (good.returncode, good.stdout)
    bad = run(exporter, "check", str(settings / "bad" / "bad_addresses.yml"))
    assert bad.returncode == 1
    assert len(bad.stderr.splitlines()) == 4


def test_an_address_that_is_taken(exporter: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(exporter, "serve", "--web.listen-address", f"127.0.0.1:{port}")
    assert result.returncode == 1
    assert "address already in use" in result.stderr.lower()
    assert "Traceback" not in result.stderr


async def redirects(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": str(request.url)})


async def test_bad_replicas_and_good_ones(exporter: Path) -> None:
    """After each kind of bad replica the good ones are served on time, and the reason is right."""
    ca = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("replica.example.org").configure_cert(tls)
    bomb = text_handler(servers.gzip_bomb(), Content_Encoding="gzip")
    raw: dict[str, servers.Raw] = {
        "timeout": servers.headers_then_nothing,
        "connect": servers.dies_in_mid_body,
        "too_large": servers.endless_body,
    }
    routes: dict[str, dict[str, servers.Handler]] = {
        "too_large": {"/metrics/": bomb, "/metrics": bomb},
        "unsupported": {"/metrics": text_handler("<html>hello</html>")},
        "auth": {"/metrics": text_handler("", 401), "/metrics/": text_handler("", 401)},
        "status": {"/metrics": redirects, "/metrics/": redirects},
        "format": {"/metrics": text_handler("[]"), "/metrics/": text_handler("[]")},
    }
    async with contextlib.AsyncExitStack() as stack:
        expected: dict[str, str] = {}
        auto: list[str] = []
        vllm: list[str] = []
        for reason, serve in raw.items():
            url = await stack.enter_async_context(raw_server(serve))
            expected[url] = reason
            vllm.append(url)
        for reason, handlers in routes.items():
            url = await stack.enter_async_context(http_server(handlers))
            expected[url] = reason
            (auto if reason == "unsupported" else vllm).append(url)
        url = await stack.enter_async_context(http_server(vllm_routes(), tls))
        expected[url] = "tls"
        auto.append(url)
        good = [await stack.enter_async_context(http_server(vllm_routes())) for _ in range(2)]
        groups = (
            f'[{{"name":"bad","engine":"vllm","static":{_json(vllm)}}},'
            f'{{"name":"auto","static":{_json(auto + good)}}}]'
        )
        process = await stack.enter_async_context(
            started(exporter, "serve", *LISTEN, *QUICK, LORA_EXPORTER_TARGETS=groups)
        )
        for target, reason in expected.items():
            series = f'lora_target_failure{{target="{target}",reason="{reason}"}}'
            await process.sample_is(series, "1")
        before = [await polls(process, url) for url in good]
        for url, count in zip(good, before, strict=True):
            assert await process.sample(f'lora_target_up{{target="{url}",group="auto"}}') == "1"

            async def more(url: str = url, count: float = count) -> bool:
                return await polls(process, url) > count

            await until(more)
        failures = 'lora_exporter_poll_failures_total{engine="vllm",reason="too_large"}'
        assert float(await process.sample(failures) or 0) >= 2
        # Two scrapes at once, while bad replicas are being asked.
        one, two = await asyncio.gather(process.text("/metrics"), process.text("/metrics"))
        assert one.count("lora_target_up{") == two.count("lora_target_up{") == len(expected) + 2
        assert (await process.ends())[0] == 0
    assert process.other == []
    assert not [line for line in process.log if "error" in line]


async def polls(process: Process, url: str) -> float:
    return float(await process.sample(f'lora_target_polls_total{{target="{url}"}}') or 0)


def _json(urls: list[str]) -> str:
    return "[" + ",".join(f'"{url}"' for url in urls) + "]"


async def test_sigterm_ends_quickly_while_replicas_hang(exporter: Path) -> None:
    async with (
        raw_server(servers.never_answers) as url,
        started(exporter, "serve", *LISTEN, "--target", url) as process,
    ):
        await process.address()
        status, seconds = await process.ends()
    assert status == 0
    assert seconds < 2
    assert [line["msg"] for line in process.log][-1] == "lora-exporter stops"


async def test_a_file_is_reloaded_and_a_bad_one_is_not(exporter: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    async with http_server(vllm_routes()) as one, http_server(vllm_routes()) as two:
        web_section = "web: {enable_lifecycle: true}\n"
        file.write_text(f"{web_section}targets: [{{name: g, static: ['{one}']}}]\n")
        async with started(
            exporter, "serve", "--config.file", str(file), *LISTEN, *QUICK
        ) as process:
            await process.sample_is(f'lora_target_up{{target="{one}",group="g"}}', "1")
            file.write_text(f"{web_section}targets: [{{name: g, statics: ['{two}']}}]\n")
            async with process.session.post(await process.address() + "/-/reload") as response:
                assert response.status == 400
                assert await response.text() == (
                    f"{file}:2: targets.0.statics: found an unknown key; wanted one of "
                    f"{', '.join(TargetGroup.model_fields)}\n"
                )
            assert await process.sample("lora_exporter_config_last_reload_successful") == "0.0"
            assert await process.sample(f'lora_target_up{{target="{one}",group="g"}}') == "1"
            file.write_text(f"{web_section}targets: [{{name: g, static: ['{two}']}}]\n")
            async with process.session.post(await process.address() + "/-/reload") as response:
                assert response.status == 200
            await process.sample_is(f'lora_target_up{{target="{two}",group="g"}}', "1")
            assert one not in await process.text("/metrics")


async def test_capacity_prints_the_table_and_json(exporter: Path) -> None:
    async with http_server(vllm_routes()) as url:
        for arguments, wanted in (((), "down: connect"), (("--json",), '"reason": "connect"')):
            command = ["capacity", "--target", url, "--target", "http://127.0.0.1:1", *arguments]
            result = await asyncio.to_thread(run, exporter, *command)
            assert result.returncode == 0
            assert wanted in result.stdout
            assert "base" in result.stdout
    nothing = run(exporter, "capacity")
    assert (nothing.returncode, nothing.stdout) == (1, "")


async def test_secrets_are_not_in_the_log(exporter: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("very-secret")
    group = (
        f'[{{"name":"g","engine":"vllm","static":["http://127.0.0.1:1"],'
        f'"auth":{{"bearer_token_file":"{token}"}}}}]'
    )
    async with started(
        exporter, "serve", *LISTEN, "--log.level", "debug", LORA_EXPORTER_TARGETS=group
    ) as process:
        await process.logged("target is down")
        everything = await process.text("/metrics") + await process.text("/")
        await process.ends()
    assert "very-secret" not in str(process.log) + everything

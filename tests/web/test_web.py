"""The HTTP surface of a running service, asked over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.catalogue import FAMILIES
from exporter.documents import ConfigError, Problem
from exporter.engines import ENGINES
from exporter.fleet import Reason
from exporter.settings import Poll, Settings
from exporter.web.metrics import accepts_gzip
from tests.support import servers
from tests.support.programs import free_port, until
from tests.support.servers import http_server, raw_server, text_handler, vllm_routes, vllm_text
from tests.support.service import Client, serving, settings

PROMETHEUS_ACCEPT = (
    "application/openmetrics-text;version=1.0.0;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


async def test_metrics_in_both_formats() -> None:
    async with http_server(vllm_routes()) as url, serving(settings(url)) as client:
        await client.ready()
        async with client.session.get(client.address + "/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = await response.text()
        headers = {"Accept": PROMETHEUS_ACCEPT}
        async with client.session.get(client.address + "/metrics", headers=headers) as response:
            assert response.headers["Content-Type"].startswith("application/openmetrics-text")
            openmetrics = await response.text()
    assert text.endswith("\n")
    assert "# EOF" not in text
    assert openmetrics.endswith("\n# EOF\n")
    names = {sample.name for family in parse_text(text) for sample in family.samples}
    # The library has no types here.
    families = parse_openmetrics(openmetrics)  # type: ignore[no-untyped-call]
    names_too = {sample.name for family in families for sample in family.samples}
    assert names == names_too
    ours = {name for name in names if name.startswith("lora_")}
    assert ours <= FAMILIES.keys()
    assert {"lora_max", "lora_exporter_build_info", "process_cpu_seconds_total"} <= names


async def test_every_reason_of_failure_exists_from_the_start() -> None:
    async with serving(settings()) as client:
        for engine in ("auto", "vllm", "twinkle"):
            for reason in Reason:
                series = "lora_exporter_poll_failures_total"
                value = await client.sample(f'{series}{{engine="{engine}",reason="{reason}"}}')
                assert value == "0.0"


async def test_metrics_are_compressed_when_asked() -> None:
    async with serving(settings()) as client:
        for encoding, packed in (("gzip", True), ("gzip;q=0", False), ("identity", False)):
            headers = {"Accept-Encoding": encoding}
            async with client.session.get(client.address + "/metrics", headers=headers) as response:
                assert (response.headers.get("Content-Encoding") == "gzip") is packed
                assert "lora_exporter_build_info" in await response.text()


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("", False),
        ("br", False),
    ],
)
def test_who_accepts_gzip(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


async def test_a_head_request_has_the_length_and_no_body() -> None:
    async with serving(settings()) as client:
        headers = {"Accept-Encoding": "identity"}
        async with client.session.head(client.address + "/metrics", headers=headers) as response:
            assert response.status == 200
            assert int(response.headers["Content-Length"]) > 1000
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert (await client.get("/-/healthy"))[0] == 200


async def test_health_does_not_depend_on_targets() -> None:
    slow = Poll(interval="30s", timeout="10s", stale_after="60s")
    async with (
        raw_server(servers.never_answers) as url,
        serving(settings(url, poll=slow)) as client,
    ):
        assert (await client.get("/-/healthy"))[0] == 200
        status, text = await client.get("/-/ready")
        assert (status, text) == (503, "lora-exporter waits for the first polls.\n")


async def test_ready_once_each_target_was_polled_whatever_came_of_it() -> None:
    async with serving(settings(f"http://127.0.0.1:{free_port()}")) as client:
        await client.ready()


async def test_a_table_outlives_its_replica_and_then_vanishes() -> None:
    poll = Poll(interval="100ms", timeout="100ms", stale_after="600ms")
    async with contextlib.AsyncExitStack() as stack:
        replica = await stack.enter_async_context(contextlib.AsyncExitStack())
        url = await replica.enter_async_context(http_server(vllm_routes()))
        client = await stack.enter_async_context(serving(settings(url, poll=poll)))
        await client.ready()
        name = f"{os.uname().nodename}:{url.rpartition(':')[2]}"
        slots = f'lora_max{{model="base",replica_id="{name}",slot_kind="evictable"}}'
        assert await client.sample(slots) == "4"
        await replica.aclose()
        failure = f'lora_target_failure{{target="{url}",reason="connect"}}'

        async def is_down() -> bool:
            return await client.sample(failure) == "1"

        async def is_gone() -> bool:
            return await client.sample(slots) is None

        await until(is_down)
        await until(is_gone)
        assert await client.sample(f'lora_target_up{{target="{url}",group="g"}}') == "0"


async def test_the_page_shows_the_fleet_and_escapes_names() -> None:
    hostile = vllm_text(model="<script>alert(1)</script>")
    async with (
        http_server(vllm_routes(hostile)) as good,
        serving(settings(good, f"http://127.0.0.1:{free_port()}")) as client,
    ):
        await client.ready()
        status, text = await client.get("/")
        async with client.session.get(client.address) as response:
            headers = response.headers
    assert status == 200
    assert "LoRA capacity exporter" in text
    assert 'href="/metrics"' in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "down: connect" in text
    assert "1 of 2 targets up" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


async def test_unknown_paths_and_methods() -> None:
    async with serving(settings()) as client:
        assert (await client.get("/nothing"))[0] == 404
        assert (await client.post("/metrics"))[0] == 405


async def test_reload_is_off_unless_switched_on() -> None:
    async with serving(settings()) as client:
        status, text = await client.post("/-/reload")
    assert status == 403
    assert "web.enable_lifecycle" in text


class Reloadable:
    """Settings that change between loads."""

    def __init__(self, *loads: Settings | ConfigError) -> None:
        self._loads = list(loads)

    def __call__(self) -> Settings:
        loaded = self._loads.pop(0)
        if isinstance(loaded, ConfigError):
            raise loaded
        return loaded


BAD = ConfigError([Problem("f.yml:3", "poll.interval", "10", "a duration")])


async def test_a_reload_swaps_the_targets() -> None:
    async with http_server(vllm_routes()) as one, http_server(vllm_routes()) as two:
        load = Reloadable(settings(two, lifecycle=True))
        async with serving(settings(one, lifecycle=True), load) as client:
            await client.ready()
            assert await client.post("/-/reload") == (200, "Reloaded.\n")
            series = f'lora_target_up{{target="{two}",group="g"}}'

            async def is_polled() -> bool:
                return await client.sample(series) == "1"

            await until(is_polled)
            _, text = await client.get("/metrics")
            assert (await client.get("/-/ready"))[0] == 200, "targets that come do not change that"
    assert one not in text


async def test_a_bad_reload_changes_nothing_and_is_told() -> None:
    async with http_server(vllm_routes()) as url:
        first = settings(url, lifecycle=True)
        async with serving(first, Reloadable(BAD, first)) as client:
            await client.ready()
            successful = "lora_exporter_config_last_reload_successful"
            assert await client.sample(successful) == "1.0"
            status, text = await client.post("/-/reload")
            assert (status, text) == (400, f"{BAD}\n")
            assert await client.sample(successful) == "0.0"
            assert await client.sample(f'lora_target_up{{target="{url}",group="g"}}') == "1"
            assert (await client.post("/-/reload"))[0] == 200
            assert await client.sample(successful) == "1.0"


async def test_a_reload_that_would_need_a_restart_is_refused_whole() -> None:
    async with http_server(vllm_routes()) as one, http_server(vllm_routes()) as two:
        moved = settings(two, lifecycle=True)
        moved = moved.model_copy(
            update={"web": moved.web.model_copy(update={"listen_address": ":1"})}
        )
        async with serving(settings(one, lifecycle=True), lambda: moved) as client:
            await client.ready()
            assert await client.post("/-/reload") == (
                400,
                "settings: web.listen_address: found another value than at the start; wanted a "
                "restart\n",
            )
            assert await client.sample(f'lora_target_up{{target="{one}",group="g"}}') == "1"


async def test_a_table_that_wants_credentials_in_part_says_so() -> None:
    routes = {**vllm_routes(), "/v1/models": text_handler("", 401)}
    async with http_server(routes) as url, serving(settings(url)) as client:
        await client.ready()
        _, page = await client.get("/")
        assert await client.sample(f'lora_target_up{{target="{url}",group="g"}}') == "1"
    assert "GET /v1/models: HTTP 401, credentials are missing or wrong" in page


async def test_sighup_reloads_and_a_bad_file_does_not_end_the_service() -> None:
    async with serving(settings(), Reloadable(BAD, settings())) as client:
        successful = "lora_exporter_config_last_reload_successful"
        for expected in ("0.0", "1.0"):
            os.kill(os.getpid(), signal.SIGHUP)

            async def is_so(value: str = expected) -> bool:
                return await client.sample(successful) == value

            await until(is_so)


async def test_a_certificate_that_is_none_is_refused_on_reload(tmp_path: Path) -> None:
    junk = tmp_path / "ca.pem"
    junk.write_text("junk")
    group = {"name": "g", "static": ["https://127.0.0.1:1"], "tls": {"ca_file": str(junk)}}
    bad = Settings(web={"enable_lifecycle": True, "listen_address": "127.0.0.1:0"}, targets=[group])
    async with serving(settings(lifecycle=True), lambda: bad) as client:
        status, text = await client.post("/-/reload")
    assert status == 400
    assert "wanted certificates and keys in PEM form" in text


async def probe(client: Client, url: str, query: str = "", **headers: str) -> tuple[int, str]:
    return await client.get(f"/probe?target={url}{query}", **headers)


async def test_a_configured_target_may_be_probed() -> None:
    async with http_server(vllm_routes()) as url, serving(settings(url)) as client:
        status, text = await probe(client, url)
        assert (await probe(client, url.removeprefix("http://")))[0] == 200
    assert status == 200
    assert f'lora_target_up{{target="{url}",group="g"}} 1' in text
    assert "lora_max{" in text
    # Nobody counts polls of one reading on demand.
    assert "_polls_total" not in text
    assert "lora_exporter_" not in text


@pytest.mark.parametrize(
    ("allow", "status"),
    [((), 403), (("10.0.0.0/8",), 403), (("127.0.0.0/8",), 200), (("example.org",), 403)],
)
async def test_other_targets_need_to_be_allowed(allow: tuple[str, ...], status: int) -> None:
    async with http_server(vllm_routes()) as url, serving(settings(allow=allow)) as client:
        assert (await probe(client, url))[0] == status


@pytest.mark.parametrize(
    ("allow", "host", "status"),
    [
        (("localhost",), "localhost", 200),
        (("*.localhost",), "a.localhost", 200),
        (("*.localhost",), "localhost", 403),
        (("127.0.0.0/8",), "localhost", 403),
        (("localhost",), "127.0.0.1", 403),
        (("localhost",), "LOCALHOST.", 200),
    ],
)
async def test_names_are_allowed_as_names(allow: tuple[str, ...], host: str, status: int) -> None:
    async with serving(settings(allow=allow)) as client:
        assert (await probe(client, f"http://{host}:{free_port()}"))[0] == status


@pytest.mark.parametrize(
    "query",
    ["", "target=", "target=ftp://x", "target=http://u:p@127.0.0.1", "target=http://h:99999"],
)
async def test_probes_that_name_no_target(query: str) -> None:
    async with serving(settings(allow=("127.0.0.0/8",))) as client:
        status, text = await client.get(f"/probe?{query}")
    assert status == 400
    assert text.startswith("target: wanted")
    assert "u:p" not in text


async def test_a_probe_of_an_unknown_engine() -> None:
    async with serving(settings(allow=("127.0.0.0/8",))) as client:
        status, text = await probe(client, "http://127.0.0.1:1", "&engine=x")
    assert (status, text) == (400, f"engine: wanted one of auto, {', '.join(ENGINES)}\n")


async def test_a_mapping_cannot_be_asked_for_where_there_is_none() -> None:
    async with serving(settings(allow=("127.0.0.0/8",))) as client:
        status, text = await probe(client, "http://127.0.0.1:1", "&engine=custom")
    assert status == 200
    assert 'lora_target_failure{target="http://127.0.0.1:1",reason="unsupported"} 1' in text


async def test_a_probe_ends_before_the_scrape_does() -> None:
    slow = Poll(interval="60s", timeout="30s", stale_after="120s")
    first = settings(poll=slow, allow=("127.0.0.0/8",))
    async with raw_server(servers.never_answers) as url, serving(first) as client:
        async with asyncio.timeout(5):
            status, text = await probe(client, url, X_Prometheus_Scrape_Timeout_Seconds="0.8")
        assert status == 200
        assert f'lora_target_failure{{target="{url}",reason="timeout"}} 1' in text
        for bad in ("x", "-1", "inf", "nan", "0"):
            status, _ = await probe(client, url, X_Prometheus_Scrape_Timeout_Seconds=bad)
            assert status == 400


async def test_probes_are_bounded() -> None:
    one_at_a_time = Poll(interval="60s", timeout="30s", stale_after="120s", concurrency=1)
    first = settings(poll=one_at_a_time, allow=("127.0.0.0/8",))
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await servers.read_head(reader)
        asked.set()
        await reader.read()
        writer.close()

    async with raw_server(silent) as url, serving(first) as client:
        under_way = asyncio.create_task(probe(client, url))
        await asked.wait()
        refused = await probe(client, "http://127.0.0.1:1")
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
    assert refused == (503, "Too many probes are under way.\n")


async def test_debug_shows_what_was_fetched_and_masks_secrets(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("the-token")
    routes = {
        **vllm_routes(),
        "/v1/models": text_handler('{"data":[{"id":"a","parent":"b","root":"/secret/path"}]}'),
    }
    async with http_server(routes) as url:
        group = {"name": "g", "static": [url], "auth": {"bearer_token_file": str(token)}}
        first = Settings(web={"listen_address": "127.0.0.1:0"}, targets=[group])
        async with serving(first) as client:
            status, text = await probe(client, url, "&debug=true")
    assert status == 200
    assert f"target: {url}" in text
    assert "vllm:lora_requests_info{" in text
    assert "/v1/models -> HTTP 200" in text
    assert "    max: 4" in text
    assert "lora_free{" in text
    assert "the-token" not in text
    assert "/secret/path" not in text


async def test_debug_of_a_state_store_shows_no_row(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(
        '{"model::session_x-a": {"value": {"token": "owner-token", "session_id": "session_x",'
        '"replica_id": "r", "user_metadata": {"adapter_name": "a"}}, "expire_at": null}}'
    )
    async with http_server({"/api/v1/twinkle/healthz": text_handler("{}")}) as url:
        group = {
            "name": "g",
            "engine": "twinkle",
            "static": [url],
            "state": {"url": f"file://{state}"},
        }
        first = Settings(web={"listen_address": "127.0.0.1:0"}, targets=[group])
        async with serving(first) as client:
            status, text = await probe(client, url, "&debug=true")
            page = (await client.get("/"))[1] + (await client.get("/metrics"))[1]
    assert status == 200
    assert 'adapter="a"' in text
    for secret in ("owner-token", "session_x", str(state)):
        assert secret not in text + page

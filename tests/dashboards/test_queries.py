"""Every query, asked of a real Prometheus that scrapes the demo twice, like two exporters."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from exporter.demo.cast import TRAINING, VLLM_REPLICAS
from exporter.demo.mixed import OTHERS
from tests.dashboards.boards import BOARDS, UIDS, Query, filled, queries
from tests.support.process import started
from tests.support.programs import free_port, listens, program, running, until
from tests.support.servers import http_server, text_handler

TIMES = {"__rate_interval": "10s", "__range": "30s", "__interval": "2s"}
REPLICAS = len(VLLM_REPLICAS) + len(TRAINING.live) + sum(len(other.replicas) for other in OTHERS)
RULE = {
    "alert": "LoraTest",
    "expr": "max by (model) (lora_free) >= 0",
    "labels": {"severity": "info"},
}


@dataclass(frozen=True, slots=True)
class Prometheus:
    """Answers as Grafana gets them."""

    session: aiohttp.ClientSession
    url: str
    since: float

    async def ready(self) -> bool:
        async with self.session.get(f"{self.url}/-/ready") as response:
            return response.status == 200

    async def answer(self, path: str, **parameters: str) -> Any:
        """The data; a refused query fails the test with Prometheus's message."""
        async with self.session.get(f"{self.url}/api/v1/{path}", params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", (parameters, answer["error"])
        return answer["data"]

    async def series(self, expr: str, *, instant: bool) -> list[dict[str, Any]]:
        """Series of the expression now, or since the start."""
        if instant:
            return list((await self.answer("query", query=expr))["result"])
        times = {"start": str(self.since), "end": str(time.time()), "step": "2"}
        return list((await self.answer("query_range", query=expr, **times))["result"])

    async def has(self, expr: str, seconds: float) -> None:
        """Waits until the expression gives something."""

        async def is_so() -> bool:
            return bool(await self.series(expr, instant=True))

        await until(is_so, seconds)

    async def numbers(self, expr: str) -> dict[str, float]:
        """Values by the first label."""
        return {
            next(iter(one["metric"].values()), ""): float(one["value"][1])
            for one in await self.series(filled(expr, **TIMES), instant=True)
        }


def _data(series: list[dict[str, Any]]) -> bool:
    """Whether any series has a number, and not only words that there is none."""
    values = [
        value
        for one in series
        if "note" not in one["metric"]
        for _, value in one.get("values") or [one["value"]]
    ]
    return any(value != "NaN" for value in values)


SILENT = """\
lora_target_up{target="http://gone:8000",group="gone"} 0
lora_target_failure{target="http://gone:8000",reason="connect"} 1
lora_target_last_success_timestamp_seconds{target="http://gone:8000"} 1e9
lora_exporter_discovery_failures_total{group="gone"} 3
lora_exporter_discovery_last_success_timestamp_seconds{group="gone"} 1e9
"""
"""What the demo does not have: a target that is down, and discovery."""


def _configuration(folder: Path, address: str, silent: str) -> Path:
    rules = folder / "rules.yml"
    rules.write_text(json.dumps({"groups": [{"name": "test", "rules": [RULE]}]}))
    scraped = {"one": address, "two": address, "silent": silent.removeprefix("http://")}
    jobs = [
        {"job_name": name, "static_configs": [{"targets": [target]}]}
        for name, target in scraped.items()
    ]
    timing = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    file = folder / "prometheus.yml"
    # JSON is YAML.
    file.write_text(
        json.dumps({"global": timing, "rule_files": [str(rules)], "scrape_configs": jobs})
    )
    return file


async def _options(prometheus: Prometheus, variable: Mapping[str, Any]) -> set[str]:
    """What a variable offers, asked as Grafana asks it."""
    query = filled(variable["definition"])
    if found := re.fullmatch(r"label_values\((.+), (\w+)\)", query):
        return set(await prometheus.answer(f"label/{found[2]}/values", **{"match[]": found[1]}))
    found = re.fullmatch(r"query_result\((.+)\)", query)
    assert found, query
    options = set()
    for one in await prometheus.series(found[1], instant=True):
        text = ",".join(f'{name}="{value}"' for name, value in one["metric"].items())
        option = re.search(variable["regex"].strip("/"), f"{{{text}}}")
        assert option, text
        options.add(option[1])
    return options


async def _without_data(prometheus: Prometheus, query: Query) -> bool:
    return not _data(await prometheus.series(query.asked(**TIMES), instant=query.instant))


def _query(where: str) -> str:
    return next(query.expr for query in queries() if query.where == where)


@pytest.mark.parametrize(
    ("series", "is_data"),
    [
        ([], False),
        ([{"metric": {"note": "nothing"}, "value": [0, "-1"]}], False),
        ([{"metric": {}, "values": [[0, "NaN"]]}], False),
        ([{"metric": {}, "values": [[0, "NaN"], [1, "0"]]}], True),
    ],
)
def test_words_are_no_data(series: list[dict[str, Any]], is_data: bool) -> None:
    assert _data(series) is is_data


@pytest.mark.timeout(200)
async def test_every_query_gives_data_and_doubles_nothing(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    port = free_port()
    exporter = Path(sys.executable).with_name("lora-exporter")
    async with (
        started(exporter, "demo", "--web.listen-address", listen, log=False) as demo,
        http_server({"/metrics": text_handler(SILENT)}) as silent,
        running(
            program("prometheus"),
            f"--config.file={_configuration(tmp_path, listen, silent)}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ),
    ):
        prometheus = Prometheus(demo.session, f"http://127.0.0.1:{port}", time.time())
        await until(lambda: listens(port))
        await until(prometheus.ready)
        short = "lora_model_needed_replicas > lora_model_current_replicas"
        # one replica names its first holder late, and slots are out for more than a minute
        await prometheus.has(f"{short} and on (model) lora_waiting > 2", 100)
        await prometheus.has("count(lora_replica_orphans) == 4", 100)

        empty = {q.where for q in queries() if await _without_data(prometheus, q)}
        assert empty == set(), "these are empty boxes"

        for uid in UIDS:
            for variable in BOARDS[uid]["templating"]["list"][1:]:
                assert await _options(prometheus, variable), variable["name"]

            for annotation in BOARDS[uid]["annotations"]["list"]:
                # that Prometheus takes it is all: nothing restarts here
                await prometheus.series(filled(annotation["expr"], **TIMES), instant=False)

        # two exporters on one fleet are not added up
        free = filled(_query("lora-fleet: Free slots: A"), **TIMES)
        one = 'sum by (slot_kind) (lora_free{job="one", slot_kind="evictable"})'
        await prometheus.has(f"({free}) == on (slot_kind) {one}", 20)
        known = await prometheus.numbers(_query("lora-replicas: Replicas that are known: A"))
        assert known == {"": REPLICAS}
        (out,) = await prometheus.series(
            filled(_query("lora-fleet: Out of slots now, and for how long: A")), instant=True
        )
        assert out["metric"]["model"] == "llama-3.1-8b"
        assert 0 < float(out["value"][1]) < 60
        steps = await prometheus.numbers(_query("lora-model: Next step: A"))
        assert steps["llama-3.1-8b"] == 6, "one more fits only where a lower class stops"

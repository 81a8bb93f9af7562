"""The shipped rules give the same totals however a fleet is read."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from tests.scale.fleet import (
    REPLICAS,
    TOTALS,
    Places,
    exporter,
    replicas,
)
from tests.support.programs import until
from tests.support.prometheus import Config, Labels, Prometheus, prometheus, shipped

ANYWHERE = "0.0.0.0"
"""Reaches this machine, and no exporter takes it for its own pod as it does 127.0.0.1."""

RULES = {
    "max": "model:lora_max:sum",
    "used": "model:lora_used:sum",
    "free": "model:lora_free:sum",
    "waiting": "model:lora_waiting:sum",
    "replicas": "model:lora_replicas_up:count",
}
NOT_ADDED = {"model:lora_free_after_loss:sum", "model:lora_used:ratio", "fleet:lora_used:ratio"}
ADDS_UP = re.compile(r"(?!model:lora_free_after_loss:|fleet:lora_replicas_down:).*:(sum|count)")
"""As docs/scale-out.md says of recorded names."""
WANTED = {model: asdict(total) for model, total in TOTALS.items()}


async def totals(servers: Iterable[Prometheus]) -> dict[str, dict[str, float]]:
    """What the rules recorded of each model, added up over the servers."""
    found: dict[str, dict[str, float]] = {}
    for server in servers:
        for what, rule in RULES.items():
            for labels, value in (await server.query(f"sum by (model) ({rule})")).items():
                of_model = found.setdefault(dict(labels)["model"], {})
                of_model[what] = of_model.get(what, 0) + value
    return found


async def are_right(*servers: Prometheus) -> None:
    """Waits until the totals are those of the fleet; says what they are where that never comes."""
    found: dict[str, dict[str, float]] = {}

    async def so() -> bool:
        nonlocal found
        found = await totals(servers)
        return found == WANTED

    with contextlib.suppress(TimeoutError):
        await until(so, 40)
    assert found == WANTED


def scrapes(*addresses: str) -> Config:
    """A server that scrapes these exporters and nothing else."""
    config = shipped("pair.yml")
    config["scrape_configs"][0]["static_configs"] = [{"targets": [*addresses]}]
    return config


async def recorded(server: Prometheus) -> dict[Labels, float]:
    """All that the rules make of one moment. `cluster` is left out, as Prometheus adds its external
    labels only where it sends."""
    over_time = "rate|_full:|demand|:max1[hw]|seconds_to_zero"
    found = await server.query(
        f'{{__name__=~"(replica|model|fleet|target):.*",__name__!~".*({over_time}).*"}}'
    )
    return {
        tuple(pair for pair in labels if pair[0] != "cluster"): found[labels] for labels in found
    }


async def record_the_same(one: Prometheus, other: Prometheus) -> None:
    """Waits until both recorded the same."""
    there: dict[Labels, float] = {}
    here: dict[Labels, float] = {}

    async def so() -> bool:
        nonlocal here, there
        here, there = await recorded(one), await recorded(other)
        return here == there

    with contextlib.suppress(TimeoutError):
        await until(so, 40)
    assert here == there
    names = {dict(labels)["__name__"] for labels in here}
    assert {*RULES.values(), "model:lora_current_replicas:max", "fleet:lora_used:ratio"} <= names


@contextlib.asynccontextmanager
async def two_exporters(urls: tuple[str, ...]) -> AsyncIterator[Places]:
    """Both watch the whole fleet."""
    places = Places.found()
    async with exporter(places.address(0), urls), exporter(places.address(1), urls):
        yield places


async def test_shards_add_up(tmp_path: Path) -> None:
    async with (
        replicas(ANYWHERE) as urls,
        two_exporters(urls) as places,
        prometheus(tmp_path / "one", scrapes(places.address(0))) as one,
        prometheus(tmp_path / "0", shipped("probe-shard.yml", places.shard(0))) as first,
        prometheus(tmp_path / "1", shipped("probe-shard.yml", places.shard(1))) as second,
    ):
        await are_right(one)
        await are_right(first, second)
        shares = [await totals([server]) for server in (first, second)]
        # Each has a part of each model, and asks both exporters for it.
        assert [set(share) for share in shares] == [set(TOTALS)] * 2
        for server in (first, second):
            probes = {url for url in await server.asked() if "/probe?" in url}
            assert {urlsplit(url).netloc for url in probes} == {
                places.address(0),
                places.address(1),
            }
        # Targets that both exporters list are scraped once, and each has its own `up`.
        ups = [await server.query('up{job="lora-probe"} == 1') for server in (first, second)]
        assert sorted(dict(labels)["instance"] for up in ups for labels in up) == sorted(urls)
        whole, parts = await recorded(one), [await recorded(server) for server in (first, second)]
        added = {labels: sum(part.get(labels, 0) for part in parts) for labels in whole}
        differ = {dict(labels)["__name__"] for labels in whole if added[labels] != whole[labels]}
        assert not {name for name in differ if ADDS_UP.fullmatch(name)}
        assert differ >= NOT_ADDED


async def test_shards_of_whole_models_record_what_one_does(tmp_path: Path) -> None:
    """Hashed by group: each model lies in one shard whole, with all its rules."""
    configs = [Config(), Config()]
    async with replicas(ANYWHERE) as urls, two_exporters(urls) as places:
        for number in (0, 1):
            parts = places.shard(number) | {
                "[__param_target], action: hashmod": "[__meta_lora_group], action: hashmod"
            }
            configs[number] = shipped("probe-shard.yml", parts)
        async with (
            prometheus(tmp_path / "one", scrapes(places.address(0))) as one,
            prometheus(tmp_path / "0", configs[0]) as first,
            prometheus(tmp_path / "1", configs[1]) as second,
        ):
            await are_right(one)
            await are_right(first, second)
            shares = [set(await totals([server])) for server in (first, second)]
            assert sorted(map(sorted, shares)) == [["chat"], ["tuner"]]
            for share, server in zip(shares, (first, second), strict=True):
                for rule in ("model:lora_free_after_loss:sum", "model:lora_used:ratio"):
                    wanted = f'{rule}{{model="{min(share)}"}}'
                    assert await server.query(wanted) == await one.query(wanted) != {}


async def test_pods_that_kubernetes_lists_are_probed_by_exporters_without_targets(
    tmp_path: Path,
) -> None:
    async with replicas(ANYWHERE) as urls:
        places = Places.found()
        pods = [
            {
                "targets": [url.removeprefix("http://")],
                "labels": {
                    "__meta_kubernetes_namespace": "prod",
                    "__meta_kubernetes_pod_name": replica.name,
                    "__meta_kubernetes_pod_node_name": "node-a",
                    "__meta_kubernetes_pod_phase": "Running",
                    "__meta_kubernetes_pod_container_port_name": port,
                    "__meta_kubernetes_pod_label_app_kubernetes_io_name": name,
                },
            }
            for replica, url in zip(REPLICAS, urls, strict=True)
            for port, name in (("http", "vllm"), ("grpc", "vllm"), ("http", "other"))
        ]
        configs = [
            shipped(
                "probe-kubernetes-shard.yml",
                {"exporter:10107": places.address(0), '"0"': f'"{number}"'},
                {"lora-probe": pods},
            )
            for number in (0, 1)
        ]
        async with (
            exporter(places.address(0), (), "--probe.allow", f"{ANYWHERE}/32"),
            prometheus(tmp_path / "0", configs[0]) as first,
            prometheus(tmp_path / "1", configs[1]) as second,
        ):
            await are_right(first, second)
            # The pod's own labels, not those that the exporter does not know.
            where = [
                await s.query("count by (namespace) (lora_replica_info)") for s in (first, second)
            ]
            assert [set(labels) for labels in where] == [{(("namespace", "prod"),)}] * 2
            for server in (first, second):
                assert await server.query('{__name__=~"lora_model_.*"}') == {}


async def test_sidecars_and_a_planner(tmp_path: Path) -> None:
    """Each sidecar sees one replica, the planner all of them, under other names."""
    async with replicas("127.0.0.1") as urls, contextlib.AsyncExitStack() as stack:
        places = Places.found()
        far = tuple(url.replace("127.0.0.1", ANYWHERE) for url in urls)
        await stack.enter_async_context(exporter(places.address(0), far))
        sidecars = [
            await stack.enter_async_context(
                exporter("127.0.0.1:0", (), "--target", url, pod=replica.name)
            )
            for replica, url in zip(REPLICAS, urls, strict=True)
        ]
        pods = []
        for replica, sidecar in zip(REPLICAS, sidecars, strict=True):
            address = (await sidecar.address()).removeprefix("http://")
            labels = {
                "__meta_kubernetes_namespace": "prod",
                "__meta_kubernetes_pod_name": replica.name,
                "__meta_kubernetes_pod_node_name": "node-a",
                "__meta_kubernetes_pod_phase": "Running",
                "__meta_kubernetes_pod_container_port_name": "lora-metrics",
            }
            pods.append({"targets": [address], "labels": labels})
        config = shipped("sidecars.yml", {"exporter-0:10107": places.address(0)}, {"lora": pods})
        server = await stack.enter_async_context(prometheus(tmp_path / "all", config))
        await are_right(server)
        await server.has('model:lora_current_replicas:max{model="chat"} == 4')
        # Still right when the planner's series are there too.
        await are_right(server)
        assert await server.query("count by (job) (up == 1)") == {(("job", "lora"),): 7}
        models = await server.query(
            'count by (instance) ({__name__=~"lora_model_.*",__name__!="lora_model_info"})'
        )
        assert {dict(labels)["instance"] for labels in models} == {places.address(0)}


async def test_two_exporters_on_one_fleet_count_once(tmp_path: Path) -> None:
    async with (
        replicas(ANYWHERE) as urls,
        two_exporters(urls) as places,
        prometheus(tmp_path / "one", scrapes(places.address(0))) as one,
        prometheus(tmp_path / "pair", shipped("pair.yml", places.pair())) as pair,
    ):
        await are_right(one)
        await pair.has("count(lora_max) == 12")
        await are_right(pair)
        await record_the_same(one, pair)


async def test_shards_write_to_a_central_server_that_records_what_one_does(tmp_path: Path) -> None:
    receiver = "--web.enable-remote-write-receiver"
    async with (
        replicas(ANYWHERE) as urls,
        two_exporters(urls) as places,
        prometheus(tmp_path / "one", scrapes(places.address(0))) as one,
        prometheus(tmp_path / "central", shipped("central.yml"), receiver) as central,
        contextlib.AsyncExitStack() as stack,
    ):
        # The first shard has a twin that scrapes the same, so that either may fail.
        senders = {"0": 0, "0-twin": 0, "1": 1}
        for name, number in senders.items():
            parts = places.shard(number) | {"http://central:9090": central.url}
            config = shipped("remote-write-shard.yml", parts)
            config["global"]["external_labels"]["shard"] = name
            await stack.enter_async_context(prometheus(tmp_path / name, config, agent=True))
        await are_right(one)
        await central.has('count(count by (shard) (lora_max{cluster="eu"})) == 3')
        await are_right(central)
        await record_the_same(one, central)
        # How LoraExporterDown misses exporters of which nothing arrives any more.
        await central.has('job:lora_remote_targets:count{job="lora"} > 0')

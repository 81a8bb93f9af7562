"""The text of plans: all of it for one situation, what vanishes, and who accepts it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace

import pytest

from exporter.catalogue.plans import PLAN_FAMILIES
from exporter.cluster import Cluster, States
from exporter.exposition.plans import render
from exporter.fleet import SlotKind
from exporter.planning.demand import Seen, Tokens
from exporter.planning.load import Load, Pool
from exporter.planning.needed import Measurement
from exporter.planning.overall import plan_all
from exporter.planning.situation import Situation, with_seen
from tests.exposition.expectation import parsed
from tests.planning.notation import cluster

CLUSTER = cluster(
    nodes="""
        a 4g 16m: batch-llm=2 chat=1
        b 2g 16m: embed=1 batch-llm=1
    """,
    cards="""
        chat gold 1g 2m owner=search max=9
        embed standard 1g
        batch-llm batch 1g 1m min=3
    """,
    quotas="search 6g 20m replicas=7",
)
BUSY = Load(ready=1, unread=1, pools=(Pool(SlotKind.EVICTABLE, 9, 2, 4),), full=True, distinct=8)
SITUATION = with_seen(
    Situation(CLUSTER, {"chat": Measurement("chat", 2400.0, profile="h100")}),
    {
        "chat": Seen(BUSY, Tokens(4000.5), Tokens(9000.0), warm=True, saturated=True),
        "undeclared": Seen(Load(ready=2), saturated=None),
    },
    at=100.0,
)


def series(of: Situation, whole_fleet: bool = True, openmetrics: bool = False) -> dict[str, float]:
    """Samples as they stand in the text, without the `lora_` that all begin with."""
    text = render(plan_all(of), whole_fleet)[openmetrics]
    found: dict[str, float] = {}
    for (name, labels), value in parsed(text, openmetrics).items():
        shown = ",".join(f"{key}={text}" for key, text in sorted(labels) if key != "model")
        model = dict(labels).get("model", "")
        found[f"{name.removeprefix('lora_')} {model} {shown}".strip()] = value
    return found


def of_model(samples: Mapping[str, float], model: str) -> dict[str, float]:
    return {
        name.replace(f" {model}", "").removeprefix("model_"): value
        for name, value in samples.items()
        if name.startswith("model_") and name.split(" ")[1] == model
    }


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_all_that_is_known_of_a_model(openmetrics: bool) -> None:
    chat = of_model(series(SITUATION, openmetrics=openmetrics), "chat")
    assert chat == {
        "info class=gold,owner=search": 1,
        "replicas state=ready": 1,
        "replicas state=unknown": 1,
        "current_replicas": 2,
        "needed_replicas": 4,
        "needed_replicas_by constraint=minimum": 0,
        "needed_replicas_by constraint=slots": 3,
        "needed_replicas_by constraint=throughput": 4,
        "saturated": 1,
        "distinct_adapters": 8,
        "headroom_replicas room=free": 1,
        "headroom_replicas room=preempting": 3,
        "fits": 1,
        "unplaced_replicas": 0,
        "would_preempt_replicas victim=batch-llm": 1,
        "observed_tokens_per_second": 4000.5,
        "measured_tokens_per_second profile=h100": 2400,
        "min_replicas": 0,
        "max_replicas": 9,
    }


def test_what_is_not_known_has_no_series() -> None:
    assert of_model(series(SITUATION), "undeclared") == {
        "info class=,owner=": 1,
        "replicas state=ready": 2,
        "replicas state=unknown": 0,
        "current_replicas": 2,
        "unplanned reason=no_card": 1,
        "unplanned reason=unmeasured": 1,
    }
    assert of_model(series(SITUATION), "batch-llm") == {
        "info class=batch,owner=": 1,
        "replicas state=ready": 0,
        "replicas state=unknown": 3,
        "current_replicas": 3,
        "needed_replicas_by constraint=minimum": 3,
        "headroom_replicas room=free": 1,
        "headroom_replicas room=preempting": 0,
        "min_replicas": 3,
        "unplanned reason=unmeasured": 1,
    }


def test_owners_and_nodes_in_base_units() -> None:
    samples = series(SITUATION)
    assert {name: value for name, value in samples.items() if name.startswith("owner")} == {
        "owner_quota  owner=search,resource=gpus,unit=integer": 6,
        "owner_quota  owner=search,resource=memory,unit=byte": 20 * 2**30,
        "owner_quota  owner=search,resource=replicas,unit=integer": 7,
        "owner_quota_used  owner=search,resource=gpus,unit=integer": 2,
        "owner_quota_used  owner=search,resource=memory,unit=byte": 4 * 2**30,
        "owner_quota_used  owner=search,resource=replicas,unit=integer": 2,
    }
    assert {name: value for name, value in samples.items() if name.startswith("node_free")} == {
        "node_free  node=a,resource=gpus,unit=integer": 1,
        "node_free  node=a,resource=memory,unit=byte": 12 * 2**30,
        "node_free  node=b,resource=gpus,unit=integer": 0,
        "node_free  node=b,resource=memory,unit=byte": 15 * 2**30,
    }
    assert samples["node_allocatable  node=b,resource=gpus,unit=integer"] == 2
    assert not any("resource=cores" in name for name in samples), "no node names cores"


def test_what_does_not_fit_says_what_blocks() -> None:
    scarce = replace(CLUSTER.cards["chat"], target=24_000.0)
    cards = {**CLUSTER.cards, "chat": scarce}
    chat = of_model(series(replace(SITUATION, cluster=replace(CLUSTER, cards=cards))), "chat")
    assert (chat["needed_replicas"], chat["fits"], chat["unplaced_replicas"]) == (10, 0, 4)
    assert chat["target_tokens_per_second"] == 24_000
    assert {name for name in chat if name.startswith("blocked")} == {
        "blocked reason=gpus",
        "blocked reason=quota",
    }
    assert chat["would_preempt_replicas victim=batch-llm"] == 3


def test_states_that_an_inventory_tells() -> None:
    inventory = CLUSTER.inventory
    assert inventory is not None
    states = {"chat": States(ready=1, starting=1, draining=2)}
    told = replace(CLUSTER, inventory=replace(inventory, states=states), current={"chat": 3})
    chat = of_model(series(replace(SITUATION, cluster=told)), "chat")
    assert {name: value for name, value in chat.items() if name.startswith("replicas")} == {
        "replicas state=ready": 1,
        "replicas state=starting": 1,
        "replicas state=draining": 2,
        "replicas state=unknown": 1,
    }


def test_beside_one_replica_of_many_only_the_info_is_told() -> None:
    assert {name.split(" ")[0] for name in series(SITUATION, whole_fleet=False)} == {"model_info"}


def test_a_model_that_is_gone_leaves_nothing() -> None:
    gone = with_seen(Situation(Cluster({}, None)), {}, 100.0)
    assert series(gone) == {}


def test_families_stand_in_the_catalogues_order_each_headed_once() -> None:
    text = render(plan_all(SITUATION), whole_fleet=True)[False].decode()
    headed = [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    order = [family.name for family in PLAN_FAMILIES]
    assert headed == [name for name in order if name in headed]
    told = {*headed, "lora_model_blocked", "lora_model_target_tokens_per_second"}
    assert told == set(order)


def test_promtool_accepts_the_text() -> None:
    text = render(plan_all(SITUATION), whole_fleet=True)[False]
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")

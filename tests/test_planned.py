"""Plans and target views from a file alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exporter.cluster import Unplanned
from exporter.documents import ConfigError
from exporter.loading import load, warnings
from exporter.measuring import all_in_force, read_measurements
from exporter.planned import WhatIf, plans, plans_json, situation, view, view_json
from exporter.planning.headroom import Headroom
from exporter.planning.plans import TargetError
from exporter.planning.whatif import WhatIfError
from exporter.settings import CardSettings
from tests.support.example import MEASURED, write_example


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_example(tmp_path)


def test_the_plan_of_the_worked_example(config: Path) -> None:
    found = json.loads(plans_json(plans(situation(config))))["models"]
    assert {
        model: (one["headroom"]["free"], one["headroom"]["preempting"], one["room"])
        for model, one in found.items()
    } == {"chat": (2, 4, 6), "embed": (2, 3, 5), "batch-llm": (2, 0, 2), "big": (0, 2, 2)}
    chat = found["chat"]
    assert (chat["current"], chat["needed"], chat["more"], chat["fits"]) == (1, 4, 3, True)
    assert (chat["preempts"], chat["preempted"]) == (["batch-llm"], {"batch-llm": 1})
    assert chat["stops"] == [
        {"model": "batch-llm", "node": "a", "count": 1, "keeps": 2, "below_min": True}
    ]
    assert (chat["blocked"], chat["unplanned"]) == ([], [])
    embed = found["embed"]
    assert (embed["needed"], embed["fits"], embed["unplanned"]) == (None, None, ["unmeasured"])


def test_what_would_be(config: Path) -> None:
    known = situation(config)
    more = plans(known, WhatIf(demand_factor=2.0)).planning.models["chat"]
    assert (more.needed, more.more, more.fits) == (8, 7, False)
    wider = plans(known, WhatIf(2.0, add_nodes=[("c", None, 2)])).planning.models["chat"]
    assert (wider.more, wider.fits, wider.headroom) == (7, True, Headroom(4, 4))
    smaller = plans(known, WhatIf(remove_nodes=["a"])).planning.models["chat"]
    assert (smaller.current, smaller.needed, smaller.more) == (0, 4, 4)
    assert smaller.headroom == Headroom(1, 2)
    for question in (WhatIf(remove_nodes=["x"]), WhatIf(add_nodes=[("x", None, 1)])):
        with pytest.raises(WhatIfError, match="no node 'x'; known: a, b, c"):
            plans(known, question)


def test_two_models_that_count_on_the_same_room(config: Path) -> None:
    text = config.read_text().replace("embed: {class: standard,", "embed: {class: standard, TARGET")
    config.write_text(text.replace("TARGET", "target_tokens_per_second: 1200,"))
    measurements = config.with_name("measurements.yml")
    measurements.write_text(MEASURED + "embed: [{tokens_per_second: 240}]\n")
    found = plans(situation(config))
    assert found.planning.models["chat"].fits
    assert found.planning.models["embed"].fits
    # chat's three take the two free GPUs and one of batch-llm; embed's four find two more of it.
    assert {m: n for m, n in found.planning.unplaced.items() if n} == {"embed": 2}
    assert dict(found.nodes) == {"a": 1, "b": 1, "c": 2}
    enough = plans(situation(config), WhatIf(add_nodes=[("c", None, 2)]))
    assert not any(enough.planning.unplaced.values())


def test_the_view_of_a_target_has_the_fields_of_the_api(config: Path) -> None:
    assert json.loads(view_json(view(situation(config), "chat", 14400.0))) == {
        "model": "chat",
        "tok_per_sec": 14400.0,
        "per_replica_tok_per_sec": 2400.0,
        "profile": "h100-chat",
        "needed": 6,
        "current": 1,
        "more": 5,
        "room": 5,
        "fits": True,
        "blocked": [],
        "preempts": ["batch-llm"],
        "preempted": {"batch-llm": 3},
        "stops": [
            {"model": "batch-llm", "node": "a", "count": 2, "keeps": 0, "below_min": True},
            {"model": "batch-llm", "node": "b", "count": 1, "keeps": 0, "below_min": True},
        ],
        "limited": True,
        "unplanned": [],
    }


def test_a_target_that_does_not_fit_says_what_blocks(config: Path) -> None:
    one = view(situation(config), "chat", 8 * 2400.0)
    assert (one.needed, one.more, one.room, one.fits) == (8, 7, 6, False)
    assert one.blocked == ("gpus",)
    assert one.preempted == {"batch-llm": 3, "embed": 1}


@pytest.mark.parametrize(
    ("model", "target", "status", "text"),
    [
        ("nothing", 1.0, 404, "no model 'nothing'; known: batch-llm, big, chat, embed"),
        ("chat", 0.0, 400, "tokens_per_sec: wanted a positive finite number"),
        ("chat", -1.0, 400, "tokens_per_sec: wanted a positive finite number"),
        ("chat", float("inf"), 400, "tokens_per_sec: wanted a positive finite number"),
        ("chat", float("nan"), 400, "tokens_per_sec: wanted a positive finite number"),
        ("embed", 1.0, 409, "model 'embed' was not measured"),
    ],
)
def test_targets_that_cannot_be_viewed(
    config: Path, model: str, target: float, status: int, text: str
) -> None:
    with pytest.raises(TargetError, match=text) as caught:
        view(situation(config), model, target)
    assert caught.value.status == status


def test_the_newest_measurement_is_in_force_unless_the_card_names_one(tmp_path: Path) -> None:
    file = tmp_path / "m.yml"
    file.write_text(
        "chat:\n"
        "  - {tokens_per_second: 1, profile: old, measured_at: 2026-01-01}\n"
        "  - {tokens_per_second: 2, profile: new, measured_at: 2026-03-01, tokens: total}\n"
        "  - {tokens_per_second: 3, profile: mid, measured_at: 2026-02-01, slo: {ttft: 1s}}\n"
    )
    found = read_measurements(file)
    newest = all_in_force(found, {}).get("chat")
    assert newest is not None
    assert (newest.profile, newest.tokens) == ("new", "total")
    named = all_in_force(found, {"chat": CardSettings(profile="old")}).get("chat")
    assert named is not None
    assert named.tokens_per_second == 1.0
    assert all_in_force(found, {"chat": CardSettings(profile="none")}) == {}


def test_every_mistake_in_a_file_of_measurements_is_told(tmp_path: Path) -> None:
    file = tmp_path / "m.yml"
    file.write_text("chat:\n  - {tokens_per_second: 0, token: total}\nembed: 5\n")
    with pytest.raises(ConfigError) as caught:
        read_measurements(file)
    assert str(caught.value).splitlines() == [
        f"{file}:2: chat.0.tokens_per_second: found 0; wanted greater than 0",
        f"{file}:2: chat.0.token: found an unknown key; wanted one of tokens_per_second, tokens, "
        "profile, slo, measured_at, how",
        f"{file}:3: embed: found 5; wanted a list",
    ]


def test_a_cluster_without_nodes_is_no_inventory(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text("models: {chat: {gpus: 1}}\n")
    found = plans(situation(file)).planning.models["chat"]
    assert (found.headroom, found.fits) == (None, None)
    assert found.unplanned == (Unplanned.UNMEASURED, Unplanned.NO_INVENTORY)


def test_what_is_probably_not_meant_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text(
        "owners: {nobody: {gpus: 1}}\n"
        "models: {huge: {gpus: 8, memory: 1GiB}, small: {gpus: 1, profile: fast}}\n"
        "inventory: {nodes: {a: {gpus: 4}}}\n"
    )
    assert list(warnings(load(file))) == [
        "models.small.profile: no measurement has it; those of the model: none",
        "owners.nobody: no model has this owner",
        "inventory.nodes: no node names memory, so it is not limited",
        "models.huge: no node could ever hold a replica",
    ]

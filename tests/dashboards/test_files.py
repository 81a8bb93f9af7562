"""The files: generated, valid, and as every dashboard has to be."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.generator.__main__ import main
from dashboards.generator.product import FOLDER, HOME
from tests.dashboards.boards import BOARDS, UIDS, all_panels, panels, queries


def test_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_check_tells_what_is_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = {HOME / "lora-fleet.json": "something else"}
    monkeypatch.setattr("dashboards.generator.__main__.made", lambda: stale)
    assert main(["--check"]) == 1
    assert "dashboards/lora-fleet.json: not current" in capsys.readouterr().err


@pytest.mark.parametrize("uid", UIDS)
def test_grafanas_types_read_and_write_the_same(uid: str) -> None:
    register_default_plugins()
    read = Dashboard.from_json(BOARDS[uid])
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == BOARDS[uid]


@pytest.mark.parametrize("uid", UIDS)
def test_head(uid: str) -> None:
    board = BOARDS[uid]
    assert board["uid"] == uid
    assert "id" not in board
    assert board["editable"] is False
    assert board["tags"] == ["lora-capacity"]
    (others,) = board["links"]
    assert (others["type"], others["tags"]) == ("dashboards", board["tags"])
    assert (others["keepTime"], others["includeVars"]) == (True, True)
    assert [a["name"] for a in board["annotations"]["list"]] == ["Alerts", "Replica restarts"]


@pytest.mark.parametrize("uid", UIDS)
def test_variables(uid: str) -> None:
    variables = BOARDS[uid]["templating"]["list"]
    names = [variable["name"] for variable in variables]
    # each is asked with the ones before it
    assert names[:3] == ["datasource", "owner", "model"]
    assert names[3:] in ([], ["replica"])
    for variable in variables[1:]:
        assert variable["multi"]
        assert variable["includeAll"]
        assert variable["current"]["value"] == ["$__all"]
        assert all(f"${later}" not in variable["definition"] for later in names[3:])
    assert '"$owner"' in variables[2]["definition"]
    # a value of its own for All would undo the choice of an owner
    assert "allValue" not in variables[2]


def _sources(value: Any) -> list[Any]:
    """Every data source that something in here names."""
    if isinstance(value, list):
        return [found for item in value for found in _sources(item)]
    if not isinstance(value, dict):
        return []
    found = [value["datasource"]] if "datasource" in value else []
    return found + [source for item in value.values() for source in _sources(item)]


@pytest.mark.parametrize("uid", UIDS)
def test_only_the_chosen_data_source_is_asked(uid: str) -> None:
    sources = _sources(BOARDS[uid])
    assert sources
    assert all(s == {"type": "prometheus", "uid": "${datasource}"} for s in sources)


@pytest.mark.parametrize("uid", UIDS)
def test_numbers_and_places(uid: str) -> None:
    rows = [panel for panel in BOARDS[uid]["panels"] if panel["type"] == "row"]
    every = [*rows, *panels(uid)]
    numbers = [panel["id"] for panel in every]
    assert len(set(numbers)) == len(numbers)
    places = {panel["title"]: panel["gridPos"] for panel in every}
    assert len(places) == len(every), "two panels have one title"
    for title, at in places.items():
        assert at["x"] + at["w"] <= 24, title
    for (one, a), (two, b) in combinations(places.items(), 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or above, f"{one} and {two} overlap"


@pytest.mark.parametrize(
    ("where", "panel"), list(all_panels()), ids=lambda v: v if isinstance(v, str) else "it"
)
def test_panel(where: str, panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"], where
    assert defaults["noValue"], f"{where} may be an empty box"
    assert defaults["thresholds"]["steps"], where
    if panel["type"] != "table":
        assert any(m["options"].get("match") == "null+nan" for m in defaults["mappings"]), where
    text, series = panel["description"].split("\n\n")
    assert text.endswith("."), where
    named = set(series.split(", "))
    asked = " ".join(target["expr"] for target in panel["targets"])
    assert named, where
    assert all(name in asked for name in named), where


@pytest.mark.parametrize(
    ("where", "panel"),
    [(where, panel) for where, panel in all_panels() if panel["type"] == "table"],
    ids=lambda v: v if isinstance(v, str) else "it",
)
def test_table(where: str, panel: dict[str, Any]) -> None:
    organize = panel["transformations"][-1]["options"]
    titles = list(organize["renameByName"].values())
    assert len(set(titles)) == len(titles), f"{where}: two columns have one title"
    overrides = [override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]]
    assert overrides == titles, where
    widths = [
        prop["value"]
        for override in panel["fieldConfig"]["overrides"]
        for prop in override["properties"]
        if prop["id"] == "custom.width"
    ]
    # a page of 1600 pixels has 65 for each of the 24 parts; what is wider is cut off. The words
    # that there is nothing stand there alone; a column without a width gets 150.
    others = len(titles) - len(widths) - 1
    assert sum(widths) + 150 * others <= panel["gridPos"]["w"] * 65 - 16, where
    sorted_by = [by["displayName"] for by in panel["options"].get("sortBy", [])]
    assert set(sorted_by) <= set(titles), where


def test_rates_keep_to_the_scrape_interval() -> None:
    for query in queries():
        for function in ("rate(", "increase("):
            for part in query.expr.split(function)[1:]:
                window = part.partition("[")[2].partition("]")[0]
                assert window in {"$__rate_interval", "$__range"}, query.where


def test_config_maps_hold_the_same_dashboards() -> None:
    text = (HOME / "kubernetes" / "configmaps.yaml").read_text()
    held: dict[str, Any] = {}
    for document in yaml.safe_load_all(text):
        assert document["kind"] == "ConfigMap"
        assert document["metadata"]["labels"]["grafana_dashboard"] == "1"
        held |= {name: json.loads(data) for name, data in document["data"].items()}
    assert held == {f"{uid}.json": board for uid, board in BOARDS.items()}


def test_provisioning_puts_the_dashboards_into_the_same_folder() -> None:
    folder = HOME / "provisioning"
    (provider,) = yaml.safe_load((folder / "dashboards" / "lora.yaml").read_text())["providers"]
    assert (provider["type"], provider["folder"]) == ("file", FOLDER)
    assert provider["options"]["path"] in (HOME / "README.md").read_text()
    sources = yaml.safe_load((folder / "datasources" / "lora.yaml").read_text())["datasources"]
    assert [source["type"] for source in sources] == ["prometheus"]
    text = (HOME / "kubernetes" / "configmaps.yaml").read_text()
    folders = {d["metadata"]["annotations"]["grafana_folder"] for d in yaml.safe_load_all(text)}
    assert folders == {FOLDER}


def test_the_readme_shows_each_dashboard() -> None:
    readme = (HOME / "README.md").read_text()
    for uid in UIDS:
        assert f"`{uid}`" in readme
        picture = f"../docs/dashboards/{uid.removeprefix('lora-')}.png"
        assert f"]({picture})" in readme
        assert (HOME / picture).stat().st_size < 350_000

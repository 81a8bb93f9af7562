"""A situation written to a file and read back, and mistakes in such a file."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.cluster import Inventory, Node, Resources, States
from exporter.documents import ConfigError, read_document
from exporter.files import write_atomically
from exporter.fleet import SlotKind
from exporter.inventory.static import declared
from exporter.planned import WhatIf, plans, situation
from exporter.planning.demand import Seen, Tokens
from exporter.planning.load import Load, Pool
from exporter.planning.needed import Measurement
from exporter.planning.situation import Situation, with_seen
from exporter.planning.whatif import WhatIfError
from exporter.settings import Settings
from exporter.snapshot import situation_of, take, validated, write

SETTINGS = Settings(
    classes={"gold": 100, "batch": 0},
    owners={"search": {"memory": "320GiB", "gpus": "2500m"}},
    models={
        "chat": {"class": "gold", "owner": "search", "memory": "40GiB", "gpus": 1, "reserve": 2},
        "batch-llm": {"class": "batch", "cores": "500m", "gpus": 1},
    },
)
INVENTORY = Inventory(
    (
        Node(
            "a",
            Resources(2**40 + 1, 96_500, 4000),
            {"chat": 1, "batch-llm": 2},
            Resources(5, 250, 0),
        ),
        Node("b", Resources(2**39, 8000, 2000)),
    ),
    frozenset({"memory", "cores", "gpus"}),
    {"chat": States(ready=1, starting=1, draining=1)},
)
SEEN = {
    "chat": Seen(
        Load(ready=1, pools=(Pool(SlotKind.EVICTABLE, 3, 2, 4),), full=False, distinct=4),
        Tokens(120.25, 400.0),
        Tokens(900.5, 2000.0),
        warm=True,
        saturated=False,
    ),
    "undeclared": Seen(Load(ready=2, unread=1, incomplete=True)),
}


def of(inventory: Inventory | None) -> Situation:
    known = Situation(
        declared(SETTINGS, inventory), {"chat": Measurement("chat", 300.0, profile="h100")}
    )
    return with_seen(known, SEEN, at=1_796_080_000.5)


@pytest.mark.parametrize("inventory", [INVENTORY, None], ids=["nodes", "no inventory"])
def test_what_is_written_is_read_back(inventory: Inventory | None, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yml"
    write(file, take(SETTINGS, of(inventory)))
    assert situation(file) == of(inventory)


def test_amounts_are_written_as_people_write_them(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yml"
    write(file, take(SETTINGS, of(INVENTORY)))
    text = file.read_text()
    for written in ("memory: 40GiB", "cores: 500m", "gpus: 2500m", "memory: 512GiB", "gpus: 4"):
        assert written in text


def test_a_snapshot_takes_questions_that_a_configuration_cannot(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yml"
    write(file, take(SETTINGS, of(INVENTORY)))
    now = plans(situation(file)).planning.models["chat"]
    assert (now.needed, now.needed_by) == (4, {"minimum": 0, "throughput": 4, "slots": 2})
    adapters = plans(situation(file), WhatIf(adapters_factor=4.0)).planning.models["chat"]
    assert adapters.needed_by["slots"] == 6  # 12 used, 8 waiting, 2 in reserve, 4 each
    demand = plans(situation(file), WhatIf(demand_factor=2.0)).planning.models["chat"]
    assert demand.needed_by["throughput"] == 7
    configuration = Situation(declared(SETTINGS, INVENTORY))
    with pytest.raises(WhatIfError, match="no adapters are known; plan a snapshot"):
        plans(configuration, WhatIf(adapters_factor=2.0))


def test_a_node_that_is_removed_takes_its_replicas_along() -> None:
    chat = plans(of(INVENTORY), WhatIf(remove_nodes=["a"])).planning.models["chat"]
    assert chat.current == 0
    assert chat.headroom is not None
    assert chat.headroom.free == 2


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yml"
    file.write_text(
        "snapshot: 2\n"
        "taken_at: 2026-12-01T00:00:00Z\n"
        "models: {chat: {memory: much}}\n"
        "seen:\n"
        "  chat: {load: {ready: few}}\n"
        "more: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        validated(read_document(file))
    assert str(caught.value).splitlines() == [
        f"{file}:1: snapshot: found 2; wanted 1",
        f"{file}:3: models.chat.memory: found 'much'; wanted an amount of memory, such as 40GiB, "
        "512Gi, 1.5TB, or bytes",
        f"{file}:5: seen.chat.load.ready: found 'few'; wanted a whole number",
        f"{file}:6: more: found an unknown key; wanted one of snapshot, taken_at, classes, "
        "owners, models, inventory, measurements, seen",
    ]


def test_a_class_that_is_not_declared_is_told(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yml"
    file.write_text("snapshot: 1\ntaken_at: 2026-12-01T00:00:00Z\nmodels: {chat: {class: gold}}\n")
    with pytest.raises(ConfigError, match="class 'gold'; wanted a class"):
        situation(file)


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "m.yml"
    write_atomically(file, "one\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    file.chmod(0o640)
    link = tmp_path / "link.yml"
    link.symlink_to(file)
    with file.open() as before:
        write_atomically(link, "two\n")
        assert before.read() == "one\n", "who reads meanwhile sees the old text whole"
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("two\n", 0o640)
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"link.yml", "m.yml"}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "m.yml"
    write_atomically(file, "one\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "two\n\udc80")
    assert (file.read_text(), list(tmp_path.iterdir())) == ("one\n", [file])


def test_situations_differ_when_something_does() -> None:
    assert of(INVENTORY) != replace(of(INVENTORY), at=0.0)
    assert situation_of(take(SETTINGS, of(None))).cluster.inventory is None

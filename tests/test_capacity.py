"""The table in a terminal: names and free slots are there whatever the width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from exporter.capacity import print_table
from exporter.current import CurrentFleet
from exporter.exposition.fleet import Exposition
from exporter.fleet import Reason
from tests.support.tables import asked, replica, target

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
DOWN = "http://vllm-llama.serving.svc.cluster.local:8000"


def printed(width: int) -> str:
    fleet = CurrentFleet(Exposition(0), 30.0, "here")
    fleet.add(target())
    fleet.add(target(DOWN))
    fleet.record("http://10.0.0.5:8000", asked(replica(model=MODEL, used=4, name="pod-0")), 0.0)
    fleet.record(DOWN, asked(reason=Reason.CONNECT), 0.0)
    out = io.StringIO()
    print_table(fleet.snapshot(7.0), Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_names_and_free_slots_are_there_whatever_the_width(width: int) -> None:
    text = printed(width)
    header = text.splitlines()[0].split()
    assert header[:2] == ["Model", "Replica"]
    assert "Free" in header
    assert "pod-0" in text
    folded = "".join(line[: line.find("pod-0")] for line in text.splitlines() if "pod-0" in line)
    assert MODEL.startswith(folded.strip())


def test_a_wide_table_has_all_columns() -> None:
    lines = printed(160).splitlines()
    header = "Model Replica Engine Slot kind State Max Used Free In use Waiting Age"
    assert lines[0].split() == header.split(" ")
    full = next(line for line in lines if "pod-0" in line)
    assert full.split()[-6:] == ["4", "0", "100", "%", "?", "7s"]
    assert f"{DOWN}: why" in lines


def test_a_narrow_table_leaves_out_what_matters_less() -> None:
    assert " ".join(printed(60).split("\n")[0].split()) == "Model Replica State Max Used Free"
    assert " ".join(printed(40).split("\n")[0].split()) == "Model Replica State Free"

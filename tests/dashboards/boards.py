"""The dashboards as committed: their panels, queries and variables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dashboards.generator.product import HOME

UIDS = ("lora-fleet", "lora-model", "lora-replicas", "lora-planning")
BOARDS: Mapping[str, dict[str, Any]] = {
    uid: json.loads((HOME / f"{uid}.json").read_text()) for uid in UIDS
}


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, as Grafana asks it."""

    where: str
    """Dashboard, panel and letter."""
    expr: str
    legend: str
    instant: bool

    def asked(self, **values: str) -> str:
        """The expression with Grafana's variables filled in."""
        return filled(self.expr, **values)


def filled(expr: str, **values: str) -> str:
    """The expression with Grafana's variables filled in: All, and these times."""
    times = {"__rate_interval": "1m", "__range": "1h", "__interval": "1m", **values}
    for name, value in {"model": ".+", "replica": ".*", "owner": ".*", **times}.items():
        expr = expr.replace(f"${name}", value)
    assert "$" not in expr.replace('"$1', ""), expr
    return expr


def panels(uid: str) -> list[dict[str, Any]]:
    """All panels but rows, those inside folded rows too."""
    found: list[dict[str, Any]] = []
    for panel in BOARDS[uid]["panels"]:
        inner = panel.get("panels", [])
        found += inner if panel["type"] == "row" else [panel]
    return found


def all_panels() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every panel, with the dashboard's uid and the title for messages."""
    for uid in UIDS:
        for panel in panels(uid):
            yield f"{uid}: {panel['title']}", panel


def queries() -> Iterator[Query]:
    """Every query of every panel."""
    for where, panel in all_panels():
        for target in panel["targets"]:
            name = f"{where}: {target['refId']}"
            yield Query(name, target["expr"], target["legendFormat"], target["instant"])

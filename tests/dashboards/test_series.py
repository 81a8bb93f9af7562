"""Every series and label that the dashboards use exists, and is added up only where it may be."""

from __future__ import annotations

import re
from collections.abc import Iterator

import promql_parser as p
import pytest

from exporter.catalogue import FAMILIES
from tests.dashboards.boards import BOARDS, UIDS, Query, all_panels, filled, queries
from tests.dashboards.labels import PROMETHEUS, LabelError, grouping, labels_of, operation

LEFT_OUT = {
    "lora_resident": "experimental: no released engine tells it",
}
"""Series of the catalogue that no panel shows, and why."""
SLOTS = {"lora_max", "lora_used", "lora_free"}


def _parsed(query: Query) -> p.Expr:
    return p.parse(query.asked())


def _inside(expr: p.Expr) -> list[p.Expr]:
    """The expression and all in it."""
    found: list[p.Expr] = []
    p.walk(expr, found.append)
    return found


def _read(expr: p.Expr) -> set[str]:
    return {str(part.name) for part in _inside(expr) if isinstance(part, p.VectorSelector)}


def _annotations() -> Iterator[tuple[str, str, str]]:
    for uid in UIDS:
        for annotation in BOARDS[uid]["annotations"]["list"]:
            words = annotation["titleFormat"] + annotation["textFormat"]
            yield f"{uid}: {annotation['name']}", annotation["expr"], words


@pytest.mark.parametrize("query", list(queries()), ids=lambda query: query.where)
def test_series_and_labels_exist(query: Query) -> None:
    has = labels_of(_parsed(query))
    assert has is not None
    named = set(re.findall(r"{{(\w+)}}", query.legend))
    assert named <= has, f"the legend names {named - has}"


@pytest.mark.parametrize(("where", "expr", "words"), list(_annotations()))
def test_annotations_name_what_exists(where: str, expr: str, words: str) -> None:
    has = labels_of(p.parse(filled(expr)))
    assert has is not None, where
    assert set(re.findall(r"{{(\w+)}}", words)) <= has


def test_columns_are_labels_or_values() -> None:
    for where, panel in all_panels():
        if panel["type"] != "table":
            continue
        targets = panel["targets"]
        has = {f"Value #{t['refId']}" if len(targets) > 1 else "Value" for t in targets} | {"note"}
        for target in targets:
            has |= labels_of(p.parse(filled(target["expr"]))) or set()
        columns = panel["transformations"][-1]["options"]["renameByName"]
        assert set(columns) <= has, f"{where}: {set(columns) - has}"


def test_each_series_is_shown_or_left_out_for_a_reason() -> None:
    shown = set().union(*(_read(_parsed(query)) for query in queries()))
    assert shown >= set(PROMETHEUS), "a series of Prometheus that nothing reads"
    assert set(FAMILIES) - shown == set(LEFT_OUT)


def test_descriptions_end_with_the_series() -> None:
    for where, panel in all_panels():
        read = set().union(*(_read(p.parse(filled(t["expr"]))) for t in panel["targets"]))
        assert set(panel["description"].split("\n\n")[-1].split(", ")) == read, where


def _bare(expr: p.Expr) -> p.VectorSelector | None:
    """The series that an expression reads without reducing it."""
    while not isinstance(expr, p.VectorSelector):
        if isinstance(expr, p.ParenExpr | p.SubqueryExpr):
            expr = expr.expr
        elif isinstance(expr, p.MatrixSelector):
            expr = expr.vector_selector
        elif isinstance(expr, p.Call) and expr.args and expr.func.name != "label_replace":
            expr = expr.args[0]
        elif isinstance(expr, p.BinaryExpr):
            return _bare(expr.lhs) or _bare(expr.rhs)
        else:
            return None
    return expr


def wrong_sums(expr: p.Expr) -> list[str]:
    """Sums that add up two exporters' word on one thing, or slots of two kinds."""
    wrong = []
    for part in _inside(expr):
        if not isinstance(part, p.AggregateExpr) or operation(part) not in {"sum", "avg"}:
            continue
        if _read(part.expr) & SLOTS and "slot_kind" not in grouping(part):
            wrong.append(part.prettify())
        if _bare(part.expr) and "instance" not in grouping(part):
            wrong.append(part.prettify())
    return wrong


@pytest.mark.parametrize("query", list(queries()), ids=lambda query: query.where)
def test_nothing_is_added_up_that_must_not_be(query: Query) -> None:
    assert wrong_sums(_parsed(query)) == []


@pytest.mark.parametrize(
    "expr",
    [
        "sum by (model) (lora_waiting)",
        "sum(max by (model, replica_id, slot_kind) (lora_free))",
        "sum by (model, slot_kind) (lora_max - lora_used)",
    ],
)
def test_wrong_sums_are_found(expr: str) -> None:
    assert wrong_sums(p.parse(expr))


@pytest.mark.parametrize(
    "expr",
    [
        "lora_maximum",
        'lora_max{slotkind="exclusive"}',
        "max by (owner) (lora_max)",
        "max by (model) (lora_max) - max by (model, slot_kind) (lora_used)",
        "lora_max * on (model, adapter) lora_waiting",
        'label_replace(lora_max, "a", "$1", "adapter", "(.*)")',
    ],
)
def test_wrong_labels_are_found(expr: str) -> None:
    with pytest.raises(LabelError):
        labels_of(p.parse(expr))

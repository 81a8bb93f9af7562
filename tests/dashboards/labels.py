"""Which labels the result of a PromQL expression has, worked out from the catalogue."""

from __future__ import annotations

import promql_parser as p

from exporter.catalogue import FAMILIES

SCRAPED = frozenset({"job", "instance"})
"""Labels that Prometheus gives to all that it scrapes."""
ALERT = frozenset({"alertname", "severity", "model", "replica_id"})
"""Labels of alerts that the dashboards may show."""
PROMETHEUS = {
    "ALERTS": ALERT | {"alertstate"},
    "ALERTS_FOR_STATE": ALERT,
    "scrape_duration_seconds": SCRAPED,
    "scrape_samples_scraped": SCRAPED,
    "process_cpu_seconds_total": SCRAPED,
    "process_resident_memory_bytes": SCRAPED,
}
"""Series that are not the exporter's own."""
_MANY_TO_MANY = {"and", "or", "unless"}


class LabelError(Exception):
    """An expression names a series or label that cannot be there."""


def labels_of(expr: p.Expr) -> frozenset[str] | None:
    """Labels of the result; None for a scalar. Raises LabelError."""
    match expr:
        case p.NumberLiteral() | p.StringLiteral():
            return None
        case p.VectorSelector():
            return _selected(expr)
        case p.MatrixSelector():
            return labels_of(expr.vector_selector)
        case p.ParenExpr() | p.SubqueryExpr() | p.UnaryExpr():
            return labels_of(expr.expr)
        case p.AggregateExpr():
            return _aggregated(expr)
        case p.BinaryExpr():
            return _joined(expr)
        case p.Call():
            return _called(expr)
    raise LabelError(f"unknown expression {expr}")


def operation(expr: p.AggregateExpr | p.BinaryExpr) -> str:
    """The name of what an expression does."""
    return str(expr.op)


def grouping(expr: p.AggregateExpr) -> frozenset[str]:
    """The labels of `by`."""
    return frozenset(expr.modifier.labels if expr.modifier else ())


def _selected(expr: p.VectorSelector) -> frozenset[str]:
    name = str(expr.name)
    if name in PROMETHEUS:
        has = PROMETHEUS[name]
    elif name in FAMILIES:
        has = SCRAPED | set(FAMILIES[name].labels)
    else:
        raise LabelError(f"no series {name}")
    _within({matcher.name for matcher in expr.matchers.matchers}, has, name)
    return frozenset(has)


def _aggregated(expr: p.AggregateExpr) -> frozenset[str]:
    has = labels_of(expr.expr)
    if has is None:
        raise LabelError(f"a scalar is aggregated in {expr.prettify()}")
    by = grouping(expr)
    _within(by, has, expr.prettify())
    return has if operation(expr) in {"topk", "bottomk"} else by


def _joined(expr: p.BinaryExpr) -> frozenset[str] | None:
    left, right = labels_of(expr.lhs), labels_of(expr.rhs)
    if left is None or right is None:
        return right if left is None else left
    matching = expr.modifier.matching if expr.modifier else None
    if matching is None:
        left_key, right_key = left, right
    elif matching.type == p.LabelModifierType.Include:
        left_key = right_key = frozenset(matching.labels)
        _within(left_key, left & right, expr.prettify())
    else:
        left_key, right_key = left - set(matching.labels), right - set(matching.labels)
    if left_key != right_key and operation(expr) != "or":
        raise LabelError(f"{set(left)} never matches {set(right)} in {expr.prettify()}")
    if operation(expr) in _MANY_TO_MANY:
        return left | right if operation(expr) == "or" else left
    card = str(expr.modifier.card) if expr.modifier else ""
    more = frozenset((expr.modifier.group_labels if expr.modifier else None) or ())
    if "ManyToOne" in card:
        return left | more
    if "OneToMany" in card:
        return right | more
    return left_key


def _called(expr: p.Call) -> frozenset[str] | None:
    name = expr.func.name
    if name == "time":
        return None
    if name in {"label_replace", "label_join"}:
        has = labels_of(expr.args[0]) or frozenset()
        made = str(expr.args[1].val)
        read = expr.args[3:4] if name == "label_replace" else expr.args[3:]
        sources = {str(source.val) for source in read} - {"", made}
        _within(sources, has, expr.prettify())
        return has | {made}
    return labels_of(expr.args[0])


def _within(named: set[str] | frozenset[str], has: frozenset[str], where: str) -> None:
    if not named <= has:
        raise LabelError(f"no labels {sorted(named - has)} in {where}")

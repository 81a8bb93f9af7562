"""Which labels an expression's result has, and what is wrong with the expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import promql_parser

SET_OPERATORS = ("and", "or", "unless")
COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
TARGET_LABELS = frozenset({"job", "instance"})
"""What Prometheus adds to all that it scrapes."""
_KEEPING = ("topk", "bottomk")


def nodes(node: Any) -> Iterator[Any]:
    """The node and all below it."""
    yield node
    for child in _children(node):
        yield from nodes(child)


def _children(node: Any) -> Iterator[Any]:
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        child = getattr(node, name, None)
        if child is not None:
            yield child
    args = getattr(node, "args", None)
    if args is not None:
        yield from args


def kind(node: Any) -> str:
    """The node's type, such as BinaryExpr."""
    return type(node).__name__


@dataclass
class Checker:
    """Infers labels from those of the series, and collects problems."""

    series: dict[str, frozenset[str]]
    """Labels of each series, scraped or recorded."""
    unique: dict[str, frozenset[str]]
    """Series of which there is one for each combination of these labels, whatever others say."""
    added: frozenset[str]
    """Aggregation labels: every series may have them."""
    problems: list[str] = field(default_factory=list)

    def labels(self, expression: str) -> frozenset[str]:
        """The labels of the result."""
        return self._labels(promql_parser.parse(expression))

    def _labels(self, node: Any) -> frozenset[str]:
        match kind(node):
            case "VectorSelector":
                return self._selector(node)
            case "MatrixSelector":
                return self._labels(node.vector_selector)
            case "AggregateExpr":
                return self._aggregate(node)
            case "BinaryExpr":
                return self._binary(node)
            case "Call":
                return self._call(node)
            case "NumberLiteral" | "StringLiteral":
                return frozenset()
            case _:
                return self._labels(node.expr)

    def _selector(self, node: Any) -> frozenset[str]:
        if node.name not in self.series:
            self.problems.append(f"{node.name} is no series")
            return frozenset()
        has = self.series[node.name] | self.added
        for matcher in node.matchers.matchers:
            if matcher.name not in has:
                self.problems.append(f"{node.name} has no label {matcher.name}")
        return has

    def _aggregate(self, node: Any) -> frozenset[str]:
        inner = self._labels(node.expr)
        if any(kind(n) == "BinaryExpr" and str(n.op) == "/" for n in nodes(node.expr)):
            self.problems.append(f"divides inside an aggregation: {node}")
        by = frozenset(node.modifier.labels) if node.modifier else frozenset()
        if not by <= inner:
            self.problems.append(f"groups by {sorted(by - inner)}, which it has not: {node}")
        return inner if str(node.op) in _KEEPING else by

    def _call(self, node: Any) -> frozenset[str]:
        name = node.func.name
        if name == "absent_over_time":
            self._labels(node.args[0])
            matchers = node.args[0].vector_selector.matchers.matchers
            return frozenset(m.name for m in matchers if m.op == promql_parser.MatchOp.Equal)
        if not len(node.args):
            return frozenset()
        labels = self._labels(node.args[0])
        return labels | {node.args[1].val} if name == "label_replace" else labels

    def _binary(self, node: Any) -> frozenset[str]:
        left, right = self._labels(node.lhs), self._labels(node.rhs)
        operator = str(node.op)
        if _scalar(node.lhs) or _scalar(node.rhs):
            return left | right
        matching = node.modifier.matching if node.modifier else None
        on = frozenset(matching.labels) if matching is not None else None
        for side in (left, right):
            if on is not None and not on - self.added - {"instance"} <= side:
                self.problems.append(f"matches on {sorted(on - side)}, which a side lacks: {node}")
        if operator in SET_OPERATORS:
            if on is None and operator != "or" and left != right:
                self.problems.append(f"sides with other labels never match: {node}")
            return left | right if operator == "or" else left
        return self._arithmetic(node, left, right, on)

    def _arithmetic(
        self, node: Any, left: frozenset[str], right: frozenset[str], on: frozenset[str] | None
    ) -> frozenset[str]:
        if on is None:
            if left != right:
                self.problems.append(f"sides with other labels never match: {node}")
            elif left >= TARGET_LABELS and "AggregateExpr" not in map(kind, nodes(node)):
                self.problems.append(f"two exporters would be matched one by one: {node}")
            return left
        group = frozenset(node.modifier.group_labels or ())
        many = "ManyToOne" in str(node.modifier.card)
        self._is_one(node, node.rhs, right, on)
        if not many:
            self._is_one(node, node.lhs, left, on)
            return on
        return left | group

    def _is_one(self, node: Any, side: Any, labels: frozenset[str], on: frozenset[str]) -> None:
        """That no two rows of this side can have the same `on` labels."""
        names = [n.name for n in nodes(side) if kind(n) == "VectorSelector"]
        alone = frozenset().union(*(self.unique.get(name, labels) for name in names))
        renamed = {"victim"} & labels
        if not (labels <= on or alone <= on or (renamed and alone - {"model"} <= on)):
            self.problems.append(f"may match many rows, by {sorted(labels - on)}: {node}")


def _scalar(node: Any) -> bool:
    if kind(node) == "NumberLiteral":
        return True
    if kind(node) == "Call":
        return str(node.func.name) in ("time", "scalar")
    if kind(node) in ("ParenExpr", "UnaryExpr"):
        return _scalar(node.expr)
    return kind(node) == "BinaryExpr" and _scalar(node.lhs) and _scalar(node.rhs)

"""What can be told of the rules without running them."""

from __future__ import annotations

import re
from functools import cache

import promql_parser
import pytest

from alerts.generator.promql import CARD
from alerts.generator.rules import Alert, Branch, Clause, Either, Recording
from exporter.catalogue import FAMILIES
from tests.alerts.promql import COMPARISONS, SET_OPERATORS, TARGET_LABELS, Checker, kind, nodes
from tests.alerts.rules_files import alerts, inputs, recorded

FOREIGN = {"up": frozenset[str]()}
UNIQUE = {
    CARD: frozenset({*inputs().aggregation_labels, "model"}),
    "replica:lora_replica_info:topk": frozenset(
        {*inputs().aggregation_labels, "model", "replica_id"}
    ),
}
BY_NAME = {rule.name: rule for rule in recorded()}


def checker() -> Checker:
    scraped = {name: frozenset(family.labels) for name, family in FAMILIES.items()} | FOREIGN
    series = {name: labels | TARGET_LABELS for name, labels in scraped.items()}
    return Checker(series, UNIQUE, frozenset(inputs().aggregation_labels))


@cache
def known() -> Checker:
    """With the labels of the recording rules, in the order in which they are evaluated."""
    found = checker()
    for rule in recorded():
        found.series[rule.name] = found.labels(rule.expr())
    assert not found.problems
    return found


def problems(expression: str) -> list[str]:
    """What the checker says of one expression."""
    fresh = Checker(known().series, known().unique, known().added)
    fresh.labels(expression)
    return fresh.problems


def test_recording_rules_use_series_and_labels_that_there_are() -> None:
    known()


@pytest.mark.parametrize("alert", alerts().values(), ids=alerts())
def test_alerts_use_series_and_labels_that_there_are(alert: Alert) -> None:
    assert not problems(alert.expr())


@pytest.mark.parametrize("alert", alerts().values(), ids=alerts())
def test_alerts_compare(alert: Alert) -> None:
    for branch in alert.expression.branches:
        parsed = promql_parser.parse(str(Either((branch,), alert.expression.wrap)))
        assert any(kind(n) == "BinaryExpr" and str(n.op) in COMPARISONS for n in nodes(parsed))


@pytest.mark.parametrize("alert", alerts().values(), ids=alerts())
def test_labels_of_the_text_are_those_of_the_result(alert: Alert) -> None:
    has = known().labels(alert.expr())
    text = alert.summary + alert.description + alert.dashboard
    used = set(re.findall(r"\$labels\.(\w+)", text))
    assert used <= has
    assert "{{" not in alert.summary
    assert alert.dashboard.count("$labels") == alert.dashboard.count("| urlquery }}")


@pytest.mark.parametrize(
    "alert", [one for one in alerts().values() if one.room], ids=lambda a: a.name
)
def test_texts_ask_for_series_and_labels_that_there_are(alert: Alert) -> None:
    assert "model" in known().labels(alert.expr())
    queries = re.findall(r"printf `([^`]*)`", alert.room)
    assert len(queries) == 4
    for query in queries:
        assert not problems(query.replace("%q", '"x"'))


@pytest.mark.parametrize("alert", alerts().values(), ids=alerts())
def test_alerts_on_models_tell_class_and_owner(alert: Alert) -> None:
    has = known().labels(alert.expr())
    if "model" in has:
        assert {"class", "owner"} <= has


def parts(expression: Either) -> list[str]:
    """Values and conditions, which tests leave out one by one."""
    return [
        part
        for branch in expression.branches
        for part in (
            branch.value,
            *(re.sub(r"^on \([^)]*\) ", "", clause.expression) for clause in branch.clauses),
        )
    ]


@pytest.mark.parametrize("rule", [*alerts().values(), *recorded()], ids=lambda rule: rule.name)
def test_no_condition_hides_in_another(rule: Alert | Recording) -> None:
    allowed = {"model:lora_used:ratio", "model:lora_free_after_loss:sum", "fleet:lora_used:ratio"}
    for part in parts(rule.expression):
        hidden = [
            str(n.op)
            for n in nodes(promql_parser.parse(part))
            if kind(n) == "BinaryExpr" and str(n.op) in SET_OPERATORS
        ]
        assert not hidden or (rule.name in allowed and hidden == ["and"]), part


def test_names_of_recording_rules_have_three_parts() -> None:
    for name in BY_NAME:
        assert re.fullmatch(r"(replica|model|fleet|target|job):lora_\w+:[a-z0-9_]+", name), name
    assert len(BY_NAME) == len(recorded())


def test_alerts_are_named_alike() -> None:
    for name, alert in alerts().items():
        assert re.fullmatch(r"Lora([A-Z][a-z]+)+", name)
        assert len(name) <= 28
        assert alert.summary.endswith(".")
        assert alert.description.endswith(".")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("lora_fre == 0", "is no series"),
        ('lora_free{pool="a"} == 0', "has no label pool"),
        ("max by (adapter) (lora_free)", "groups by"),
        ("sum(lora_used / lora_max)", "divides inside"),
        ("lora_max - lora_used", "two exporters"),
        ("max by (model) (lora_max) * on (model) group_left (owner) lora_model_info", "many rows"),
        ("max by (model) (lora_max) and on (adapter) lora_free", "a side lacks"),
        ("max by (model) (lora_max) unless max by (target) (lora_target_up)", "never match"),
    ],
)
def test_the_lint_finds(expression: str, problem: str) -> None:
    assert problem in "\n".join(problems(expression))


def test_a_mutant_is_made_of_each_part() -> None:
    both = Either((Branch("a", (Clause("and", "b"), Clause("unless", "c"))), Branch("d")))
    assert [" ".join(str(mutant).split()) for mutant in both.mutants()] == [
        "d",
        "( a unless c ) or d",
        "( a and b ) or d",
        "a and b unless c",
    ]

"""What a rule is: a value and the conditions on it, apart, so that tests can leave each one out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from alerts.generator.inputs import AlertLimits, Inputs, Severity
from alerts.generator.promql import Scope, indent
from alerts.generator.room import room

L = TypeVar("L", bound=AlertLimits)


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition: `and on (...) x`, or `unless on (...) x`."""

    operator: str
    expression: str

    def __str__(self) -> str:
        first, *rest = self.expression.splitlines()
        return "\n".join((f"{self.operator} {first}", *(f"  {line}" for line in rest)))


@dataclass(frozen=True, slots=True)
class Branch:
    """A value, and what must hold for it to count."""

    value: str
    clauses: tuple[Clause, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.value, *(str(clause) for clause in self.clauses)))

    def without_each(self) -> list[Branch]:
        """This branch without one clause, for each of them."""
        return [
            replace(self, clauses=self.clauses[:n] + self.clauses[n + 1 :])
            for n in range(len(self.clauses))
        ]


@dataclass(frozen=True, slots=True)
class Either:
    """Branches joined by `or`."""

    branches: tuple[Branch, ...]
    wrap: str = "{}"
    """Goes around the branches, such as an aggregation of them."""

    def __str__(self) -> str:
        inner = str(self.branches[0])
        if len(self.branches) > 1:
            inner = "\nor\n".join(
                f"(\n{indent(str(branch))}\n)" if "\n" in str(branch) else str(branch)
                for branch in self.branches
            )
        if self.wrap == "{}":
            return inner
        if "\n" in inner:
            before, after = self.wrap.split("{}")
            return f"{before.rstrip()}\n{indent(inner)}\n{after}"
        return self.wrap.replace("{}", inner)

    def mutants(self) -> list[Either]:
        """Each version that lacks one clause or one branch."""
        found = []
        for n, branch in enumerate(self.branches):
            before, after = self.branches[:n], self.branches[n + 1 :]
            if before or after:
                found.append(replace(self, branches=before + after))
            found += [
                replace(self, branches=(*before, less, *after)) for less in branch.without_each()
            ]
        return found


def one(value: str, *clauses: Clause, wrap: str = "{}") -> Either:
    """A single branch."""
    return Either((Branch(value, clauses),), wrap)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording rule."""

    name: str
    expression: Either

    def expr(self) -> str:
        """The whole expression."""
        return str(self.expression)


def record(name: str, value: str, *clauses: Clause, wrap: str = "{}") -> Recording:
    """A recording rule with one branch."""
    return Recording(name, one(value, *clauses, wrap=wrap))


@dataclass(frozen=True, slots=True)
class Alert:
    """An alerting rule."""

    name: str
    severity: Severity
    for_: str
    keep_firing_for: str
    expression: Either
    summary: str
    """A constant sentence."""
    description: str
    dashboard: str
    """Below the dashboards' base address."""
    scope: Scope
    card: bool = True
    """Whether class and owner are added, for which the value needs a label `model`."""
    room: str = ""
    """A template that follows the description."""

    def expr(self) -> str:
        """The whole expression."""
        inner = str(self.expression)
        return self.scope.with_card(inner) if self.card else inner


@dataclass(frozen=True, slots=True)
class Context:
    """What an alert is built from."""

    inputs: Inputs
    scope: Scope

    def model(self) -> str:
        """Text that names the model."""
        return self.scope.named()


@dataclass(frozen=True, slots=True)
class Text:
    """An alert's text, and the view that its link opens."""

    summary: str
    description: str
    dashboard: str


@dataclass(frozen=True, slots=True)
class Definition(Generic[L]):
    """An alert as its module defines it."""

    name: str
    limits: type[L]
    expression: Callable[[Context, L], Either]
    text: Callable[[Context, L], Text]
    card: bool = True
    room: bool = False
    """Whether the text goes on with how many more replicas fit."""

    def build(self, inputs: Inputs) -> Alert:
        """The alert with the numbers of the inputs."""
        limits = inputs.limits(self.name, self.limits)
        scope = Scope.of(inputs)
        context = Context(inputs, scope)
        text = self.text(context, limits)
        return Alert(
            name=self.name,
            severity=limits.severity,
            for_=limits.for_.value,
            keep_firing_for=(limits.keep_firing_for or inputs.common.keep_firing_for).value,
            expression=self.expression(context, limits),
            summary=text.summary,
            description=text.description,
            dashboard=text.dashboard,
            scope=scope,
            card=self.card,
            room=room(inputs) if self.room else "",
        )

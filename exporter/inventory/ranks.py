"""Ranks of classes, which with a Kubernetes cluster are the values of its PriorityClasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from exporter.cluster import Priority
from exporter.settings import ClassRank, ClassSettings


def rank_of(one: ClassRank, priorities: Mapping[str, Priority] | None) -> tuple[int | None, bool]:
    """The rank of a class, and whether it stops others at all.

    A class whose PriorityClass is not there has no rank: it stops none, and none of it are stopped.
    """
    if isinstance(one, int):
        return one, True
    if priorities is None:
        return one.rank, True
    found = priorities.get(one.priority_class)
    return (found.value, found.preempts) if found is not None else (None, True)


@dataclass(frozen=True, slots=True)
class Mistakes:
    """What is wrong between classes and PriorityClasses."""

    missing: tuple[str, ...]
    """Classes whose PriorityClass is not there."""
    order: tuple[tuple[str, str], ...]
    """Pairs of classes whose ranks say another order than the values of their PriorityClasses."""


def mistakes(
    classes: Mapping[str, ClassRank], priorities: Mapping[str, Priority] | None
) -> Mistakes | None:
    """What is wrong; None where no PriorityClasses are known."""
    if priorities is None:
        return None
    named = [(name, one) for name, one in classes.items() if isinstance(one, ClassSettings)]
    known = [
        (name, one.rank, priorities[one.priority_class].value)
        for name, one in named
        if one.rank is not None and one.priority_class in priorities
    ]
    return Mistakes(
        tuple(name for name, one in named if one.priority_class not in priorities),
        tuple(
            (one, other)
            for (one, rank, value), (other, its_rank, its_value) in combinations(known, 2)
            if (rank > its_rank) - (rank < its_rank) != (value > its_value) - (value < its_value)
        ),
    )

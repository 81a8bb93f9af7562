"""Words stand for every value that the exporter may tell."""

from __future__ import annotations

import re

from grafana_foundation_sdk.models.dashboard import ValueMap, ValueMapping

from dashboards.generator import promql, words
from dashboards.generator.model import REASONS
from exporter.cluster import Blocked, Unplanned
from exporter.fleet import AdapterState


def _values(mappings: list[ValueMapping]) -> set[str]:
    (mapping,) = mappings
    assert isinstance(mapping, ValueMap)
    return set(mapping.options)


def test_each_reason_has_words() -> None:
    assert set(REASONS) == {*Blocked, *Unplanned}


def test_each_state_of_an_adapter_has_a_number_and_words() -> None:
    assert set(promql.STATES) == set(AdapterState)
    assert _values(words.STATE) == {str(number) for number in promql.STATES.values()}


def test_the_first_state_that_holds_is_asked_first() -> None:
    assert list(promql.STATES) == list(AdapterState)


def test_each_next_step_has_words() -> None:
    numbers = re.findall(r"\) \+ (\d)", promql.next_step())
    assert sorted(numbers, reverse=True) == numbers, "the most urgent comes first"
    assert set(numbers) == _values(words.NEXT_STEP)

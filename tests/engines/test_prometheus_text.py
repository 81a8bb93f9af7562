"""The finder of samples, against the parser of Prometheus's own Python client."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from exporter.engines.prometheus_text import (
    Finder,
    Sample,
    declared,
    has_family_prefix,
    total,
)
from exporter.engines.vllm import WANTED
from tests.support.captures import Case, vllm_cases


def samples(body: bytes, name: str) -> list[Sample]:
    """The samples of one name."""
    return list(Finder([name]).find(body)[name])


deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=200)


@pytest.mark.parametrize("case", vllm_cases(), ids=lambda case: str(case.path))
def test_recorded_samples_are_found_as_by_prometheus_client(case: Case) -> None:
    body = case.answers["metrics"].body
    theirs: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            theirs.setdefault(sample.name, []).append(Sample(sample.labels, sample.value))
    for name in (*WANTED, "vllm:iteration_tokens_total_bucket", "python_info"):
        assert samples(body, name) == theirs.get(name, [])


@deterministic
@given(
    st.lists(st.tuples(st.text(max_size=9), st.text('\\"\n\r,{}= \x85', max_size=9)), max_size=4),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_label_is_found_as_prometheus_client_wrote_it(
    labels: list[tuple[str, str]], value: float
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("wanted", "What is wanted{} 1", ["one", "two"], registry=registry)
    for one, two in labels:
        gauge.labels(one, two).set(value)
    found = samples(generate_latest(registry), "wanted")
    assert {(sample.labels["one"], sample.labels["two"]) for sample in found} == set(labels)
    assert {sample.value for sample in found} == ({value} if labels else set())


@pytest.mark.parametrize(
    "line",
    [
        "wanted",
        "wanted ",
        "wanted x",
        "wanted 1_0",
        f"wanted {'1' * 65}",
        "wanted{",
        'wanted{a="b" 1',
        'wanted{a="b"',
        'wanted{a="b"} ',
        "wanted{a=b} 1",
        'wanted{0="b"} 1',
        'wanted{a="b""} 1',
        "wanted_more 1",
        "unwanted 1",
        "# wanted 1",
        '{wanted="x"} 1',
        'other{a="wanted 1"} 2',
    ],
)
def test_a_line_that_is_no_such_sample_is_left_out(line: str) -> None:
    good = Sample({}, 7.0)
    assert samples(f"wanted 7\n{line}\nwanted 7".encode(), "wanted") == [good, good]


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("wanted 1", Sample({}, 1.0)),
        ("wanted\t1", Sample({}, 1.0)),
        ("wanted{} 1", Sample({}, 1.0)),
        ("wanted{}1", Sample({}, 1.0)),
        ('wanted{a="b",} 1', Sample({"a": "b"}, 1.0)),
        ('wanted{ a = "b" , c = "d" } 1', Sample({"a": "b", "c": "d"}, 1.0)),
        ('wanted{a="b"} 1 1796000000000', Sample({"a": "b"}, 1.0)),
        ('wanted{a="b"} 1 # {c="d"} 2', Sample({"a": "b"}, 1.0)),
        ('wanted{a="}"} 1e3', Sample({"a": "}"}, 1000.0)),
        ('wanted{a="\\x\\n"} 1', Sample({"a": "\\x\n"}, 1.0)),
        ("wanted 1\r", Sample({}, 1.0)),
    ],
)
def test_a_sample_is_found_in_each_of_its_spellings(line: str, sample: Sample) -> None:
    assert samples(line.encode(), "wanted") == [sample]


def test_a_label_that_is_no_utf_8_is_left_out() -> None:
    assert samples(b'wanted{a="\xff"} 1\nwanted 2\n', "wanted") == [Sample({}, 2.0)]


def test_a_family_may_be_declared_without_samples() -> None:
    body = b"# TYPE wanted gauge\n# TYPE unwanted_x gauge\nother 1\n"
    assert declared(body, "wanted")
    assert not declared(body, "want")
    assert not declared(body, "other")
    assert not has_family_prefix(body, "wanted")
    assert has_family_prefix(body, "oth")


def test_the_total_of_nothing_is_unknown() -> None:
    assert total([]) is None
    assert total([Sample({}, 0.0)]) == 0
    assert total([Sample({}, 1.0), Sample({}, 2.5)]) == 3.5

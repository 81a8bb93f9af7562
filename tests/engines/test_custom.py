"""Endpoints that an operator maps: what paths find, and what is told of those that find nothing."""

from __future__ import annotations

import json

import pytest

from exporter.engines import ENGINES
from exporter.engines.base import Answer
from exporter.engines.custom_paths import Each, NothingError, find, json_path, selector
from exporter.fleet import (
    AdapterState,
    CustomMap,
    Reading,
    Reason,
    ReplicaTable,
    SlotKind,
    Source,
    Target,
)

CUSTOM = ENGINES["custom"]


def read_json(
    document: object, limit: int | None = None, kind: SlotKind = SlotKind.EVICTABLE, **paths: str
) -> Reading:
    mapping = CustomMap("/stats", "json", kind, tuple(paths.items()))
    target = Target("http://h:1", "serving", "custom", custom=mapping, max=limit)
    return CUSTOM.read(target, {"custom": Answer(json.dumps(document).encode())}, 0.0)


def read_series(body: str, **paths: str) -> Reading:
    mapping = CustomMap("/m", "prometheus", SlotKind.EVICTABLE, tuple(paths.items()), "adapter")
    target = Target("http://h:1", "serving", "custom", custom=mapping)
    return CUSTOM.read(target, {"custom": Answer(body.encode())}, 0.0)


def row(reading: Reading) -> ReplicaTable:
    assert reading.table is not None
    (only,) = reading.table.replicas
    return only


def slots(reading: Reading) -> tuple[int | None, int | None, int | None]:
    table = row(reading)
    return table.max, table.used, table.free


DOCUMENT = {
    "slots": {"max": 8, "used": 3, "free": 5},
    "workers": [{"used": 1, "names": ["a"]}, {"used": 2, "names": ["b", "c"]}],
    "loras": {"x": {"used": 1}, "y": {"used": 4}},
    "a.key": {"[0]": 7},
    "none": [],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("slots.max", [8]),
        ("workers[1].used", [2]),
        ("workers[].used", [1, 2]),
        ("workers[].names[]", ["a", "b", "c"]),
        ("loras{}", ["x", "y"]),
        ("loras[].used", [1, 4]),
        ('["a.key"]["[0]"]', [7]),
        ("none[]", []),
        ("none[].used", []),
    ],
)
def test_paths_find_values(path: str, found: list[object]) -> None:
    assert find(DOCUMENT, path) == found


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("slots.maximum", "slots.maximum"),
        ("slot.max", "slot"),
        ("slots.max.of", "slots.max.of"),
        ("workers[2].used", "workers[2]"),
        ("workers[].usd", "workers[].usd"),
        ("workers.used", "workers.used"),
        ("workers{}", "workers{}"),
        ("slots.max[]", "slots.max[]"),
        ('["a.key"].b', '["a.key"].b'),
    ],
)
def test_a_path_that_finds_nothing_tells_how_far_it_came(path: str, where: str) -> None:
    with pytest.raises(NothingError) as caught:
        find(DOCUMENT, path)
    assert str(caught.value) == where


@pytest.mark.parametrize(
    "path",
    ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a{}.b", "a b", '["a', "a" * 501],
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="a path such as"):
        json_path(path)


def test_steps() -> None:
    assert json_path('a[0][].b["c"]{}') == ("a", 0, Each.VALUE, "b", "c", Each.KEY)


@pytest.mark.parametrize(
    "text", ["", "a b", "1a", "a{", 'a{b="c"', "a{b=c}", 'a{b!="c"}', "a" * 501, 'a{b="\\n"}']
)
def test_what_is_no_series(text: str) -> None:
    with pytest.raises(ValueError, match="a series such as"):
        selector(text)


def test_json_is_mapped() -> None:
    reading = read_json(
        DOCUMENT, max="slots.max", used="workers[].used", active="workers[].names[]"
    )
    assert reading.up
    assert slots(reading) == (8, 3, 5)
    assert row(reading).source is Source.SLOTS
    assert dict(row(reading).adapters) == dict.fromkeys("abc", AdapterState.ACTIVE)


def test_the_slot_kind_is_the_operators() -> None:
    reading = read_json(DOCUMENT, kind=SlotKind.EXCLUSIVE, max="slots.max")
    assert row(reading).slot_kind is SlotKind.EXCLUSIVE


def test_used_follows_from_free() -> None:
    assert slots(read_json(DOCUMENT, max="slots.max", free="slots.free")) == (8, 3, 5)
    assert slots(read_json({"free": 9}, 8, free="free")) == (8, 0, 8)
    assert slots(read_json({"free": 9}, free="free")) == (None, None, None)


def test_used_may_be_the_number_of_active_adapters() -> None:
    reading = read_json({"names": ["a", "b", "a"]}, 4, active="names[]")
    assert slots(reading) == (4, 2, 2)
    assert row(reading).source is Source.ACTIVITY


def test_an_adapter_at_work_has_a_slot_whatever_used_says() -> None:
    assert slots(read_json({"n": 1, "names": ["a", "b"]}, 4, used="n", active="names[]"))[1] == 2


def test_adapters_of_which_nothing_more_is_known_are_registered_and_use_no_slot() -> None:
    reading = read_json(DOCUMENT, 4, adapters="loras{}")
    assert slots(reading) == (4, None, None)
    assert dict(row(reading).adapters) == dict.fromkeys("xy", AdapterState.REGISTERED)


def test_the_operators_max_serves_where_none_is_mapped() -> None:
    assert slots(read_json(DOCUMENT, 6, used="slots.used")) == (6, 3, 3)
    assert slots(read_json(DOCUMENT, 6, max="slots.max", used="slots.used")) == (8, 3, 5)


def test_used_above_max_stays_visible() -> None:
    assert slots(read_json({"max": 2, "used": 3}, max="max", used="used")) == (2, 3, 0)


def test_a_path_to_slots_that_finds_nothing_takes_the_target_down_and_is_shown() -> None:
    reading = read_json(DOCUMENT, max="slots.max", used="slots.in_use")
    assert reading.reason is Reason.FORMAT
    assert reading.detail == "/stats: used: found nothing at slots.in_use"
    # What was found is still told; what was not is unknown, not 0.
    assert slots(reading) == (8, None, None)


def test_a_deep_path_is_shown_with_the_place_where_it_ends() -> None:
    reading = read_json(DOCUMENT, max="slot.of.max")
    assert reading.detail == "/stats: max: slot.of.max: found nothing at slot"


def test_a_path_to_something_else_that_finds_nothing_is_only_shown() -> None:
    reading = read_json(DOCUMENT, max="slots.max", prompt_tokens="tokens.in", resident="r")
    assert reading.up
    assert reading.detail == (
        "/stats: prompt_tokens: tokens.in: found nothing at tokens; "
        "/stats: resident: found nothing at r"
    )


@pytest.mark.parametrize("value", ["8", True, None, -1, 1.5, [8], 2**60, 1e300])
def test_slots_are_whole_numbers(value: object) -> None:
    reading = read_json({"max": value}, max="max")
    assert reading.reason is Reason.FORMAT
    assert reading.detail.startswith("/stats: max: max: wanted ")
    assert slots(reading) == (None, None, None)


def test_names_are_texts_and_values_are_never_shown() -> None:
    reading = read_json({"names": ["hunter2", 5]}, 4, active="names[]")
    assert reading.reason is Reason.FORMAT
    assert reading.detail == "/stats: active: names[]: wanted names"
    assert "hunter2" not in repr(reading)


def test_an_answer_that_is_no_json() -> None:
    mapping = CustomMap("/stats", "json", SlotKind.EVICTABLE, (("max", "max"),))
    target = Target("http://h:1", "serving", "custom", custom=mapping)
    reading = CUSTOM.read(target, {"custom": Answer(b"<html>")}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.FORMAT)


def test_the_model_may_be_mapped() -> None:
    assert row(read_json({"max": 1, "m": "qwen"}, max="max", model="m")).model == "qwen"
    assert row(read_json({"max": 1}, max="max")).model == "serving"


SERIES = """# TYPE slots gauge
slots{state="used",node="a"} 2
slots{state="used",node="b"} 1
slots{state="all",node="a"} 8
slots_of_another 99
loaded{adapter="a"} 1
loaded{adapter="gone"} 0
loaded{other="x"} 1
tokens_total 5.5
"""


def test_series_are_mapped_and_added_up() -> None:
    reading = read_series(
        SERIES,
        max='slots{state="all"}',
        used='slots{state="used"}',
        adapters="loaded",
        generation_tokens="tokens_total",
    )
    table = row(reading)
    assert reading.up
    assert (table.max, table.used, table.free, table.generation_tokens) == (8, 3, 5, 5.5)
    assert [name for name, _ in table.adapters] == ["a"]


def test_all_labels_must_match() -> None:
    reading = read_series(SERIES, max='slots{state="used", node="b"}')
    assert row(reading).max == 1


def test_a_series_that_is_not_there_is_shown() -> None:
    reading = read_series(SERIES, max='slots{state="none"}', used="missing")
    assert reading.reason is Reason.FORMAT
    assert reading.detail == (
        '/m: max: found nothing at slots{state="none"}; /m: used: found nothing at missing'
    )


def test_a_series_that_is_declared_and_has_no_samples_means_no_adapter() -> None:
    body = f"# TYPE at_work gauge\n{SERIES}"
    assert slots(read_series(body, max='slots{state="all"}', active="at_work")) == (8, 0, 8)
    reading = read_series(SERIES, max='slots{state="all"}', active='loaded{adapter="b"}')
    assert slots(reading) == (8, 0, 8)


def test_a_series_that_does_not_exist_does_not_mean_no_adapter() -> None:
    reading = read_series(SERIES, max='slots{state="all"}', active="at_wrok")
    assert slots(reading) == (8, None, None)
    assert reading.detail == "/m: active: found nothing at at_wrok"


def test_a_label_that_no_sample_has_does_not_mean_no_adapter() -> None:
    reading = read_series(SERIES, max='slots{state="all"}', active='slots{state="used"}')
    assert slots(reading) == (8, None, None)
    assert "found nothing at label adapter of slots" in reading.detail


def test_an_empty_list_adds_up_to_no_used_slot_but_to_no_max() -> None:
    reading = read_json({"workers": []}, max="workers[].max", used="workers[].used")
    assert slots(reading) == (None, 0, None)
    assert reading.detail == "/stats: max: found nothing at workers[].max"


def test_without_a_mapping_nothing_is_asked() -> None:
    target = Target("http://h:1", "serving", "custom")
    assert CUSTOM.requests(target) == ()
    reading = CUSTOM.read(target, {}, 0.0)
    assert (reading.table, reading.reason) == (None, Reason.UNSUPPORTED)
    assert "custom:" in reading.detail


def test_the_endpoint_is_asked_below_the_prefix_and_never_shown() -> None:
    mapping = CustomMap("/stats", "json", SlotKind.EVICTABLE, (("max", "m"),))
    (asked,) = CUSTOM.requests(Target("http://h:1", "g", prefix="/a", custom=mapping))
    assert (asked.url, asked.confidential) == ("http://h:1/a/stats", True)

"""Answers that no engine should send, and what holds for each reading of them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from exporter.engines.base import Answer, Answers
from exporter.fleet import AdapterState, Reading, Reason

deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=300)
reasons = st.none() | st.sampled_from(list(Reason))
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9)
    | st.sampled_from(["r1", "RUNNING", "a", "base-model", "s1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def check(reading: Reading) -> None:
    """What holds for each reading: a table or a reason, and numbers that can be."""
    assert reading.table is not None or reading.reason is not None
    if reading.table is None:
        return
    assert reading.table.ghosts is None or reading.table.ghosts >= 0
    for row in reading.table.replicas:
        assert row.model
        for count in (row.max, row.used, row.free, row.resident, row.waiting, row.registered):
            assert count is None or (type(count) is int and count >= 0)
        for count in (row.orphans, row.largest_holder):
            assert count is None or (type(count) is int and count >= 0)
        if row.max is None or row.used is None:
            assert row.free is None
        else:
            assert row.free == max(row.max - row.used, 0)
        assert len({adapter.name for adapter in row.adapters}) == len(row.adapters)
        order = list(AdapterState)
        ranks = [(order.index(adapter.state), adapter.name) for adapter in row.adapters]
        assert ranks == sorted(ranks)
        active = sum(adapter.state is AdapterState.ACTIVE for adapter in row.adapters)
        assert row.used is None or row.used >= active


@st.composite
def mutated(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> bytes:
    """A body that was cut, and of which bytes and lines were changed, moved and doubled."""
    body = draw(bodies)
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["cut", "behead", "flip", "insert", "shuffle", "double"]))
        at = draw(st.integers(0, len(body)))
        if how == "cut":
            body = body[:at]
        elif how == "behead":
            body = body[at:]
        elif how == "flip":
            body = body[:at] + bytes([draw(st.integers(0, 255))]) + body[at + 1 :]
        elif how == "insert":
            body = body[:at] + draw(st.binary(max_size=9)) + body[at:]
        else:
            lines = body.split(b"\n")
            if how == "shuffle":
                random.Random(at).shuffle(lines)  # noqa: S311 - to shuffle, not to hide
            else:
                lines.insert(at % len(lines), lines[(7 * at) % len(lines)])
            body = b"\n".join(lines)
    return body


@st.composite
def mutated_json(draw: st.DrawFn, documents: st.SearchStrategy[bytes]) -> bytes:
    """A JSON document of which values were replaced by other JSON."""
    document = json.loads(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        holder[key] = draw(any_json)
    return json.dumps(document).encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    keys = (
        list(document)
        if isinstance(document, dict)
        else range(len(document))
        if isinstance(document, list)
        else ()
    )
    found = [(document, key) for key in keys]
    for key in keys:
        found += _places(document[key])
    return found


@st.composite
def answers_with(draw: st.DrawFn, bodies: Mapping[str, st.SearchStrategy[bytes]]) -> Answers:
    """Answers of which any may be missing or refused."""
    answers = {}
    for key, body in bodies.items():
        reason = draw(reasons) if draw(st.integers(0, 9)) == 0 else None
        if draw(st.integers(0, 9)):
            answers[key] = Answer(draw(body), reason=reason)
    return answers

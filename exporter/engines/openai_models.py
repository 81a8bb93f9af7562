"""The list of models that servers with an OpenAI-like API give: `GET /v1/models`.

Wire format: `{"data": [{"id", "parent", "owned_by", …}]}`. vLLM and SGLang list adapters as rows
whose `parent` is the base model; the base model has a row for each name by which it is served.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from exporter.engines.base import Answers, Request, json_object, text
from exporter.fleet import Adapter, AdapterState, Target, order_adapters

MAX_AGE = 60.0
"""Seconds. With hundreds of adapters the list costs the engine's event loop tens of
milliseconds."""


@dataclass(frozen=True, slots=True)
class Models:
    """What `/v1/models` says."""

    base: str | None
    adapters: frozenset[str]
    registered: tuple[Adapter, ...]
    """The adapters in order, as registered ones are told."""
    owner: str | None = None
    """Who owns the first model, as the server says: most say their own name."""
    tells_parents: bool = True
    """Whether any row has the key `parent`: where none has, adapters are not told apart."""


def request(target: Target, path: str = "/v1/models") -> Request:
    """Asked seldom, and never shown: rows carry the file paths of weights."""
    return Request(
        "models",
        target.base + path,
        max_age=MAX_AGE,
        parse=read_models,
        confidential=True,
    )


def detection(target: Target, path: str = "/v1/models") -> Request:
    """To tell by the owner that rows name."""
    return Request("models", target.base + path, confidential=True)


def models_of_names(names: Iterable[str]) -> Models:
    """A list of adapters that another page gave."""
    known = frozenset(names)
    registered = order_adapters(dict.fromkeys(known, AdapterState.REGISTERED))
    return Models(None, known, registered)


def read_models(body: bytes) -> Models | None:
    """Adapters are the rows with a parent; the first other row is the base model's first name."""
    document = json_object(body)
    rows = document.get("data") if document is not None else None
    if not isinstance(rows, list):
        return None
    base = owner = None
    adapters = set()
    tells_parents = False
    for row in rows:
        name = text(row.get("id")) if isinstance(row, dict) else None
        if name is None:
            continue
        tells_parents |= "parent" in row
        owner = owner or text(row.get("owned_by"))
        if row.get("parent") is not None:
            adapters.add(name)
        elif base is None:
            base = name
    registered = order_adapters(dict.fromkeys(adapters, AdapterState.REGISTERED))
    return Models(base, frozenset(adapters), registered, owner, tells_parents)


def models_of(answers: Answers) -> Models | None:
    """The list, parsed when it was fetched or now; None where it was not had."""
    answer = answers.get("models")
    if answer is None or not answer.ok:
        return None
    return answer.parsed if isinstance(answer.parsed, Models) else read_models(answer.body)


def owned_by(answers: Answers, owner: str) -> bool:
    """Whether the server says that its models are this owner's."""
    models = models_of(answers)
    return models is not None and models.owner == owner

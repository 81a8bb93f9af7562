"""Writes the generated tables of README.md anew, or with --check tells whether they are current."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, ByteSize
from pydantic_settings import CliSuppress

from exporter.catalogue import FAMILIES
from exporter.catalogue.family import Family
from exporter.engines import ENGINES
from exporter.engines.base import Engine
from exporter.fleet import Reason
from exporter.quantities import show_duration, show_size
from exporter.settings import Planning, Poll, Settings

README = Path(__file__).parents[1] / "README.md"
_DURATIONS = {"interval", "timeout", "stale_after", "demand_window"}
_REASONS = {
    Reason.CONNECT: "nobody answers, or the connection ends in the middle of an answer",
    Reason.TIMEOUT: "no answer within `poll.timeout`",
    Reason.TLS: "the certificate is not trusted, or has another name",
    Reason.AUTH: "credentials are missing or wrong, or their file cannot be read",
    Reason.STATUS: "another HTTP status than 200; redirects are not followed",
    Reason.TOO_LARGE: "the answer is over `poll.max_body`",
    Reason.FORMAT: "the answer is not what the engine sends",
    Reason.NO_LORA: "the engine runs without LoRA",
    Reason.NO_STATS: "the engine exports no statistics",
    Reason.AMBIGUOUS: "the answer could mean several things, or another target tells of the same "
    "replica",
    Reason.UNSUPPORTED: "no engine that the exporter knows, or an optional package is missing",
}


def settings_table() -> str:
    """All settings: key, flag, default, meaning. Each has its environment variable too."""
    rows: list[tuple[str, ...]] = [
        ("`config.file`", "`--config.file`", "none", "This file."),
        (
            "`targets`",
            "`--target`",
            "none",
            "Groups of targets; the flag adds one address, its "
            "engine found out, and may be repeated.",
        ),
    ]
    rows += _section_rows(Settings, "", "--")
    return _table(("Key", "Flag", "Default", "Meaning"), rows)


def _section_rows(model: type[BaseModel], prefix: str, flag: str) -> Iterable[tuple[str, ...]]:
    """Rows of a section and those in it; `flag` is empty where a list or a mapping is above."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = next(iter(_models(field.annotation)), None)
        if inner is None:
            default = "required" if field.is_required() else _default(model, name)
            shown = f"`{flag}{name.replace('_', '-')}`" if flag else ""
            shown = "" if get_origin(field.annotation) is dict else shown
            yield (f"`{key}`", shown, default, _text(field))
        elif get_origin(field.annotation) is dict:
            if int in _types(field.annotation):
                # A mapping whose values are either a number or a section.
                yield (f"`{key}`", "", _default(model, name), _text(field))
            yield from _section_rows(inner, f"{key}.NAME.", "")
        elif get_origin(field.annotation) is tuple:
            yield from _section_rows(inner, f"{key}[].", "")
        else:
            yield from _section_rows(
                inner, f"{key}.", f"{flag}{name}." if flag and _flag(field) else ""
            )


def _models(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models(argument)


def _flag(field: Any) -> bool:
    """Whether the keys of a section are flags too."""
    return all(mark not in field.metadata for mark in CliSuppress.__metadata__)


def _types(annotation: Any) -> Iterable[Any]:
    yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _types(argument)


def _default(model: type[BaseModel], key: str) -> str:
    value = model.model_fields[key].default
    if model in (Poll, Planning) and key in _DURATIONS:
        value = show_duration(value)
    elif isinstance(value, ByteSize):
        value = show_size(value)
    if value is None or value in ((), "", {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _text(field: Any) -> str:
    return " ".join((field.description or "").split())


def metrics_table() -> str:
    """All series: name, type, labels, meaning."""
    rows = [_family(family) for family in FAMILIES.values()]
    return _table(("Series", "Type", "Labels", "Stability", "Meaning"), rows)


def _family(family: Family) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "none"
    return (f"`{family.name}`", family.type, labels, family.stability, family.help)


def reasons_table() -> str:
    """Why a target is down."""
    rows = [(f"`{reason.value}`", _REASONS[reason]) for reason in Reason]
    return _table(("Reason", "Meaning"), rows)


def engines_table() -> str:
    """All engines: how they are named in the settings, their slots, and where numbers come from."""
    order = sorted(
        ENGINES.values(), key=lambda engine: (engine.name == "custom", engine.about.title.lower())
    )
    rows = [_engine(engine) for engine in order]
    header = ("Engine", "`engine`", "Slots", "max", "used", "Sources", "Versions")
    return _table(header, rows)


def _engine(engine: Engine) -> tuple[str, ...]:
    about = engine.about
    kind = engine.slot_kind.value if engine.has_slots else "none"
    if engine.name == "custom":
        kind = "as mapped"
    sources = ", ".join(f"`{source.value}`" for source in engine.sources)
    return (
        about.title,
        f"`{engine.name}`",
        kind,
        about.max,
        about.used,
        sources,
        about.versions,
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines
    )


TABLES = {
    "engines": engines_table,
    "settings": settings_table,
    "metrics": metrics_table,
    "reasons": reasons_table,
}


def generated(text: str) -> str:
    """The page with its tables made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, mark, rest = text.partition(begin)
        _, mark_too, after = rest.partition(end)
        if not mark or not mark_too:
            sys.exit(f"README.md: wanted the lines {begin.strip()} and {end.strip()}")
        text = f"{before}{begin}\n{table()}\n{end}{after}"
    return text


def main() -> None:
    """Writes, or checks."""
    before = README.read_text()
    after = generated(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            sys.exit("README.md: the tables are not current; run make readme")
        return
    README.write_text(after)


if __name__ == "__main__":
    main()

"""Log lines as logfmt or JSON, on standard error."""

from __future__ import annotations

import datetime
import logging
import re
import sys
from typing import Literal

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_BARE = re.compile(r"[A-Za-z0-9_.:/@%+,-]+")


def set_up(level: str, form: Literal["logfmt", "json"]) -> None:
    """Sends all of the process's log lines of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Logfmt())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    fields: dict[str, object] = {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "msg": record.getMessage(),
        "logger": record.name,
    }
    fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        # Neither message nor frames: both may quote what a target sent.
        fields["error"] = type(error).__name__
        if trace is not None:
            fields["at"] = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return fields


class _Logfmt(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quote(value)}" for key, value in _fields(record).items())


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return orjson.dumps(_fields(record), default=str).decode()


def _quote(value: object) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else orjson.dumps(text).decode()

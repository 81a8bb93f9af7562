"""Words of an alert's text that depend on its value."""

from __future__ import annotations


def counted(one: str, many: str) -> str:
    """A template for the value and what it counts: `counted("slot is", "slots are")`."""
    return "{{ $value | humanize }} " + _if_one(one, many)


def all_held() -> str:
    """A template that says that so many slots, which is all of them, are held."""
    return _if_one("the only slot is", "all {{ $value | humanize }} slots are") + " held"


def _if_one(one: str, many: str) -> str:
    return f"{{{{ if eq $value 1.0 }}}}{one}{{{{ else }}}}{many}{{{{ end }}}}"

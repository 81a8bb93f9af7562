"""What all sections are made of."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

_ADDRESS = "an address such as http://10.0.0.5:8000, without credentials, query or fragment"


class ContradictionError(ValueError):
    """Keys that do not go together."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(wanted)
        self.found = found


def normalise_url(value: str) -> str:
    """An HTTP address in the one form in which it is compared and shown.

    Raises ValueError for what is no address, or carries credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(value.strip())
        port = parts.port
    except ValueError:
        raise ValueError(_ADDRESS) from None
    host = parts.hostname
    secret = "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not host or secret or parts.query or parts.fragment:
        raise ValueError(_ADDRESS)
    if any(character.isspace() or not character.isprintable() for character in value.strip()):
        raise ValueError(_ADDRESS)
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port is None else f"{shown}:{port}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def _readable_file(path: Path) -> Path:
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise ValueError("a file, not a pipe")
        with path.open("rb"):
            return path
    except OSError as error:
        raise ValueError(f"a file that can be read ({error.strerror})") from None


def _text(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("text that is not empty")
    return value


Url = Annotated[str, AfterValidator(normalise_url)]
ReadableFile = Annotated[Path, AfterValidator(_readable_file)]
Text = Annotated[str, BeforeValidator(_text)]


SECTION = ConfigDict(
    extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=False
)
"""How each section is read: unknown keys are errors."""


class Section(BaseModel):
    """A section of the settings."""

    model_config = SECTION

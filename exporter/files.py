"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Puts the text in the place of the file, which keeps its mode. Raises OSError.

    Whoever reads the file meanwhile, or after a crash, finds the old text or the new one.
    """
    place = file.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        mode = place.stat().st_mode & 0o7777 if place.exists() else 0o644
        Path(name).chmod(mode)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

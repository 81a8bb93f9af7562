"""Secrets from files: read when needed, again when they change, and never shown."""

from __future__ import annotations

import stat as stat_bits
from pathlib import Path

_MAX_BYTES = 64 * 1024


class SecretError(Exception):
    """A secret's file cannot be used. The message names the file and never its content."""


class SecretFile:
    """A secret in a file. Kubernetes and others replace such files while we run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._value = ""

    def read(self) -> str:
        """The secret, without the white space around it. Raises SecretError."""
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if not stat_bits.S_ISREG(stat.st_mode):
                # A pipe would hold up all that waits for the loop.
                raise SecretError(f"{self._path}: not a regular file")
            if stamp != self._stamp:
                with self._path.open("rb") as stream:
                    raw = stream.read(_MAX_BYTES + 1)
                self._value = self._check(raw)
                self._stamp = stamp
        except OSError as error:
            raise SecretError(f"{self._path}: {error.strerror}") from None
        return self._value

    def _check(self, raw: bytes) -> str:
        value = raw.strip()
        # Whatever else it holds would end, or split, the header that carries it.
        if not value or len(raw) > _MAX_BYTES or any(byte < 32 or byte > 126 for byte in value):
            raise SecretError(f"{self._path}: not one line of printable ASCII")
        return value.decode("ascii")

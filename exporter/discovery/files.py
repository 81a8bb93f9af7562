"""Targets from files, as Prometheus's `file_sd` has them: JSON or YAML, replaced while we run."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import yaml

from exporter.discovery import listed
from exporter.discovery.base import DiscoveryError, Found
from exporter.settings.discovery import FileDiscovery

LOOK_SECONDS = 2.0
"""Between two looks whether a file changed."""
_LARGEST = 32 * 2**20
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Stamp = tuple[int, int, int]


class Files:
    """The files of one group. A file is read again when it changed."""

    def __init__(self, settings: FileDiscovery) -> None:
        self._patterns = settings.paths
        self._read: dict[Path, tuple[_Stamp, tuple[Found, ...]]] = {}

    async def find(self) -> tuple[Found, ...]:
        """The targets of all files. Raises DiscoveryError; what was read of the others is kept."""
        return await asyncio.to_thread(self._find)

    async def wait(self) -> None:
        """Until the next look."""
        await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Nothing is held open."""

    def _find(self) -> tuple[Found, ...]:
        paths = [path for pattern in self._patterns for path in _matches(pattern)]
        self._read = {path: kept for path, kept in self._read.items() if path in paths}
        found: dict[str, Found] = {}
        for path in paths:
            for one in self._of(path):
                found.setdefault(one.url, one)
        return tuple(found.values())

    def _of(self, path: Path) -> tuple[Found, ...]:
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                # A pipe would keep this thread for ever.
                raise DiscoveryError(f"{path}: wanted a regular file")
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            kept = self._read.get(path)
            if kept is not None and kept[0] == stamp:
                return kept[1]
            with path.open("rb") as stream:
                raw = stream.read(_LARGEST + 1)
        except OSError as error:
            raise DiscoveryError(f"{path}: {error.strerror}") from None
        if len(raw) > _LARGEST:
            raise DiscoveryError(f"{path}: wanted a file of at most 32 MiB")
        try:
            # JSON is YAML.
            data = yaml.load(raw, Loader=_Loader)  # noqa: S506 - it is a safe loader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f":{mark.line + 1}" if mark is not None else ""
            raise DiscoveryError(f"{path}{line}: wanted JSON or YAML") from None
        except Exception:  # noqa: BLE001 - the library raises what a bad tag makes it stumble on
            raise DiscoveryError(f"{path}: wanted JSON or YAML in UTF-8") from None
        try:
            found = listed.read([] if data is None else data)
        except DiscoveryError as error:
            raise DiscoveryError(f"{path}: {error}") from None
        self._read[path] = (stamp, found)
        return found


def _matches(pattern: str) -> list[Path]:
    """The files of a pattern, in order; a path without `*` stands for itself, there or not."""
    if not any(sign in pattern for sign in "*?["):
        return [Path(pattern)]
    path = Path(pattern)
    return sorted(path.parent.glob(path.name))

"""Engines in virtual environments of their own, kept between runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"


def cache() -> Path:
    """Where the environments are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "lora-capacity-exporter" / "engines"


def installed(engine: str, environment: Mapping[str, str] | None = None) -> Path:
    """The folder `bin` of an environment that has what `requirements/<engine>.txt` pins.

    The file names every package, those that others need included, so that pip resolves nothing.
    `environment` is for the builds of packages. Raises `CalledProcessError` where pip fails.
    """
    requirements = REQUIREMENTS / f"{engine}.txt"
    asked = (requirements.read_text(), sys.version, sorted((environment or {}).items()))
    name = hashlib.sha256(repr(asked).encode()).hexdigest()[:12]
    folder = cache() / f"{engine}-{name}"
    complete = folder / "complete"
    if not complete.exists():
        if folder.exists():
            shutil.rmtree(folder)
        print(f"\nInstalling {engine} in {folder}", flush=True)
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        wanted = ["install", "--no-deps", "-r", str(requirements)]
        subprocess.run([*command, *wanted], check=True, env={**os.environ, **(environment or {})})
        complete.touch()
    return folder / "bin"

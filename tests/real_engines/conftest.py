"""Installs engines when a test first needs them, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from tests.real_engines.installed import installed


class Install(Protocol):
    """Gives the folder `bin` of an engine's environment."""

    def __call__(self, engine: str, environment: Mapping[str, str] | None = None, /) -> Path: ...


@pytest.fixture(scope="session")
def install(pytestconfig: pytest.Config) -> Install:
    """Installs an engine where it is not yet; pip's words are shown, as it may take long."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def install(engine: str, environment: Mapping[str, str] | None = None, /) -> Path:
        with capture.global_and_fixture_disabled():
            return installed(engine, environment)

    return install

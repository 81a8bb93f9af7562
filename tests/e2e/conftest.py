"""The wheel, built and installed in a fresh environment: what these tests run is what users get."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs all of these, so that one environment is made."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("e2e"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def exporter(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a fresh environment that has the wheel and its locked dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    locked = ["--require-hashes", "-r", str(ROOT / "requirements" / "runtime.txt")]
    for arguments in (locked, ["--no-deps", str(wheel)]):
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*command, *arguments], check=True, capture_output=True)
    # The wheel's own bounds must admit what is locked.
    subprocess.run([str(python), "-m", "pip", "check"], check=True, capture_output=True)
    return folder / "bin" / "lora-exporter"

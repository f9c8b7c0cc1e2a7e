from __future__ import annotations

from pathlib import Path

import pytest

from .installed import REPOSITORY, Python, build, dependencies, install


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("installed")


@pytest.fixture(scope="session")
def needed(folder: Path) -> Path:
    return dependencies(folder / "dependencies")


@pytest.fixture(scope="session")
def wheel(folder: Path) -> Path:
    return build(REPOSITORY, folder / "wheel")


@pytest.fixture(scope="session")
def installed(folder: Path, wheel: Path, needed: Path) -> Python:
    return Python((install(wheel, folder / "site"), needed))


@pytest.fixture(scope="session")
def plugin(folder: Path) -> Path:
    """The example plugin, installed."""
    return install(build(REPOSITORY / "examples" / "plugin", folder / "plugin-wheel"), folder / "plugin")

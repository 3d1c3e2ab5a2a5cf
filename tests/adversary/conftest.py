from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adversary.files import make_files


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """Valid files of every kind; nobody changes them."""
    return make_files(tmp_path_factory.mktemp("valid"))


@pytest.fixture
def copy(files, tmp_path) -> Path:
    """The same, to be spoilt."""
    return Path(shutil.copytree(files, tmp_path / "copy"))

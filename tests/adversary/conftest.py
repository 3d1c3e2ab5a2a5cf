from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from adversary.files import make_files
from adversary.tally import PLACE, TORTURE, table


def pytest_configure(config: pytest.Config) -> None:
    if TORTURE and PLACE not in os.environ:
        handle, name = tempfile.mkstemp(".tally")
        os.close(handle)
        os.environ[PLACE] = name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TORTURE and not hasattr(terminalreporter.config, "workerinput"):
        place = Path(os.environ.pop(PLACE))
        terminalreporter.write_line(table(place))
        place.unlink()


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """Valid files of every kind; nobody changes them."""
    return make_files(tmp_path_factory.mktemp("valid"))


@pytest.fixture
def copy(files, tmp_path) -> Path:
    """The same, to be spoilt."""
    return Path(shutil.copytree(files, tmp_path / "copy"))

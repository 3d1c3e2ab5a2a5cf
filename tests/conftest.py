from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from slowest import SLOWEST

settings.register_profile(
    "spklink", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("spklink")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The slowest files first, so that no worker is left with one of them at the end."""
    rank = {config.rootpath / "tests" / name: n for n, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n` alone a file stays with one worker: what its tests share is made once, not by each
    worker. Files are begun in the order above."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C works in tests and in what they start, also where this run was told to ignore it, as
    `nohup make test &` is by a shell: programs that are started ignoring it go on doing so."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Put a file into the test's own folder."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


@pytest.fixture(params=["row by row", "by columns"])
def either_way(request, monkeypatch):
    """Tables are read row by row, as small ones are, or by whole columns, as large ones are."""
    from spklink import whole_columns

    if request.param == "by columns":
        monkeypatch.setattr(whole_columns, "LEAST", 0)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process; returns exit code, standard output, standard error."""
    from spklink.cli import app as cli

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["spklink", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen calls of ten seconds with truth."""
    from made_calls import write_calls

    return write_calls(tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="session")
def real_calls() -> Path:
    """The folder of the 420 real calls, where SPKLINK_DATA says that there is one."""
    folder = Path(os.environ.get("SPKLINK_DATA", ""), "harpervalley")
    if "SPKLINK_DATA" not in os.environ or not (folder / "conversations.csv").exists():
        pytest.skip("real calls: SPKLINK_DATA does not name a folder with harpervalley/")
    return folder


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of published networks, where SPKLINK_MODELS says that there is one."""
    folder = Path(os.environ.get("SPKLINK_MODELS", ""))
    if "SPKLINK_MODELS" not in os.environ or not list(folder.glob("*.onnx")):
        pytest.skip("networks: SPKLINK_MODELS does not name a folder with .onnx files")
    return folder


@pytest.fixture(scope="session")
def browser():
    """Chromium where there is one; SPKLINK_BROWSER_REQUIRED makes its absence a failure."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        if os.environ.get("SPKLINK_BROWSER_REQUIRED"):
            pytest.fail("no chromium found: apt-get install chromium")
        pytest.skip("no chromium found: the pages were not opened")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()

"""Installing: what a wheel holds, where it can be imported, what is documented about it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
INSTALL = (ROOT / "docs" / "how-to" / "install.md").read_text()


def files_below(folder: Path) -> set[str]:
    found = (
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(SOURCE).as_posix() for path in found}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """A wheel and an sdist, made as pip makes them."""
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    folder = str(tmp_path_factory.mktemp("dist"))
    wheel, sdist = (
        next(builder(str(ROOT)).build(directory=folder, versions=["standard"]))
        for builder in (WheelBuilder, SdistBuilder)
    )
    return {"wheel": Path(wheel), "sdist": Path(sdist)}


def test_a_wheel_has_all_of_the_package(built):
    names = set(zipfile.ZipFile(built["wheel"]).namelist())
    assert files_below(SOURCE / "spklink") <= names
    assert any(name.endswith("share/man/man1/spklink.1") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_an_sdist_has_all_that_a_wheel_is_made_of(built):
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in files_below(SOURCE / "spklink")} <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "docs/spklink.1", "Makefile"} <= names


@pytest.mark.skipif("SPKLINK_TORTURE" not in os.environ, reason="takes a minute: make torture")
def test_a_wheel_works_in_a_venv_of_its_own(built, tmp_path):
    """With the libraries of this one, as nothing may be fetched here."""
    venv.create(tmp_path / "v", with_pip=True, system_site_packages=False)
    here, home = tmp_path / "v" / "bin", Path(sys.executable).parent.parent
    (own,) = (tmp_path / "v").glob("lib/python*/site-packages")
    (libraries,) = home.glob("lib/python*/site-packages")
    (own / "others.pth").write_text(f"{libraries}\n")
    pip = [here / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--force-reinstall", built["wheel"]], check=True, cwd=tmp_path)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (
        "demo -o made",
        "link made/calls/conversations.csv -o results",
        "export results -o textgrids --to textgrid",
        "report results",
    ):
        subprocess.run([here / "spklink", *words.split()], check=True, cwd=tmp_path, env=clean)
    where = "import spklink; print(spklink.__file__)"
    done = subprocess.run([here / "python", "-c", where], capture_output=True, text=True, env=clean)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
    assert (tmp_path / "v" / "share" / "man" / "man1" / "spklink.1").exists()


WINDOWS = """
import os, pkgutil, signal, sys
import spklink

def import_all():
    for one in pkgutil.walk_packages(spklink.__path__, 'spklink.'):
        if one.name != 'spklink.__main__':
            __import__(one.name)

import_all()  # with all libraries that they need
for name in [name for name in sys.modules if name.split('.')[0] == 'spklink']:
    del sys.modules[name]
for name in 'fcntl resource pwd grp termios tty pty syslog crypt curses'.split():
    sys.modules[name] = None
posix = 'fork getuid geteuid getgid getpgid killpg setsid mkfifo chown posix_fallocate statvfs'
for name in f'{posix} O_NONBLOCK O_NOFOLLOW sched_getaffinity uname'.split():
    vars(os).pop(name, None)
for name in 'SIGKILL SIGHUP SIGALRM SIGUSR1 pthread_sigmask alarm'.split():
    vars(signal).pop(name, None)
import spklink
import_all()
print(len([name for name in sys.modules if name.startswith('spklink.')]))
"""


def test_every_module_can_be_imported_on_windows():
    """What that lacks is taken away once all libraries are there."""
    done = subprocess.run([sys.executable, "-c", WINDOWS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


def test_the_image_is_made_in_the_words_of_the_page():
    """No engine runs here: what can be held is that both say the same, and name what is there."""
    steps = (ROOT / "Dockerfile").read_text()
    assert f"```dockerfile\n{steps}```" in INSTALL
    words = re.findall(r"^(FROM|COPY|RUN|ENV|WORKDIR|ENTRYPOINT) ", steps, re.MULTILINE)
    assert len(words) == len(steps.splitlines())
    assert words[0] == "FROM"
    for extra in re.search(r"/src\[([\w,]+)\]", steps)[1].split(","):
        assert extra in PROJECT["project"]["optional-dependencies"]
    for module in re.findall(r"python -m ([\w.]+)", steps):
        assert importlib.util.find_spec(module)


def test_extras_of_the_page_are_those_of_the_project():
    said = set(re.findall(r"^\| `(\w+)` \|", INSTALL, re.MULTILINE))
    assert said == set(PROJECT["project"]["optional-dependencies"]) - {"dev", "bench", "docs"}


def test_readme_says_first_how_to_install():
    readme = (ROOT / "README.md").read_text()
    assert "    pip install ." in readme
    assert readme.index("pip install .") < readme.index("make demo")


def test_the_lock_pins_all_that_development_needs():
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    pinned = {re.split("==", line)[0].lower() for line in lines}
    assert all(re.match(r"[\w.-]+==[\w.+]+( ;.*)?$", line) for line in lines)  # no hosts, no files
    project = PROJECT["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    missing = {re.split("[>=<[]", one)[0].lower() for one in wanted} - pinned
    assert not missing, "uv pip compile, as in CONTRIBUTING.md"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(
    ("stamps", "goal", "added"),
    [
        ("", "demo", ["."]),
        ("", "test", [".", ".[dev]"]),
        ("", "lint", [".", ".[dev]"]),
        ("", "docs", [".", ".[dev]", ".[docs]"]),
        ("", "bench", [".", ".[dev]", ".[bench]"]),
        ("installed", "demo", []),
        ("installed", "test", [".[dev]"]),
        ("installed dev", "demo", []),
        ("installed dev", "test", []),
    ],
)
def test_make_installs_what_its_goal_needs_and_no_more(tmp_path, stamps, goal, added):
    (tmp_path / ".venv").mkdir()
    for name in ("Makefile", "pyproject.toml", *(f".venv/.{one}" for one in stamps.split())):
        (tmp_path / name).write_text((ROOT / "Makefile").read_text() if name == "Makefile" else "")
    words = ["make", "-n", "-C", str(tmp_path), goal]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    told = subprocess.run(words, capture_output=True, text=True, check=True, env=clean).stdout
    assert re.findall(r"pip install .* -e '(\S+)'", told) == added
    assert "spklink.cli.compile" not in told  # what a run needs is compiled while it runs


def test_hooks_before_a_commit_fetch_nothing():
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"repo: (\S+)", text)) == {"local"}
    assert set(re.findall(r"language: (\S+)", text)) == {"system"}
    lint = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    for tool in ("ruff check", "ruff format --check", "mypy"):
        assert f"$(BIN)/{tool}" in lint
        assert f".venv/bin/{tool}" in text

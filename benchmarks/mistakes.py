"""How many deliberate mistakes the tests notice.

    python benchmarks/mistakes.py [--count 60] [--seed 0] [--only ROOM] [--limit 150]
    python benchmarks/mistakes.py --numbers 3,7 --also tests/runs      # some of the lot

Places are drawn by lot from the syntax trees of all functions, more of them where numbers are
computed (WEIGHTS), at most one per function: first the kind of mistake is drawn, then the place. A
score before and after a refactoring says whether the tests are still as good. Each mistake is
planted in a copy of this checkout in a temporary folder, and tests run there until one fails:

1. those of the module's own room (tests/ROOM) and of no room (tests/test_*.py) that import the
   module, then those of its room that import a module which imports it, then the rest of its room;
2. those of other rooms that import the module, then those that import a module which imports it;
3. those named by --also.

One that none of them notices within LIMIT seconds of computing has survived. A failure counts if
the same test passes without the mistake; a test of over STUCK seconds has failed. Survivors include
mistakes that change no result: whether one is a gap is for people to judge. Compiled code of
unchanged functions is reused, so that one mistake costs seconds: run the tests once before.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from mistake_kinds import Mistake, places, source_of
from spklink.words import counted
from timing import show

HERE = Path(__file__).resolve().parent.parent
PACKAGE = Path("src", "spklink")
# Mistakes of 60 per room; a room that is not named gets 1. Modules in no room are "spklink".
WEIGHTS = {
    **{"posterior": 12, "calibration": 8, "partitions": 6, "runs": 6, "database": 4, "scores": 4},
    **{"cues": 4, "measures": 4, "recognizers": 4, "review": 2, "report": 2, "spklink": 2},
}
STUCK = 400  # seconds of one test, by the clock
LEFT_OUT = (".git", ".venv", ".*_cache", ".hypothesis", "site", "demo-out", "build", "dist")


def room_of(file: Path) -> str:
    """'src/spklink/database/links.py' → 'database'."""
    inside = file.relative_to(PACKAGE).parts
    return inside[0] if len(inside) > 1 else "spklink"


# --- the lot -------------------------------------------------------------------------------------


def draw(root: Path, count: int, seed: int, only: str = "") -> list[Mistake]:
    """So many mistakes, by room; the lot of a room depends on the seed and on its code alone."""
    rooms = defaultdict(list)
    for file in sorted(path.relative_to(root) for path in (root / PACKAGE).rglob("*.py")):
        rooms[room_of(file)] += places(file, source_of(root / file))
    rooms = {room: found for room, found in sorted(rooms.items()) if found}
    weights = {room: WEIGHTS.get(room, 1) for room in rooms if only in ("", room)}
    quotas = {room: count * weight / sum(weights.values()) for room, weight in weights.items()}
    numbers = {room: int(quota) for room, quota in quotas.items()}
    by_rest = sorted(quotas, key=lambda room: (numbers[room] - quotas[room], -weights[room], room))
    for room in by_rest[: count - sum(numbers.values())]:
        numbers[room] += 1
    return [
        mistake
        for room, number in numbers.items()
        for mistake in _lot(root, rooms[room], number, random.Random(f"{seed} {room}"))
    ]


def _lot(root: Path, found: list[Mistake], count: int, lot: random.Random) -> list[Mistake]:
    """Different kinds as equally as they come, each in a function of its own."""
    kinds = defaultdict(list)
    for one in found:
        kinds[one.kind].append(one)
    drawn: dict[tuple[Path, str], Mistake] = {}
    while len(drawn) < count and kinds:
        kind = lot.choice(sorted(kinds))
        one = kinds[kind].pop(lot.randrange(len(kinds[kind])))
        kinds = defaultdict(list, {name: left for name, left in kinds.items() if left})
        if (one.file, one.function) not in drawn and one.compiles(source_of(root / one.file)):
            drawn[one.file, one.function] = one
    return sorted(drawn.values(), key=lambda one: (one.file, one.start))


# --- which tests have to do with a module --------------------------------------------------------


@cache
def imported(path: Path) -> set[str]:
    """Names of modules that a file imports, anywhere in it; of `from a import b` also a.b."""
    found = set()
    for node in ast.walk(ast.parse(source_of(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def tests_of(root: Path, file: Path) -> list[str]:
    """Files of tests, in the order in which they are run for mistakes of this module."""
    module = ".".join(file.relative_to("src").with_suffix("").parts).removesuffix(".__init__")
    ways = {path: imported(path) for top in ("src", "tests") for path in (root / top).rglob("*.py")}
    nearby = {_module(root, path) for path, names in ways.items() if module in names}
    own, ordered = Path("tests", room_of(file)), []
    for path in sorted((root / "tests").rglob("test_*.py")):
        test, names = path.relative_to(root), ways[path]
        distance = 0 if module in names else 1 if nearby & names else 2
        at_home = test.is_relative_to(own) or (distance == 0 and test.parent == Path("tests"))
        if at_home or distance < 2:
            ordered.append((not at_home, distance, test.as_posix()))
    return [name for _, _, name in sorted(ordered)]


def _module(root: Path, path: Path) -> str:
    """Its name in an import; files of tests are imported by their own names."""
    top = "src" if path.is_relative_to(root / "src") else "tests"
    return ".".join(path.relative_to(root / top).with_suffix("").parts).removesuffix(".__init__")


# --- planting and running ------------------------------------------------------------------------


@contextmanager
def planted(tree: Path, mistake: Mistake) -> Iterator[None]:
    """A mistake in the copy, for a while. What was compiled from the function, or from others that
    call it, is put aside meanwhile: numba looks at the time of a function's own file alone."""
    path = tree / mistake.file
    before, times = path.read_bytes(), path.stat()
    callers = _callers(tree, mistake.function) if mistake.compiled else set()

    def stale() -> list[Path]:
        own = list(path.parent.glob(f"__pycache__/{path.stem}.*.nb?"))
        return own + [one for name in callers for one in tree.rglob(f"*.{name}-*.nb?")]

    kept = {one: one.read_bytes() for one in stale()}
    for one in kept:
        one.unlink()
    path.write_bytes(mistake.applied(before))
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        for one in stale():
            one.unlink(missing_ok=True)
        for one, content in kept.items():
            one.write_bytes(content)


def _callers(tree: Path, name: str) -> set[str]:
    """Names of all functions that call one of this name, or call such a function."""
    uses, reached, more = _uses(tree), set(), {name}
    while more:
        reached |= more
        more = {caller for caller, names in uses.items() if names & reached} - reached
    return reached


@cache
def _uses(tree: Path) -> dict[str, set[str]]:
    """The names in every function."""
    uses: dict[str, set[str]] = defaultdict(set)
    for path in tree.rglob("*.py"):
        for node in ast.walk(ast.parse(source_of(path))):
            if isinstance(node, ast.FunctionDef):
                uses[node.name] |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return uses


@dataclass
class Runner:
    """Runs tests in the copy."""

    tree: Path
    limit: int
    also: list[str]  # further tests, after those that have to do with the module
    known: dict[str, bool]  # tests, and whether they pass without a mistake

    def outcome(self, mistake: Mistake) -> str:
        """The test that noticed it, or how it survived."""
        files = tests_of(self.tree, mistake.file)
        for place in map(self.tree.joinpath, self.also):
            more = sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
            names = [path.relative_to(self.tree).as_posix() for path in more]
            files += [name for name in names if name not in files]
        while True:
            with planted(self.tree, mistake):
                test, how = self.failing(files)
            if not test:
                return f"SURVIVED ({how})"
            if test not in self.known:
                self.known[test] = not self.failing([test])[0]
            if self.known[test]:
                return f"{test}{how}"

    def failing(self, files: list[str]) -> tuple[str, str]:
        """The first test that fails, if any, and how."""
        words = [sys.executable, "-m", "pytest", "-x", "-vv", "--tb=no", "-p", "no:cacheprovider"]
        words += [f"--basetemp={self.tree.parent / 'tests'}", "-o", f"faulthandler_timeout={STUCK}"]
        words += ["-o", "faulthandler_exit_on_timeout=true"]
        words += [f"--deselect={test}" for test, good in self.known.items() if not good]
        more = {"PYTHONPATH": str(self.tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        said = self.tree.parent / "said.txt"
        with said.open("w") as file:
            run = subprocess.Popen(
                [*words, *files],
                cwd=self.tree,
                env={k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | more,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (self.limit,) * 2),
            )
            try:
                code = run.wait()
            finally:
                _end(run)
        return _read(said.read_text(errors="replace"), code, files)


def _end(run: subprocess.Popen[bytes]) -> None:
    """The tests, and what they have started."""
    with suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.wait()


def _read(said: str, code: int, files: list[str]) -> tuple[str, str]:
    begun = re.findall(r"^(tests/\S+?\.py::.+?)(?: +(?:[A-Z]+ .*)?)?$", said, re.MULTILINE)
    if code == 0:
        return "", f"all of {counted(len(files), 'file')} of tests pass"
    if code in (-signal.SIGXCPU, -signal.SIGKILL):  # the limit
        reached = {test.split("::")[0] for test in begun}
        return "", f"tests of {len(reached)} of {counted(len(files), 'file')} within the limit"
    unread = re.findall(r"^ERROR (tests/\S+\.py)", said, re.MULTILINE)  # fails at import
    how = " (stuck)" if "Timeout (" in said else "" if code == 1 else f" (exit {code})"
    return (begun[-1:] or unread or files)[0], how


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a room, such as posterior")
    parser.add_argument("--limit", type=int, default=150, help="seconds of computing per mistake")
    parser.add_argument("--numbers", default="", help="of the lot, such as 3,7")
    parser.add_argument("--also", nargs="*", default=[], help="further tests, such as tests/runs")
    given = parser.parse_args()
    lot = dict(enumerate(draw(HERE, given.count, given.seed, given.only), start=1))
    chosen = [int(one) for one in given.numbers.split(",") if one] or list(lot)
    caught: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mistakes-") as folder:
        tree = Path(folder, "tree")
        shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        runner = Runner(tree, given.limit, given.also, {})
        for number in chosen:
            begin = time.perf_counter()
            outcome = runner.outcome(lot[number])
            caught[room_of(lot[number].file)] += not outcome.startswith("SURVIVED")
            taken = time.perf_counter() - begin
            print(f"{number:3} {lot[number]}\n    {outcome}, {taken:.0f} s", flush=True)
    planted_in = Counter(room_of(lot[number].file) for number in chosen)
    rows = [(room, n, caught[room], n - caught[room]) for room, n in planted_in.items()]
    rows.append(("all", len(chosen), sum(caught.values()), len(chosen) - sum(caught.values())))
    show(f"Mistakes, seed {given.seed}", ["room", "planted", "caught", "survived"], rows)


if __name__ == "__main__":
    main()

"""Whether this version gives the same results as an earlier one, byte for byte.

    python benchmarks/same_bytes.py OLD [--data DIR] [--quick] [--only WORD]

OLD is a checkout of an earlier commit with its own .venv (or `--old-python`). Both versions run the
same commands in temporary folders of their own, and what they write is compared. Run it before and
after a change of the code that is meant to change nothing else. DIR holds real calls:
conversations.csv, key.csv, claimed.csv and their recordings.

A difference in a file of REQUIRED makes the exit code 1; other files are reported. A column or an
array that only the new version has is no difference, nor is a value of RENAMED.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
REQUIRED = ("assignments.csv", "cliques.csv", "llrs.npz")
REPORTED = (
    *("methods.csv", "suspects.csv", "scores.npz", "calibration.json", "evaluation.json"),
    *("conversations.csv", "scores.csv", "key.csv"),
)
# Column → values that have another name now: methods are called as `--method` calls them.
RENAMED = {"method": {"sampling": "sample", "propagation": "bp"}}
LABEL_FREE_KINDS = ("cmlg", "lr", "lr-floor", "pav")
SIM, OUT = "sim", "out"

Step = tuple[str, ...] | Callable[[Path], None]  # the words of a command, or work on its files


@dataclass(frozen=True)
class Version:
    """A checkout, and the Python that has what it needs."""

    name: str
    checkout: Path
    python: Path

    def doubts_lists(self) -> bool:
        settings = self.checkout / "src" / "spklink" / "settings.py"
        return settings.exists() and "list_errors" in settings.read_text(encoding="utf-8")

    def run(self, words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run `spklink WORDS` of this checkout, wherever its entry point is, in a folder; lists are
        taken at their word, as they were before they could be wrong."""
        if words[0] == "link" and self.doubts_lists():
            words = (*words, "--list-errors", "0")
        project = tomllib.loads((self.checkout / "pyproject.toml").read_text(encoding="utf-8"))
        module, _, function = project["project"]["scripts"]["spklink"].partition(":")
        start = f"import sys; from {module} import {function} as main; sys.argv[0] = 'spklink'; "
        return subprocess.run(
            [str(self.python), "-c", f"{start}main()", *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(self.checkout / "src")},
            capture_output=True,
            text=True,
            check=False,
        )


@dataclass(frozen=True)
class Case:
    """Commands of which all results are compared."""

    name: str
    steps: tuple[Step, ...]
    folders: tuple[str, ...] = (SIM, OUT)
    quick: bool = True


# --- what is run ---------------------------------------------------------------------------------


def cases(data: Path | None) -> Iterator[Case]:
    yield _simulated("cgn, gaussian")
    yield _simulated("cgn, plda, npz", "--world plda --npz", scores="scores.npz")
    yield _simulated("pairs", "--shape pairs")
    yield _simulated("star of 30", "--shape star --conversations 30 --world plda")
    yield _simulated("star of 400, 20 %", "--shape star --conversations 400 --eer 20")
    yield _simulated("network of 2000", "--shape network --conversations 2000")
    yield _simulated("known channels", "--eer 20", "--known known.csv", before=_some_known)
    yield _simulated("groups", "", "", before=_two_groups)
    yield _simulated("weight chain", "--eer 20", "--weight chain")
    yield _simulated("weight book", "--eer 20", "--weight book --beta .5")
    for kind in LABEL_FREE_KINDS:
        how = f"--calibration labelfree --kind {kind}"
        yield _simulated(f"label-free {kind}", "--world plda --eer 10", how)
    for preset in ("default", "paper"):
        demo = ("demo", "-o", "demo", "--preset", preset)
        calls = "demo/calls/conversations.csv"
        linked = ("link", calls, "-o", OUT, "--preset", preset, "--no-report")
        yield Case(f"demo, {preset}", (demo, linked), ("demo/calls", OUT), quick=False)
    if data is not None:
        yield from _real(data.resolve())


def _simulated(
    name: str,
    world: str = "",
    how: str = "",
    *,
    scores: str = "scores.csv",
    before: Callable[[Path], None] | None = None,
) -> Case:
    """Simulate, solve and measure."""
    table, given, key = f"{SIM}/conversations.csv", f"{SIM}/{scores}", f"{SIM}/key.csv"
    make = ("simulate", SIM, "--seed", "1", *world.split())
    solve = ("assign", table, "--scores", given, "-o", OUT, *how.split())
    measure = ("evaluate", OUT, "--key", key, "--json")
    return Case(name, (make, *([before] if before else []), solve, measure))


def _real(data: Path) -> Iterator[Case]:
    table, key = str(data / "conversations.csv"), data / "key.csv"

    def known(folder: Path) -> None:
        _copy_rows(key, folder / "known.csv", 20)

    for preset in ("default", "paper"):
        link = ("link", table, "-o", OUT, "--preset", preset, "--no-report")
        measure = ("evaluate", OUT, "--key", str(key), "--json")
        yield Case(f"real calls, {preset}", (link, measure), (OUT,), quick=False)
    plain = ("link", table, "-o", OUT, "--no-report")
    yield Case("real, known", (known, (*plain, "--known", "known.csv")), (OUT,), quick=False)
    claimed = (*plain, "--claimed", str(data / "claimed.csv"))
    yield Case("real, claimed", (claimed,), (OUT,), quick=False)


def _some_known(folder: Path) -> None:
    """Both channels of the first ten conversations."""
    _copy_rows(folder / SIM / "key.csv", folder / "known.csv", 20)


def _two_groups(folder: Path) -> None:
    """Every other conversation belongs to another group."""
    path = folder / SIM / "conversations.csv"
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    lines = [f"{header},group", *(f"{row},{'ab'[k % 2]}" for k, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _copy_rows(source: Path, target: Path, count: int) -> None:
    lines = source.read_text(encoding="utf-8").splitlines()
    target.write_text("\n".join(lines[: count + 1]) + "\n", encoding="utf-8")


def run(case: Case, version: Version, folder: Path) -> str:
    """Take all steps in a folder; what went wrong, empty where nothing did."""
    folder.mkdir(parents=True)
    for step in case.steps:
        if callable(step):
            step(folder)
            continue
        done = version.run(step, folder)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return f"{version.name} version, {step[0]}: {why}"
        if step[0] == "evaluate":
            (folder / OUT / "evaluation.json").write_text(done.stdout, encoding="utf-8")
    return ""


# --- what is compared ----------------------------------------------------------------------------


def compare(old: Path, new: Path) -> tuple[bool, str]:
    """Whether two files are the same, and what is to be said about it."""
    if not (old.exists() and new.exists()):
        return False, f"only in the {'new' if new.exists() else 'old'} version"
    if old.read_bytes() == new.read_bytes():
        return True, "same"
    by_suffix = {".csv": _compare_tables, ".npz": _compare_arrays}
    return by_suffix.get(old.suffix, _compare_lines)(old, new)


def _compare_tables(old: Path, new: Path) -> tuple[bool, str]:
    """Of two tables whose bytes differ."""
    (old_names, old_rows), (names, rows) = _table(old), _table(new)
    if lost := [name for name in old_names if name not in names]:
        return False, f"differs: no column {', '.join(lost)} any more"
    if len(rows) != len(old_rows):
        return False, f"differs: {len(rows)} rows, not {len(old_rows)}"
    at = [names.index(name) for name in old_names]
    renamed, first, count = False, "", 0
    for number, (before, row) in enumerate(zip(old_rows, rows, strict=True), start=2):
        differ = [
            x for x in zip(old_names, before, (row[k] for k in at), strict=True) if x[1] != x[2]
        ]
        wrong = [(name, a, b) for name, a, b in differ if RENAMED.get(name, {}).get(a) != b]
        renamed = renamed or len(wrong) < len(differ)
        count += bool(wrong)
        if wrong and not first:
            first = "row {}, {}: {} is {} now".format(number, *wrong[0])
    if count:
        return False, f"differs in {count} rows of {len(rows)}; {first}"
    more = [name for name in names if name not in old_names]
    excuses = [f"new column {', '.join(more)}"] * bool(more) + ["renamed values"] * bool(renamed)
    if not excuses:
        return False, "differs: the same values, written in another way"
    return True, f"same, but for {' and '.join(excuses)}"


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def _compare_arrays(old: Path, new: Path) -> tuple[bool, str]:
    """Of two archives whose bytes differ."""
    with np.load(old) as before, np.load(new) as after:
        for name in before.files:
            if name not in after.files:
                return False, f"differs: no array {name} any more"
            a, b = before[name], after[name]
            if a.dtype != b.dtype or a.shape != b.shape:
                return False, f"differs: {name} is {b.dtype} {b.shape}, not {a.dtype} {a.shape}"
            if a.tobytes() != b.tobytes():
                return False, f"differs: {name}{_by_how_much(a, b)}"
        more = [name for name in after.files if name not in before.files]
    if more:
        return True, f"same, but for new array {', '.join(more)}"
    return False, "differs: the same arrays, written in another way"


def _by_how_much(a: np.ndarray, b: np.ndarray) -> str:
    count = f" in {int((a != b).sum())} of {a.size} values"
    numbers = np.issubdtype(a.dtype, np.floating)
    return count + (f", by {np.abs(a - b).max():.3g} at most" if numbers else "")


def _compare_lines(old: Path, new: Path) -> tuple[bool, str]:
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (old, new)]
    for number, (a, b) in enumerate(zip_longest(*lines), start=1):
        if a != b:
            return False, f"differs from line {number}: {a} is {b} now"
    return False, "differs: the same lines, ended in another way"


def compare_case(case: Case, versions: tuple[Version, Version], folder: Path) -> bool:
    """Run a case, print a line a file; whether all that is required is the same."""
    folders = [folder / version.name for version in versions]
    failed = [run(case, version, at) for version, at in zip(versions, folders, strict=True)]
    if any(failed):
        _print(case.name, "-", "; ".join(filter(None, failed)))
        return False
    fine = True
    for place in case.folders:
        for name in (*REQUIRED, *REPORTED):
            old, new = (at / place / name for at in folders)
            if old.exists() or new.exists():
                same, verdict = compare(old, new)
                fine = fine and (same or name not in REQUIRED)
                reported = "" if same or name in REQUIRED else " (not required)"
                _print(case.name, f"{place}/{name}", verdict + reported)
    return fine


def _print(case: str, file: str, verdict: str) -> None:
    print(f"{case:<22} {file:<30} {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="checkout of an earlier commit")
    parser.add_argument("--old-python", type=Path, help="else OLD/.venv/bin/python")
    parser.add_argument("--data", type=Path, help="folder of real calls")
    parser.add_argument("--quick", action="store_true", help="leave out all that listens to sound")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains WORD")
    given = parser.parse_args()
    python = given.old_python or given.old / ".venv" / "bin" / "python"
    versions = (
        Version("old", given.old.resolve(), Path(os.path.abspath(python))),  # noqa: PTH100
        Version("new", HERE, Path(sys.executable)),
    )
    chosen = [c for c in cases(given.data) if given.only in c.name and (c.quick or not given.quick)]
    _print("case", "file", "the new version against the old one")
    with tempfile.TemporaryDirectory() as folder:
        fine = [compare_case(c, versions, Path(folder, str(k))) for k, c in enumerate(chosen)]
    print(f"{sum(fine)} of {len(fine)} cases have the same results")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Whether this version gives the same results as an earlier one, byte for byte.

    python benchmarks/same_bytes.py OLD [--data DIR] [--quick] [--only WORD] [--keep FOLDER]

OLD is a checkout of an earlier commit with its own .venv (or `--old-python`). Both versions run the
same commands with their defaults (lists may be wrong) in folders of their own, and every file that
they write is compared: tables, arrays, JSON, exports, what is handed over after a review. Run it
before and after a change of the code that is meant to change nothing else. DIR holds real calls:
conversations.csv, key.csv, claimed.csv, turns.csv and their recordings.

Left out are what a clock says, prose (IGNORED) and entries of RENAMED; anything else makes the
exit code 1. With --tolerance X numbers of tables and arrays may differ by X: where an exact method
was replaced by another exact one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent.parent
# Pages are prose; caches are a version's own; timings.json is what a clock says.
IGNORED = ("*.html", "*/cache/*", "*/timings.json", "*.sqlite*", "*/.spklink*")
TIMES = ("seconds", "time", "times", "timings", "made", "date", "stages", "versions")  # of JSON
# (file, column) → values that have another name now. Each has a line in CHANGELOG.md.
RENAMED: dict[tuple[str, str], dict[str, str]] = {}
ADDED = ("posterior.npz",)  # files that OLD did not write
LABEL_FREE_KINDS = ("cmlg", "lr", "lr-floor", "pav")
FORMATS = ("kaldi", "lhotse", "rttm", "textgrid", "elan", "ctm", "nist", "parquet", "stm")
SIM, OUT = "sim", "out"


@dataclass(frozen=True)
class Version:
    """A checkout, and the Python that has what it needs."""

    name: str
    checkout: Path
    python: Path

    def run(self, words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run `spklink WORDS` of this checkout in a folder."""
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
class Printed:
    """A command whose standard output is kept in a file and compared."""

    words: tuple[str, ...]
    file: str


Step = tuple[str, ...] | Printed | Callable[[Path], None]  # a command, or work on its files


@dataclass(frozen=True)
class Case:
    """Commands of which everything that they write is compared."""

    name: str
    steps: tuple[Step, ...]
    quick: bool = True


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def evaluated(out: str = OUT, key: str = f"{SIM}/key.csv") -> Printed:
    return Printed(("evaluate", out, "--key", key, "--json"), "evaluation.json")


# --- what is run ---------------------------------------------------------------------------------


def cases(data: Path | None) -> Iterator[Case]:
    yield from _bits()
    yield from _lists()
    yield _centre()
    yield _enrolled()
    yield from _partitions()
    yield from _demo()
    if data is not None:
        yield from _real(data.resolve())


def _assigned(
    name: str,
    world: str = "",
    how: str = "",
    *,
    scores: str = "scores.csv",
    before: Callable[[Path], None] | None = None,
    after: tuple[Step, ...] = (),
) -> Case:
    """Simulate, solve and measure."""
    make = words(f"simulate {SIM} --seed 1 {world}")
    solve = words(f"assign {SIM}/conversations.csv --scores {SIM}/{scores} -o {OUT} {how}")
    return Case(name, (make, *([before] if before else []), solve, evaluated(), *after))


def _bits() -> Iterator[Case]:
    """Two certain people on two channels, lists taken at their word: `assign`."""
    report: tuple[Step, ...] = (("report", OUT),)
    yield _assigned("cgn, gaussian", after=report)
    yield _assigned("cgn, plda, npz", "--world plda --npz", scores="scores.npz")
    yield _assigned("pairs", "--shape pairs")
    yield _assigned("star of 30", "--shape star --conversations 30 --world plda", after=report)
    yield _assigned("star of 400, 20 %", "--shape star --conversations 400 --eer 20")
    yield _assigned("network of 2000", "--shape network --conversations 2000")
    yield _assigned("known channels", "--eer 20", "--known known.csv", before=_some_known)
    yield _assigned("groups", before=_two_groups)
    yield _assigned("weight chain", "--eer 20", "--weight chain")
    yield _assigned("weight book", "--eer 20", "--weight book --beta .5")
    for kind in LABEL_FREE_KINDS:
        how = f"--calibration labelfree --kind {kind}"
        yield _assigned(f"label-free {kind}", "--world plda --eer 10", how)
    for method in ("trace", "tree", "blocks", "certified", "sample", "bp"):
        world = f"--shape star --conversations 18 --eer {35 if method == 'sample' else 15}"
        yield _assigned(f"method {method}", world, f"--method {method}")


def _lists() -> Iterator[Case]:
    """Lists that may be wrong, meetings, people on two tracks."""
    auto = "--list-errors auto"
    reviewed = _reviewed(OUT, f"{SIM}/key.csv")
    yield _assigned("lists, cgn", "--world plda", auto, after=(("report", OUT), *reviewed))
    yield _assigned("lists, rate", "--world plda", "--list-errors .05", before=_possible)
    yield _assigned("lists, possible", "--world plda", auto, before=_possible)
    yield _assigned("lists, unknown", "--world plda", auto, before=_placeholders)
    star = "--shape star --conversations 60 --world plda"
    yield _assigned("lists, star of 60", star, auto)
    yield _assigned("lists, known", "--eer 20", f"{auto} --known known.csv", before=_some_known)
    meetings = "--shape meetings --conversations 40 --people 25 --tracks 3-5"
    some = f"{meetings} --missing .1 --absent .1 --placeholders .05"
    yield _assigned("meetings", meetings, after=(("report", OUT), *reviewed))
    yield _assigned("meetings, wrong lists", some, auto, after=(("report", OUT),))
    yield _assigned("meetings, split", f"{meetings} --split .1", "--split-speakers .05")
    linked = words(f"link {SIM}/conversations.csv --scores {SIM}/scores.csv -o {OUT}")
    link_given = (*linked, "--calibration", "none", "--no-report")
    simulated = words(f"simulate {SIM} --seed 2 --world plda")
    yield Case("link, given scores", (simulated, link_given, evaluated()))
    vectors = words("link calls.csv --embeddings vectors.npz -o out")
    yield Case("link, wrong lists", (_make_wrong_lists, vectors, *_reviewed(OUT, "key.csv")))


def _centre() -> Case:
    """Agents with very many calls, given as vectors; more calls arrive."""
    link = words("link calls.csv --embeddings vectors.npz -o out --no-report")
    more = words("link more.csv --embeddings vectors.npz -o out --no-report")
    return Case("centre", (_make_centre, link, _copied("out", "first"), more))


def _enrolled() -> Case:
    link = words("link open.csv --embeddings vectors.npz --enrol enrol.csv -o out")
    return Case("enrolment", (_make_enrolment, link))


def _partitions() -> Iterator[Case]:
    for name, how in (("linked", "--method agglomerative"), ("sampled", "--sweeps 100")):
        run = words(f"partition unlisted.csv --embeddings vectors.npz -o who {how}")
        yield Case(f"partition, {name}", (_make_unlisted, run, ("report", "who")))


def _demo() -> Iterator[Case]:
    calls = "demo/calls/conversations.csv"
    for preset in ("default", "paper"):
        demo = words(f"demo -o demo --preset {preset}")
        linked = words(f"link {calls} -o {OUT} --preset {preset}")
        again = (_copied(OUT, "first"), linked)  # an unchanged re-run
        exports = [
            words(f"export {OUT} -o exported/{one} --to {one} --only {only}")
            for one, only in zip(FORMATS, ("settled", "all") * len(FORMATS), strict=False)
        ]
        reviewed = _reviewed(OUT, "demo/calls/key.csv")
        yield Case(f"demo, {preset}", (demo, linked, *again, *exports, *reviewed), quick=False)
    yield Case("demo, meetings", (words("demo -o demo --meetings"),), quick=False)
    watch = words(f"watch growing.csv -o {OUT} --once --no-report")
    arriving = (_growing(60), watch, _copied(OUT, "first"), _growing(200), watch)
    yield Case("demo, watch", (words("demo -o demo"), *arriving), quick=False)


def _real(data: Path) -> Iterator[Case]:
    table, key = str(data / "conversations.csv"), str(data / "key.csv")

    def known(folder: Path) -> None:
        _copy_rows(Path(key), folder / "known.csv", 20)

    def some(folder: Path) -> None:
        """A hundred calls, of which every tenth list names somebody else."""
        rows = _read(Path(table))[:100]
        people = sorted({one for row in rows for one in row["participants"].split(";")})
        for k, row in enumerate(rows):
            row["audio"] = str(data / row["audio"])
            if k % 10 == 3:
                mine = row["participants"].split(";")
                mine[0] = next(one for one in people[k % 20 :] if one not in mine)
                row["participants"] = ";".join(mine)
        _write(folder / "some.csv", rows)

    for preset in ("default", "paper"):
        link = ("link", table, "-o", OUT, "--preset", preset)
        more = _reviewed(OUT, key) if preset == "default" else ()
        yield Case(f"real calls, {preset}", (link, evaluated(OUT, key), *more), quick=False)
    plain = ("link", table, "-o", OUT, "--no-report")
    yield Case("real, known", (known, (*plain, "--known", "known.csv")), quick=False)
    claimed = (*plain, "--claimed", str(data / "claimed.csv"))
    yield Case("real, claimed", (claimed,), quick=False)
    turns = (*plain, "--turns", str(data / "turns.csv"))
    yield Case("real, turns", (turns,), quick=False)
    wrong = ("link", "some.csv", "-o", OUT)
    yield Case("real, wrong lists", (some, wrong, evaluated(OUT, key)), quick=False)


def _reviewed(out: str, key: str) -> tuple[Step, ...]:
    """What people heard, and all that follows from it: queue, hand-over, the same run with it."""
    return (
        Printed(words(f"queue {out} --json"), "queue.json"),
        lambda folder: write_decisions(folder, out, key),
        Printed(words(f"queue {out} --json"), "queue-after.json"),
        words(f"decisions {out} -o handed-over"),
        ("report", out),
    )


# --- what is made for it --------------------------------------------------------------------------


def write_decisions(folder: Path, out: str, key: str) -> None:
    """A log of decisions as review writes it, made by plain SQL: two conversations heard as the key
    has them, one otherwise, one of which nobody can tell, one decision taken back."""
    truth: dict[str, dict[int, str]] = {}
    for row in _read(folder / key):
        truth.setdefault(row["conversation"], {})[int(row["channel"])] = row["speaker"]
    table = _read(folder / out / "assignments.csv")
    channels: dict[str, list[str]] = {}
    for row in table:
        channels.setdefault(row["conversation"], []).append(row["channel"])
    names = [name for name in channels if len(truth.get(name, {})) == len(channels[name])][:5]
    log = sqlite3.connect(folder / out / "review.sqlite")
    log.executescript(
        "create table if not exists decisions (number integer primary key, "
        "request text not null unique, entry text not null);"
    )
    before, number = "0" * 64, 0

    def add(name: str, verdict: str, seats: list[str | None], undoes: int | None = None) -> None:
        nonlocal before, number
        number += 1
        entry = {
            "number": number,
            "time": f"2026-01-0{number}T10:00:00.000+00:00",
            "reviewer": "anna" if number % 2 else "bert",
            "conversation": name,
            "verdict": verdict,
            "seats": seats,
            "why": "",
            "shown": {},
            "undoes": undoes,
            "request": f"{number:032x}",
            "before": before,
        }
        before = sha256(_canonical(entry).encode()).hexdigest()
        text = _canonical(entry | {"hash": before})
        log.execute("insert into decisions values (?, ?, ?)", (number, entry["request"], text))

    for k, name in enumerate(names):
        heard: list[str | None] = [truth[name][c] for c in sorted(truth[name])]
        if k == 2:
            heard = heard[::-1]
        add(name, "unsure" if k == 3 else "heard", [None] * len(heard) if k == 3 else heard)
    add(names[4], "undo", [], undoes=5)
    log.commit()
    log.close()


def _canonical(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


def _make_vectors(folder: Path, pairs: list[tuple[int, int]], people: int) -> np.ndarray:
    """vectors.npz of simulated voices; which of the two is on channel 1."""
    rng = np.random.default_rng(7)
    own = rng.standard_normal((people, 32))
    turned = rng.random(len(pairs)) < 0.5
    who = np.array([(b, a) if t else (a, b) for (a, b), t in zip(pairs, turned, strict=True)])
    vectors = own[who.ravel()] + 0.9 * rng.standard_normal((2 * len(pairs), 32))
    np.savez(
        folder / "vectors.npz",
        conversation=np.repeat([f"call{k}" for k in range(len(pairs))], 2),
        channel=np.tile([1, 2], len(pairs)),
        embedding=vectors.astype(np.float32),
    )
    return who


def _make_centre(folder: Path) -> None:
    rng = np.random.default_rng(3)
    pairs = [(k % 3, 3 + int(rng.integers(600))) for k in range(900)]
    _make_vectors(folder, pairs, 603)
    rows = [
        {"conversation": f"call{k}", "participants": f"p{a};p{b}"} for k, (a, b) in enumerate(pairs)
    ]
    _write(folder / "calls.csv", rows[:880])
    _write(folder / "more.csv", rows)


def _make_wrong_lists(folder: Path) -> None:
    """Every twelfth list names somebody who is not there."""
    rng = np.random.default_rng(5)
    pairs = [(int(a), int(b)) for a, b in (rng.permutation(30)[:2] for _ in range(120))]
    who = _make_vectors(folder, pairs, 30)
    rows, key = [], []
    for k, (a, b) in enumerate(pairs):
        listed = sorted({f"p{(a + 1) % 30 if k % 12 == 5 else a}", f"p{b}"})
        rows.append({"conversation": f"call{k}", "participants": ";".join(listed)})
        key += [
            {"conversation": f"call{k}", "channel": str(c + 1), "speaker": f"p{who[k, c]}"}
            for c in (0, 1)
        ]
    _write(folder / "calls.csv", rows)
    _write(folder / "key.csv", key)


def _make_enrolment(folder: Path) -> None:
    rng = np.random.default_rng(4)
    pairs = [(k % 6, 6 + int(rng.integers(60))) for k in range(90)]
    who = _make_vectors(folder, pairs, 66)
    rows = [{"conversation": f"call{k}", "participants": ""} for k in range(12, 90)]
    rows += [{"conversation": "call0", "participants": "p0;?"}]
    _write(folder / "open.csv", rows)
    enrolled = [k for k in range(1, 12) if who[k, 0] == k % 6]  # one track each, their own
    people = [{"speaker": f"p{k % 6}", "recording": f"call{k}"} for k in enrolled]
    _write(folder / "enrol.csv", people)
    with np.load(folder / "vectors.npz") as made:
        arrays = dict(made)
    other = np.isin(arrays["conversation"], [f"call{k}" for k in enrolled])
    keep = ~(other & (arrays["channel"] == 2))
    np.savez(folder / "vectors.npz", **{name: one[keep] for name, one in arrays.items()})


def _make_unlisted(folder: Path) -> None:
    pairs = [(k % 5, 5 + (k * 3) % 4) for k in range(30)]
    _make_vectors(folder, pairs, 9)
    rows = [{"conversation": f"call{k}", "participants": ""} for k in range(30)]
    _write(folder / "unlisted.csv", rows)


def _growing(count: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        rows = _read(folder / "demo/calls/conversations.csv")[:count]
        for row in rows:
            row["audio"] = f"demo/calls/{row['audio']}"
        _write(folder / "growing.csv", rows)

    return write


def _copied(source: str, target: str) -> Callable[[Path], None]:
    """Results copied before a second run replaces them: both are compared."""

    def copy(folder: Path) -> None:
        (folder / target).mkdir()
        for path in sorted((folder / source).glob("*.*")):
            (folder / target / path.name).write_bytes(path.read_bytes())

    return copy


def _some_known(folder: Path) -> None:
    """Both channels of the first ten conversations."""
    _copy_rows(folder / SIM / "key.csv", folder / "known.csv", 20)


def _two_groups(folder: Path) -> None:
    """Every other conversation belongs to another group."""
    rows = _read(folder / SIM / "conversations.csv")
    _write(
        folder / SIM / "conversations.csv",
        [row | {"group": "ab"[k % 2]} for k, row in enumerate(rows)],
    )


def _possible(folder: Path) -> None:
    """In every eighth list the first person is only possible."""
    path = folder / SIM / "conversations.csv"
    rows = _read(path)
    for k in range(8, len(rows), 8):
        first, second = rows[k]["participants"].split(";")
        rows[k]["participants"] = f"?{first};{second}"
    _write(path, rows)


def _placeholders(folder: Path) -> None:
    """Every sixth list names one person only, and says that there is somebody else."""
    path = folder / SIM / "conversations.csv"
    rows = _read(path)
    for k in range(0, len(rows), 6):
        rows[k]["participants"] = rows[k]["participants"].split(";")[0] + ";?"
    _write(path, rows)


def _copy_rows(source: Path, target: Path, count: int) -> None:
    lines = source.read_text(encoding="utf-8").splitlines()
    target.write_text("\n".join(lines[: count + 1]) + "\n", encoding="utf-8")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def run(case: Case, version: Version, target: Path) -> str:
    """Take all steps; what went wrong, empty where nothing did. Both versions work in one place,
    which some files name, and the results are moved from there."""
    folder = Path(tempfile.gettempdir(), "spklink-same-bytes", case.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for step in case.steps:
        if callable(step):
            step(folder)
            continue
        asked = step.words if isinstance(step, Printed) else step
        done = version.run(asked, folder)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return f"{version.name} version, {asked[0]}: {why}"
        if isinstance(step, Printed):
            (folder / step.file).write_text(done.stdout, encoding="utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, target)
    return ""


# --- what is compared ----------------------------------------------------------------------------


def compare(old: Path, new: Path, tolerance: float = 0.0) -> tuple[bool, str]:
    """Whether two files are the same, and what is to be said about it."""
    if new.exists() and not old.exists() and new.name in ADDED:
        return True, "added"
    if not (old.exists() and new.exists()):
        return False, f"only in the {'new' if new.exists() else 'old'} version"
    if old.read_bytes() == new.read_bytes():
        return True, "same"
    if old.suffix == ".csv":
        return _compare_tables(old, new, tolerance)
    if old.suffix == ".npz":
        return _compare_arrays(old, new, tolerance)
    if old.suffix == ".json":
        return _compare_json(old, new, tolerance)
    if old.suffix in (".parquet", ".gz", ".flac", ".wav", ".png"):
        return False, "differs"
    return _compare_lines(old, new)


def _compare_tables(old: Path, new: Path, tolerance: float) -> tuple[bool, str]:
    """Of two tables whose bytes differ."""
    (names, old_rows), (new_names, rows) = _table(old), _table(new)
    if names != new_names:
        return False, f"differs: columns {','.join(new_names)}, not {','.join(names)}"
    if len(rows) != len(old_rows):
        return False, f"differs: {len(rows)} rows, not {len(old_rows)}"
    first, count, excused, largest = "", 0, False, 0.0
    for number, (before, row) in enumerate(zip(old_rows, rows, strict=True), start=2):
        wrong = []
        for name, a, b in zip(names, before, row, strict=True):
            if a == b:
                continue
            apart = _apart(a, b)
            if RENAMED.get((old.name, name), {}).get(a) == b:
                excused = True
            elif apart <= tolerance:
                largest = max(largest, apart)
            else:
                wrong.append((name, a, b))
        count += bool(wrong)
        if wrong and not first:
            first = "row {}, {}: {} is {} now".format(number, *wrong[0])
    if count:
        return False, f"differs in {count} rows of {len(rows)}; {first}"
    if largest:
        return True, f"same within {largest:.3g}"
    if excused:
        return True, "same, but for renamed values"
    return False, "differs: the same values, written in another way"


def _apart(a: str, b: str) -> float:
    """How far two cells are apart; infinitely where they are no numbers."""
    try:
        return abs(float(a) - float(b))
    except ValueError:
        return np.inf


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def _compare_arrays(old: Path, new: Path, tolerance: float) -> tuple[bool, str]:
    """Of two archives whose bytes differ."""
    largest = 0.0
    with np.load(old) as before, np.load(new) as after:
        if sorted(before.files) != sorted(after.files):
            return False, f"differs: arrays {', '.join(after.files)}, not {', '.join(before.files)}"
        for name in before.files:
            a, b = before[name], after[name]
            if a.dtype != b.dtype or a.shape != b.shape:
                return False, f"differs: {name} is {b.dtype} {b.shape}, not {a.dtype} {a.shape}"
            if a.tobytes() != b.tobytes():
                floating = np.issubdtype(a.dtype, np.floating)
                apart = float(np.nanmax(np.abs(a - b))) if floating else np.inf
                if apart > tolerance:
                    count = f"{int((a != b).sum())} of {a.size} values"
                    return False, f"differs: {name} in {count}, by {apart:.3g} at most"
                largest = max(largest, apart)
    return (True, f"same within {largest:.3g}") if largest else (True, "same arrays")


def _compare_json(old: Path, new: Path, tolerance: float) -> tuple[bool, str]:
    """Of two JSON files, without what a clock says."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    for place, a, b in _differences(before, after, ""):
        numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))
        if not (numbers and abs(a - b) <= tolerance):
            return False, f"differs: {place}: {str(a)[:60]} is {str(b)[:60]} now"
    return True, "same, but for times"


def _differences(a: Any, b: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            if key not in TIMES:
                yield from _differences(
                    a.get(key, "nothing"), b.get(key, "nothing"), f"{place}.{key}"
                )
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _differences(x, y, f"{place}[{k}]")
    elif a != b and not (a != a and b != b):
        yield place, a, b


def _compare_lines(old: Path, new: Path) -> tuple[bool, str]:
    lines = [path.read_bytes().splitlines() for path in (old, new)]
    for number, (a, b) in enumerate(zip_longest(*lines), start=1):
        if a != b:
            return False, f"differs from line {number}: {a!r} is {b!r} now"
    return False, "differs: the same lines, ended in another way"


def compare_folders(
    case: str, old: Path, new: Path, tolerance: float, ignored: tuple[str, ...] = IGNORED
) -> bool:
    """Compare all files of two folders; print those that differ, and how many do not."""
    names = sorted(
        {
            str(path.relative_to(top))
            for top in (old, new)
            for path in top.rglob("*")
            if path.is_file() and not any(fnmatch(str(path), one) for one in ignored)
        }
    )
    fine = 0
    for name in names:
        same, verdict = compare(old / name, new / name, tolerance)
        fine += same
        if not same or verdict not in ("same", "same, but for times", "added"):
            _print(case, name, verdict)
    _print(case, "-", f"{fine} of {len(names)} files are the same")
    return fine == len(names)


def compare_case(
    case: Case, versions: tuple[Version, Version], folder: Path, kept: Path, tolerance: float
) -> bool:
    """Run a case in both versions, in the old one unless its results are kept; whether all files
    that they write are the same."""
    old, new = kept / case.name / "run", folder / case.name / "run"
    failed = ["" if old.exists() else run(case, versions[0], old), run(case, versions[1], new)]
    if any(failed):
        shutil.rmtree(old, ignore_errors=True)
        _print(case.name, "-", "; ".join(filter(None, failed)))
        return False
    same = compare_folders(case.name, old, new, tolerance)
    shutil.rmtree(new)
    return same


def _print(case: str, file: str, verdict: str) -> None:
    print(f"{case:<22} {file:<34} {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="checkout of an earlier commit")
    parser.add_argument("--old-python", type=Path, help="else OLD/.venv/bin/python")
    parser.add_argument("--data", type=Path, help="folder of real calls")
    parser.add_argument("--quick", action="store_true", help="leave out all that listens to sound")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains WORD")
    parser.add_argument("--keep", type=Path, help="folder that keeps what OLD gives, for next time")
    parser.add_argument("--tolerance", type=float, default=0.0, help="of numbers; else 0")
    given = parser.parse_args()
    python = given.old_python or given.old / ".venv" / "bin" / "python"
    versions = (
        Version("old", given.old.resolve(), Path(os.path.abspath(python))),  # noqa: PTH100
        Version("new", HERE, Path(sys.executable)),
    )
    chosen = [c for c in cases(given.data) if given.only in c.name and (c.quick or not given.quick)]
    _print("case", "file", "the new version against the old one")
    with tempfile.TemporaryDirectory() as folder:
        kept = given.keep or Path(folder, "old")
        fine = [
            compare_case(case, versions, Path(folder, "new"), kept, given.tolerance)
            for case in chosen
        ]
    print(f"{sum(fine)} of {len(fine)} cases have the same results")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

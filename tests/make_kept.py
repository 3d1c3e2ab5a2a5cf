"""Make the folders in tests/kept: results as this version writes them, for later versions to read.

    python tests/make_kept.py NEW_FOLDER [NAME…]

Every NAME (all of MAKERS by default) becomes NEW_FOLDER/NAME with

    results/       what `assign`, `link` or `partition` wrote
    key.csv        the truth
    segments.csv   who speaks when, for `export` (not of a partition)
    claimed.csv    claims to check, where there is a log
    handed-over/   what `decisions results -o handed-over --claimed claimed.csv` writes then

All of it is simulated, with fixed seeds; only the times in logs differ from run to run.

What is in tests/kept stays as it is: people have such folders, and `tests/test_kept_results.py`
holds every later version to reading them. Never make them anew to mend that test. When a version
writes something that none of them has, add a folder: write a maker, run this script with a new
folder and the maker's name, and move what it made to tests/kept.
"""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable
from contextlib import chdir, closing
from pathlib import Path
from unittest.mock import patch

import numpy as np

RESULTS, HANDED_OVER = "results", "handed-over"
PAIRS = ("conversation_1", "channel_1", "conversation_2", "channel_2")
TARGET = 5.4  # mean log-likelihood-ratio of one person's voices: an equal error rate of 5 %


def spklink(line: str) -> None:
    """Run a command in this process."""
    from spklink.cli.app import main

    try:
        with patch.object(sys, "argv", ["spklink", *line.split()]):
            main()
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"spklink {line}: exit code {stop.code}") from None


# --- what the commands are given ------------------------------------------------------------------


def write(name: str, rows: Iterable[dict[str, object]]) -> None:
    first, *rest = rows
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(first))
        writer.writeheader()
        writer.writerows([first, *rest])


def read(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def random_pairs(people: int, calls: int, seed: int) -> list[tuple[int, int]]:
    """Who is on channel 1 and on channel 2 of every call."""
    rng = np.random.default_rng(seed)
    return [(int(a), int(b)) for a, b in (rng.permutation(people)[:2] for _ in range(calls))]


def sides_of(pairs: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Conversation, channel and person of every side."""
    return [(f"call{k}", c + 1, who) for k, pair in enumerate(pairs) for c, who in enumerate(pair)]


def write_key(pairs: list[tuple[int, int]], first: int = 0) -> None:
    """key.csv, and segments.csv: channels take turns of three seconds. From a call on."""
    sides = sides_of(pairs)[2 * first :]
    write(
        "key.csv",
        ({"conversation": k, "channel": c, "speaker": f"p{who}"} for k, c, who in sides),
    )
    write(
        "segments.csv",
        (
            {"conversation": k, "channel": c, "start": 6.0 * n + 3 * c, "end": 6.0 * n + 3 * c + 2}
            for k, c, _ in sides
            for n in range(2)
        ),
    )


def write_ratios(pairs: list[tuple[int, int]], seed: int) -> None:
    """scores.csv: log-likelihood-ratios of all sides of different calls."""
    rng = np.random.default_rng(seed)
    sides, rows = sides_of(pairs), []
    for n, (one, channel, who) in enumerate(sides):
        for other, of_other, somebody in sides[n + 1 :]:
            if one != other:
                mean = TARGET if who == somebody else -TARGET
                ratio = mean + np.sqrt(2 * TARGET) * rng.standard_normal()
                values = (one, channel, other, of_other, f"{ratio:.4f}")
                rows.append(dict(zip((*PAIRS, "score"), values, strict=True)))
    write("scores.csv", rows)


def write_vectors(pairs: list[tuple[int, int]], people: int, noise: float, seed: int) -> None:
    """vectors.npz of all sides."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((people, 24))
    who = np.array(pairs)
    vectors = own[who.ravel()] + noise * rng.standard_normal((who.size, 24))
    np.savez(
        "vectors.npz",
        conversation=np.repeat([f"call{k}" for k in range(len(pairs))], 2),
        channel=np.tile([1, 2], len(pairs)),
        embedding=vectors.astype(np.float32),
    )


def listed(*names: str) -> str:
    return ";".join(sorted(set(names)))


# --- the folders ----------------------------------------------------------------------------------


def plain() -> None:
    """Two certain people per call, lists taken at their word, known channels, a name that begins as
    a formula does."""
    spklink("simulate sim --shape network --conversations 30 --world plda --seed 1")
    marked = {"s00": "=s00"}
    rows = read("sim/conversations.csv")
    for row in rows:
        names = row["participants"].split(";")
        row["participants"] = listed(*(marked.get(name, name) for name in names))
    write("conversations.csv", rows)
    key = read("sim/key.csv")
    write("key.csv", (row | {"speaker": marked.get(row["speaker"], row["speaker"])} for row in key))
    write("known.csv", read("key.csv")[:6])
    _segments_of(key)
    spklink(
        "assign conversations.csv --scores sim/scores.csv --list-errors 0 --safe-csv "
        f"--known known.csv -o {RESULTS}"
    )


def lists() -> None:
    """Lists that may be wrong, and some that are, in all ways that results tell apart."""
    _write_wrong_lists(9)
    spklink(
        "assign conversations.csv --scores scores.csv --known known.csv "
        f"--list-errors auto -o {RESULTS}"
    )


def parquet() -> None:
    """As `lists`, with Parquet tables."""
    _write_wrong_lists(6)
    spklink(
        "assign conversations.csv --scores scores.csv --list-errors .02 "
        f"--tables parquet -o {RESULTS}"
    )


def _write_wrong_lists(calls: int) -> None:
    """Three towns of five people each, with so many calls."""
    towns = [random_pairs(5, calls, seed) for seed in (5, 6, 7)]
    pairs = [(a + 5 * t, b + 5 * t) for t, town in enumerate(towns) for a, b in town]
    write_key(pairs)
    write_ratios(pairs, 6)
    rows = [
        {"conversation": f"call{k}", "participants": listed(*_as_listed(k, *pair))}
        for k, pair in enumerate(pairs)
    ]
    write("conversations.csv", rows)
    last = len(pairs) - 1
    known = [(0, pairs[0][0]), (1, pairs[1][0]), (last, pairs[last][1])]  # the last one is wrong
    write(
        "known.csv",
        ({"conversation": f"call{k}", "channel": 1, "speaker": f"p{who}"} for k, who in known),
    )


def _as_listed(k: int, a: int, b: int) -> tuple[str, str]:
    """Where NN may be anybody, where somebody has two names, where two have one, who is absent."""
    if 0 in (a, b) and k > 1:
        return f"p{a + b}", "NN"
    if 5 in (a, b) and k % 2:
        return f"p{a + b - 5}", "p5 again"
    if (a == 7) != (b == 7) and 6 not in (a, b):
        return f"p{a + b - 7}", "p6"
    if k % 5 == 2 and a >= 10:
        return f"p{a}", next(f"p{who}" for who in range(10, 15) if who not in (a, b))
    return f"p{a}", f"p{b}"


def meetings() -> None:
    """Three or four tracks; people who are listed and absent, present and not listed, `?`, `*`."""
    spklink(
        "simulate sim --shape meetings --conversations 10 --people 9 --tracks 3-4 "
        "--missing .1 --absent .1 --placeholders .1 --seed 3"
    )
    rows = read("sim/conversations.csv")
    for row in rows[::4]:
        row["participants"] += ";*"
    write("conversations.csv", rows)
    key = read("sim/key.csv")
    write("key.csv", key)
    _segments_of(key)
    spklink(f"assign conversations.csv --scores sim/scores.csv --list-errors auto -o {RESULTS}")


def _segments_of(key: list[dict[str, str]]) -> None:
    columns = ("conversation", "channel")
    write(
        "segments.csv",
        (
            {name: row[name] for name in columns} | {"start": 3 * k, "end": 3 * k + 2}
            for row in key
            for k in (int(row["channel"]), 5 + int(row["channel"]))
        ),
    )


def enrolled() -> None:
    """Vectors, people whose voices are known from elsewhere, and what two people decided."""
    people, calls = 6, 34
    pairs = [(k % people, people + k * 7 % 13) for k in range(calls)]
    pairs = [pair[::-1] if k % 3 == 1 else pair for k, pair in enumerate(pairs)]
    write_key(pairs, first=8)
    write_vectors(pairs, people + 13, 0.5, 7)
    rows = [{"conversation": f"call{k}", "participants": ""} for k in range(8, calls)]
    rows[0]["participants"] = f"p{pairs[8][0]};?"
    rows[1]["participants"] = f"p{pairs[9][0]};p{pairs[9][1]}"
    rows[2]["participants"] = f"p{pairs[10][0]};p{pairs[10][1]}"
    rows[3]["participants"] = f"?p{pairs[11][0]};*"
    write("conversations.csv", rows)
    enrol = [(k, pairs[k].index(k % people)) for k in range(8)]
    write(
        "enrol.csv",
        ({"speaker": f"p{k % people}", "recording": f"call{k}"} for k, _ in enrol),
    )
    with np.load("vectors.npz") as made:
        arrays = dict(made)
    keep = np.ones(len(arrays["channel"]), bool)
    keep[[2 * k + 1 - c for k, c in enrol]] = False  # of each only their own track, as channel 1
    arrays["channel"][: 2 * len(enrol)] = 1
    np.savez("vectors.npz", **{name: one[keep] for name, one in arrays.items()})
    spklink(
        "link conversations.csv --embeddings vectors.npz --enrol enrol.csv --no-report "
        f"-o {RESULTS} --cache cache"
    )
    _decide({f"call{k}": [f"p{who}" for who in pair] for k, pair in enumerate(pairs)})
    claimed = [row for row in read("key.csv") if row["conversation"] in ("call9", "call10")]
    for row in claimed[:2]:
        row["channel"] = str(3 - int(row["channel"]))
    write("claimed.csv", claimed)
    spklink(f"decisions {RESULTS} -o {HANDED_OVER} --claimed claimed.csv")
    with closing(sqlite3.connect(f"{RESULTS}/review.sqlite")) as log:
        log.execute("pragma wal_checkpoint(truncate)")  # all of the log in its one file


def _decide(truth: dict[str, list[str]]) -> None:
    """Two people who agree, disagree, resolve, cannot tell, take back, and hear somebody else."""
    from spklink.review.desk import Desk

    desk = Desk.open(RESULTS)
    calls = [desk.where[name] for name in list(truth)[8:]]
    numbers = iter(range(1, 100))

    def say(m: int, who: str, *seats: str | None, **more: object) -> None:
        request = f"{next(numbers):032x}"
        desk.decide(m, seats, reviewer=who, request=request, **more)  # type: ignore[arg-type]

    for m in calls[1:3]:
        right = truth[desk.table.ids[m]]
        say(m, "anna", *right)
        say(m, "bert ü", *right[::-1] if m == calls[2] else right, why="a laugh\n=1+1")
    say(calls[2], "anna", *truth[desk.table.ids[calls[2]]], verdict="resolve")
    say(calls[3], "bert ü", None, "*")
    say(calls[4], "anna", None, None, verdict="unsure", shown={"blind": True})
    say(calls[5], "anna", "*", "*", shown={"blind": True})
    desk.undo(reviewer="anna", request=f"{next(numbers):032x}", why="the wrong call")
    say(calls[0], "anna", f"p{truth[desk.table.ids[calls[0]]][0][1:]}", None)
    say(calls[0], "bert ü", "*", None)
    desk.log.close()


def partition() -> None:
    """Nobody is listed; some pairs are known."""
    pairs = random_pairs(6, 9, 8)
    write_key(pairs)
    Path("segments.csv").unlink()
    write_ratios(pairs, 9)
    write(
        "conversations.csv",
        ({"conversation": f"call{k}", "participants": ""} for k in range(len(pairs))),
    )
    yes = next(k for k in range(1, 9) if pairs[k][0] == pairs[0][0] or pairs[k][1] == pairs[0][0])
    channel = pairs[yes].index(pairs[0][0]) + 1
    same = (*("call0", 1, f"call{yes}", channel), "yes")
    other = (*("call0", 2, f"call{yes}", channel), "no")
    write("pairs.csv", (dict(zip((*PAIRS, "same"), row, strict=True)) for row in (same, other)))
    spklink(
        "partition conversations.csv --scores scores.csv --pairs pairs.csv --no-report "
        f"--floor .02 -o {RESULTS}"
    )


def frequent() -> None:
    """One person in more calls than have their pairs listed."""
    pairs = [(0, 1 + k % 129) for k in range(258)]
    pairs = [pair[::-1] if k % 3 == 1 else pair for k, pair in enumerate(pairs)]
    write_key(pairs)
    Path("segments.csv").unlink()
    write_vectors(pairs, 130, 1.2, 10)
    write(
        "conversations.csv",
        (
            {"conversation": f"call{k}", "participants": f"p{min(pair)};p{max(pair)}"}
            for k, pair in enumerate(pairs)
        ),
    )
    spklink(
        "link conversations.csv --embeddings vectors.npz --no-report --list-errors 0 "
        f"-o {RESULTS} --cache cache"
    )


MAKERS = {
    make.__name__: make for make in (plain, lists, parquet, meetings, enrolled, partition, frequent)
}
KEPT = (RESULTS, HANDED_OVER, "key.csv", "segments.csv", "claimed.csv")


def make(name: str, folder: Path) -> None:
    """One of the folders, with all that it was made of."""
    folder.mkdir(parents=True)
    with chdir(folder):
        MAKERS[name]()


def main(folder: Path, *names: str) -> None:
    for name in names or MAKERS:
        with tempfile.TemporaryDirectory() as work:
            make(name, Path(work, name))
            for path in (Path(work, name, kept) for kept in KEPT):
                if path.is_dir():
                    others = shutil.ignore_patterns("cache", "*-wal", "*-shm")
                    shutil.copytree(path, folder / name / path.name, ignore=others)
                elif path.exists():
                    shutil.copy(path, folder / name / path.name)


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]), *sys.argv[2:])

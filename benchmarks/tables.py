"""Tables of millions of rows: read, checked, scored and written, each in a process of its own.

    python benchmarks/tables.py [--calls 2000000] [--runs 3] [--what check names scores …]

The table: as many calls as are asked for, a thousand to an agent, customers by telephone number
(0.7 of them to a call), half of the recordings of the first folder there. `names` is `check` once
more with names of people in letters instead of numbers; `results` writes assignments of every call
with as many different probabilities, by columns, as Parquet and row by row, and reads them with
pandas; `back` makes a results folder of calls in rings of four by given scores, and reads it by
evaluate, report and export; `polars` reads the table and as many scores with pyarrow alone, with
polars alone, and with our own reader, which also checks. Times are wall-clock from least to most,
in a process that starts anew each time; memory is its peak. Seconds of the processor tell more
where others work on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from timing import show

CALLS_OF_AN_AGENT, CUSTOMERS = 1000, 1.3
FOLDER = 1000  # recordings in one
FIRST = ("Anna", "Ben", "Carla", "Dirk", "Eva", "Frank", "Gerda", "Hans", "Ines", "Jan", "Karin")
SYLLABLES = ("ber", "mann", "schu", "ster", "hof", "wein", "kel", "ler", "rich", "gold", "bach")


def made(folder: Path, calls: int, *, letters: bool = False) -> Path:
    """The table, and some of its recordings."""
    rng = np.random.default_rng(0)
    agents = max(2, calls // CALLS_OF_AN_AGENT)
    agent = rng.permutation(np.arange(calls) % agents).tolist()
    customer = rng.integers(0, int(CUSTOMERS * calls), calls).tolist()
    turned = (rng.random(calls) < 0.5).tolist()
    path = folder / ("letters.csv" if letters else "conversations.csv")
    with path.open("w", encoding="utf-8") as file:
        file.write("conversation,audio,participants\n")
        for m, (a, c, t) in enumerate(zip(agent, customer, turned, strict=True)):
            one, two = f"A{a:04}", _person(c) if letters else f"+49{1510000000 + c}"
            one, two = (two, one) if t else (one, two)
            file.write(f"call{m:07},calls/{m // FOLDER:04}/call{m:07}.wav,{one};{two}\n")
    first = folder / "calls" / "0000"
    first.mkdir(parents=True, exist_ok=True)
    for m in range(0, min(FOLDER, calls), 2):
        (first / f"call{m:07}.wav").touch()
    return path


def _person(number: int) -> str:
    """A name of letters for every number."""
    first, rest = FIRST[number % len(FIRST)], number // len(FIRST)
    parts = []
    while rest or not parts:
        rest, k = divmod(rest, len(SYLLABLES))
        parts.append(SYLLABLES[k])
    return f"{first} {''.join(parts).title()}"


def measured(runs: int, *words: str) -> tuple[str, str, str, str]:
    """Wall-clock and seconds of the processor from least to most, peak memory, and how large what
    was written is."""
    times, cpu, memory, said = list[float](), list[float](), 0.0, ""
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
        said = done.communicate()[0]
        times.append(time.perf_counter() - start)
        told = json.loads(said.splitlines()[-1])
        memory = max(memory, float(told["memory"]))
        cpu.append(float(told["cpu"]))
    size = f"{told['bytes'] / 1e6:.0f} MB" if "bytes" in told else ""
    return _range(times), _range(cpu), f"{memory:.0f} MB", size


def _range(times: list[float]) -> str:
    return f"{min(times):.1f} to {max(times):.1f} s"


def spoken(what: str, *words: str) -> tuple[str, ...]:
    """The words that run one part of this script."""
    return (str(Path(__file__).resolve()), "--part", what, *words)


def part(what: str, table: Path) -> None:
    """One measurement, in this process."""
    found: dict[str, object] = {}
    if what == "check":
        from spklink import check

        told = check(table)
        found = {"speakers": told["speakers"], "side_pairs": told["cost"]["side_pairs"]}
    elif what == "pyarrow":
        from pyarrow import csv

        found["rows"] = csv.read_csv(table).num_rows
    elif what == "polars":
        import polars

        found["rows"] = polars.read_csv(table).height
    elif what == "ours":
        from spklink.database.conversations import read_conversations

        found["rows"] = len(read_conversations(table))
    elif what == "scores":
        _scores(table)
    elif what == "pandas":
        found["rows"] = _read(table)
    elif what in BACK:
        _back(what, table)
    else:
        found["bytes"] = _results(table, what)
    used = resource.getrusage(resource.RUSAGE_SELF)
    found |= {"memory": used.ru_maxrss / 1000, "cpu": used.ru_utime + used.ru_stime}
    print(json.dumps(found))


def _scores(path: Path) -> None:
    from spklink.database.conversations import make_conversations
    from spklink.database.links import find_links
    from spklink.scores.files import read_all_scores

    calls = ((f"call{m:07}", f"a{m}", f"b{m}") for m in range(20_000))
    table = make_conversations(calls)
    read_all_scores(path, table, find_links(table), lambda one, two, score: None)


def made_scores(folder: Path, rows: int) -> Path:
    """Scores of two sides each, by chance."""
    rng, path = np.random.default_rng(0), folder / "scores.csv"
    one, two = (rng.integers(0, 20_000, rows).tolist() for _ in range(2))
    with path.open("w") as file:
        file.write("conversation_1,channel_1,conversation_2,channel_2,score\n")
        for a, b, score in zip(one, two, rng.normal(size=rows).tolist(), strict=True):
            file.write(f"call{a:07},{1 + a % 2},call{b:07},{1 + b % 2},{score}\n")
    return path


BACK = ("assign", "evaluate", "report", "export")


def made_rings(folder: Path, calls: int) -> Path:
    """Calls in rings of four people, their scores, the truth, and when everybody speaks."""
    rng, first = np.random.default_rng(0), np.arange(calls // 4 * 4)
    after = first // 4 * 4 + (first + 1) % 4
    folder.mkdir()
    with (folder / "conversations.csv").open("w") as file:
        file.write("conversation,participants\n")
        pairs = zip(first.tolist(), after.tolist(), strict=True)
        file.writelines(f"c{m},p{a};p{b}\n" for m, (a, b) in enumerate(pairs))
    bit = rng.integers(0, 2, len(first))
    with (folder / "key.csv").open("w") as file, (folder / "segments.csv").open("w") as times:
        file.write("conversation,channel,speaker\n")
        times.write("conversation,channel,start,end\n")
        for m, (a, b, turned) in enumerate(
            zip(first.tolist(), after.tolist(), bit.tolist(), strict=True)
        ):
            one, two = (b, a) if turned else (a, b)
            file.write(f"c{m},1,p{one}\nc{m},2,p{two}\n")
            times.write(f"c{m},1,0,5\nc{m},2,5,9\n")
    # The second person of a call is the first of the next one.
    side_1 = np.repeat(2 * first, 4) + np.tile([0, 0, 1, 1], len(first))
    side_2 = np.repeat(2 * after, 4) + np.tile([0, 1, 0, 1], len(first))
    same = (side_1 == np.repeat(2 * first + 1 - bit, 4)) & (
        side_2 == np.repeat(2 * after + bit[after], 4)
    )
    np.savez(
        folder / "scores.npz",
        conversation=np.repeat([f"c{m}" for m in range(len(first))], 2),
        channel=np.tile(np.array([1, 2], np.int8), len(first)),
        **{"side_1": side_1.astype(np.int32), "side_2": side_2.astype(np.int32)},
        score=np.where(same, 4.36, -4.36) + np.sqrt(2 * 4.36) * rng.normal(size=len(same)),
    )
    return folder


def _back(what: str, folder: Path) -> None:
    import spklink
    from spklink.report.write import write_report

    results = folder / "results"
    if what == "assign":
        given = folder / "conversations.csv", folder / "scores.npz", results
        spklink.assign(*given, budget_gb=16.0)
    elif what == "evaluate":
        spklink.evaluate(spklink.load(results), folder / "key.csv")
    elif what == "report":
        write_report(results)
    elif what == "export":
        spklink.export(results, folder / "out", "rttm", segments=folder / "segments.csv")


def _read(path: Path) -> int:
    import pandas

    read = pandas.read_parquet if path.suffix == ".parquet" else pandas.read_csv
    return len(read(path))


def _results(path: Path, how: str) -> int:
    """Assignments of a table, and how large they are."""
    from spklink.database.conversations import read_conversations
    from spklink.parquet_tables import write_parquet
    from spklink.runs.rows import ASSIGNMENTS, DECISIONS
    from spklink.tables import write_csv
    from spklink.written_columns import Column, probabilities, rows_of, whole_numbers, write_columns

    table = read_conversations(path)
    calls, rng = table.sides.conversation, np.random.default_rng(0)
    chance = 1.0 - 0.5 * rng.random(len(table)) ** 8
    middle, low, high = probabilities(chance, chance - 1e-4, np.minimum(chance + 1e-4, 1.0))
    same = np.zeros(len(calls), np.int64)
    columns = [
        *(Column(table.ids, calls), whole_numbers(table.sides.position + 1)),
        *(Column(table.speakers, table.people), middle.of(calls), whole_numbers(same + 1)),
        *(low.of(calls), high.of(calls), Column(["estimated"], same), Column(["inferred"], same)),
        Column(DECISIONS, same),
    ]
    out = path.parent / ("assignments.parquet" if how == "parquet" else "assignments.csv")
    if how == "rows":
        write_csv(out, ASSIGNMENTS, rows_of(columns))
    else:
        (write_parquet if how == "parquet" else write_columns)(out, ASSIGNMENTS, columns)
    return out.stat().st_size


def readers(what: str, path: Path, ours: str) -> list[tuple[str, tuple[str, ...]]]:
    """What reads a table, our own reader last."""
    alone = [(f"{what} by {one} alone", spoken(one, str(path))) for one in ("pyarrow", "polars")]
    return [*alone, (f"{what} by spklink, checked", spoken(ours, str(path)))]


def processor() -> str:
    """What it runs on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{name}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    every = ("check", "names", "scores", "results", "back", "polars")
    parser.add_argument("--what", nargs="+", choices=every, default=every)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args()
    if given.part:
        part(given.part, Path(rest[0]))
        return
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = made(folder, given.calls)
        asked: list[tuple[str, tuple[str, ...]]] = []
        if "check" in given.what:
            asked.append((f"check, {given.calls:,} rows", spoken("check", str(table))))
        if "names" in given.what:
            letters = made(folder, given.calls, letters=True)
            asked.append(("check, names in letters", spoken("check", str(letters))))
        if "scores" in given.what:
            scores = made_scores(folder, given.calls)
            asked.append((f"{given.calls:,} scores read", spoken("scores", str(scores))))
        if "results" in given.what:
            asked.append(("results by columns", spoken("columns", str(table))))
            asked.append(("the same as Parquet", spoken("parquet", str(table))))
            asked.append(("the same row by row", spoken("rows", str(table))))
            for ending in ("csv", "parquet"):
                file = str(folder / f"assignments.{ending}")
                asked.append((f"read by pandas, {ending}", spoken("pandas", file)))
        if "back" in given.what:
            rings = str(made_rings(folder / "rings", given.calls))
            asked += [(f"{one}, {given.calls:,} calls", spoken(one, rings)) for one in BACK]
        if "polars" in given.what:
            asked += readers("the table", table, "ours")
            asked += readers("scores", made_scores(folder, given.calls), "scores")
        for title, words in asked:
            rows.append((title, *measured(given.runs, *words)))
    show(f"Tables ({processor()})", ["", "wall-clock", "processor", "peak memory", "file"], rows)


if __name__ == "__main__":
    main()

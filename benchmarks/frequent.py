"""People with very many conversations: stars, call centres, and how time and memory grow.

python benchmarks/frequent.py star [SIZE ...]      one person in 1,000, 5,000, 50,000 calls
python benchmarks/frequent.py lists [SIZE ...]     the same where lists may be wrong (the default)
python benchmarks/frequent.py listed [SIZE ...]    sums against all pairs listed, 300 to 3,000 calls
python benchmarks/frequent.py seeds [SIZE ...]     wrong calls against expected ones, six stars each
python benchmarks/frequent.py real CALLS KEY MODEL.onnx [SIZE ...]   stars of real voices
python benchmarks/frequent.py centre [SIZE ...]    call centres of 1,000 to 1,000,000 calls
python benchmarks/frequent.py centre-lists [SIZE ...]   the same where lists may be wrong

Simulated voices have a part of their own and one of the recording (two-covariance PLDA); MU is the
mean of their calibrated same-speaker log-likelihood-ratios. Every figure comes from a process of
its own: `spklink link` on a table in a file and vectors in an array, with nothing known but who
took part, no report; lists are taken at their word but for `lists` and `centre-lists`, where
figures are of sides.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from timing import show

MUS = (2.0, 4.36)
WIDTH = {"star": 256, "centre": 128}
AGENT_CALLS, CLIENTS = 500, 0.7  # calls an agent, and clients a call
MAY_BE_WRONG = {"lists": "star", "centre-lists": "centre"}
COLUMNS = ("calls", "mu", "seconds", "GB", "wrong", "expected", "settled", "certainty")


def variance_ratio(mu: float, width: int) -> float:
    """Between/within-speaker variance at which voices of this width are as hard as mu says."""
    from scipy.special import ndtr

    from spklink.worlds.scorers import DIMENSIONS
    from spklink.worlds.scorers import variance_ratio as of_rate

    return of_rate(float(ndtr(-np.sqrt(mu / 2.0)))) * float(np.sqrt(DIMENSIONS / width))


def who_talks(what: str, calls: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The two people of every call."""
    if what == "star":
        return np.zeros(calls, np.int64), 1 + np.arange(calls)
    agents = max(calls // AGENT_CALLS, 2)
    one = rng.permutation(np.arange(calls) % agents)
    return one, agents + rng.integers(0, int(CLIENTS * calls), calls)


def simulated(
    one: np.ndarray, two: np.ndarray, width: int, mu: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(calls, 2, width) vectors, and on which track the first person is."""
    beta, calls = variance_ratio(mu, width), len(one)
    people = 1 + int(max(one.max(), two.max()))
    voice = rng.standard_normal((people, width), dtype=np.float32)
    voice *= np.float32(np.sqrt(beta))
    truth = rng.integers(0, 2, calls)
    vectors = rng.standard_normal((calls, 2, width), dtype=np.float32)
    rows = np.arange(calls)
    for begin in range(0, calls, 1 << 16):
        part = rows[begin : begin + (1 << 16)]
        vectors[part, truth[part]] += voice[one[part]]
        vectors[part, 1 - truth[part]] += voice[two[part]]
    return vectors, truth


def real_star(voices: Path, calls: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same from real sides, drawn again and again with a little noise, so that no two are one:
    the speaker with the most sides talks to all others."""
    with np.load(voices) as kept:
        vectors, speaker = kept["vectors"], kept["speaker"]
    most = np.bincount(speaker).argmax()
    mine, others = np.flatnonzero(speaker == most), np.flatnonzero(speaker != most)
    truth, rows = rng.integers(0, 2, calls), np.arange(calls)
    found = np.empty((calls, 2, vectors.shape[1]), np.float32)
    found[rows, truth] = vectors[rng.choice(mine, calls)]
    found[rows, 1 - truth] = vectors[rng.choice(others, calls)]
    noise = 0.3 * vectors.std(axis=0)
    return found + noise * rng.standard_normal(found.shape, dtype=np.float32), truth


def measure(
    what: str,
    calls: int,
    mu: float,
    longest: int | None,
    voices: Path | None,
    seed: int = 0,
    book: bool = False,
) -> None:
    """One run in this process; prints what it found as JSON."""
    rng = np.random.default_rng([calls, int(100 * mu), *([seed] if seed else [])])
    lists, what = what in MAY_BE_WRONG, MAY_BE_WRONG.get(what, what)
    one, two = who_talks(what, calls, rng)
    width = WIDTH.get(what, 256)
    vectors, truth = (
        simulated(one, two, width, mu, rng) if voices is None else real_star(voices, calls, rng)
    )
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "conversations.csv"
        with table.open("w") as file:
            file.write("conversation,participants\n")
            pairs = zip(one.tolist(), two.tolist(), strict=True)
            file.writelines(f"c{m},p{a};p{b}\n" for m, (a, b) in enumerate(pairs))
        rows = vectors.reshape(-1, vectors.shape[2])
        options = {} if lists else {"list_errors": 0.0}
        if book:  # how much calls of one person tell together, as these voices were made
            options |= {"weight": "book", "beta": variance_ratio(mu, width)}
        print(json.dumps(linked(table, rows, truth, longest, options)))


def linked(
    table: Path,
    vectors: np.ndarray,
    truth: np.ndarray,
    longest: int | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    import spklink
    from spklink.database import frequent
    from spklink.runs.stages import peak_memory

    if longest is not None:  # the same calibration for both: a straight line
        frequent.LONGEST, frequent.MOST_LINKS, frequent.SHARE = longest, 1 << 40, 1.0
    start = time.perf_counter()
    found = spklink.link(table, embeddings=vectors, kind="lr", budget_gb=16.0, **options)
    spent, posterior = time.perf_counter() - start, found.posterior
    chance, low, _ = posterior.confidence()
    wrong, certainty = posterior.best != truth, posterior.certainty[0]
    if "list_errors" not in options:
        sure = found.answer.confidence
        chance, low, certainty = sure.chance, sure.low, found.answer.certainty[0]
        wrong = found.answer.entry != (np.stack([truth, 1 - truth], 1) + entries(truth)).ravel()
    told: dict[str, Any] = {
        "seconds": spent,
        "gigabytes": (peak_memory() or 0) / 1e9,
        "wrong": int(wrong.sum()),
        "expected": float((1.0 - chance).sum()),
        "settled": int((low >= 0.99).sum()),
        "certainty": str(certainty),
        "stages": found.stages.seconds,
    }
    if longest is not None:
        names = ("best", "exchanged", "exchanged_low", "exchanged_high")
        told |= {name: getattr(posterior, name).tolist() for name in names}
    return told


def entries(truth: np.ndarray) -> np.ndarray:
    """(calls, 1) the first entry of every list."""
    return 2 * np.arange(len(truth))[:, None]


def run(what: str, calls: int, mu: float, *more: object) -> dict[str, Any]:
    """The same in a process of its own."""
    words = [sys.executable, __file__, "one", what, str(calls), str(mu), *map(str, more)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(calls: int, mu: float | str, found: dict[str, Any]) -> tuple[Any, ...]:
    return (
        f"{calls:,}",
        mu,
        f"{found['seconds']:.1f}",
        f"{found['gigabytes']:.2f}",
        found["wrong"],
        f"{found['expected']:.2f}",
        f"{found['settled']:,}",
        found["certainty"],
    )


def star(sizes: list[int]) -> None:
    rows = [row(n, mu, run("star", n, mu)) for n in sizes or (1000, 5000, 50_000) for mu in MUS]
    show("one person in all calls, 256 dimensions", list(COLUMNS), rows)


def lists(sizes: list[int]) -> None:
    rows = [row(n, mu, run("lists", n, mu)) for n in sizes or (1000, 5000, 50_000) for mu in MUS]
    show("the same, lists may be wrong: sides, not calls", list(COLUMNS), rows)


def centre_lists(sizes: list[int]) -> None:
    chosen = sizes or (1000, 10_000, 100_000)
    rows = [row(n, MUS[1], run("centre-lists", n, MUS[1])) for n in chosen]
    show("call centres whose lists may be wrong: sides, not calls", list(COLUMNS), rows)


def seeds(sizes: list[int]) -> None:
    """Whether as many are wrong as probabilities say."""
    rows = []
    for n in sizes or [1000]:
        for mu in (0.5, 1.0, 2.0):
            for weight in ("paper", "book"):
                each = [run("star", n, mu, "-", "-", seed, weight) for seed in range(1, 7)]
                wrong, told = (sum(one[name] for one in each) for name in ("wrong", "expected"))
                rows.append((f"{n:,}", mu, weight, wrong, f"{told:.2f}"))
    show("six stars each", ["calls", "mu", "weight", "wrong", "expected"], rows)


def real(calls: str, key: str, model: str, sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "voices.npz"
        _real_voices(calls, key, model, kept)
        found = [(n, run("star", n, 0.0, "-", kept)) for n in sizes or (1000, 5000, 50_000)]
    rows = [row(n, "real", one) for n, one in found]
    show("stars of real voices, drawn again and again", list(COLUMNS), rows)


def _real_voices(calls: str, key: str, model: str, kept: Path) -> None:
    """Vectors of the sides of real calls, and whose they are."""
    from spklink.database.conversations import read_conversations
    from spklink.database.labels import read_key
    from spklink.posterior.posterior import Options
    from spklink.recognizers.table import make_recognizer
    from spklink.runs.sources import listened
    from spklink.runs.stages import Stages
    from spklink.settings import LinkOptions, resolved

    table = read_conversations(calls)
    asked = resolved(LinkOptions, {"recognizer": model})
    network = make_recognizer(model, preset="default", components=None, speech="energy")
    with tempfile.TemporaryDirectory() as cache:
        how = Options(workers=2)
        source = listened(table, network, how, Path(cache), asked, Stages())
        assert source.trained is not None
        vectors = source.trained.vectors[source.trained.row]
        speaker = read_key(key, table).speakers(table)
        good = source.sound.usable & (speaker >= 0)
        np.savez(kept, vectors=vectors[good], speaker=speaker[good])


def listed(sizes: list[int]) -> None:
    """Sums against the engine that lists all pairs."""
    columns = ["calls", "mu", "s sums", "s pairs", "same best", "furthest apart", "within .01"]
    columns += ["inside", "pairs are", "proved best"]
    rows = []
    for n in sizes or (300, 1000, 3000):
        for mu in MUS:
            found = run("both", n, mu)
            rows.append((f"{n:,}", mu, *found["row"]))
    show("sums against all pairs under one and the same line", columns, rows)
    rows = []
    for n in sizes or (300, 1000):
        for mu in MUS:
            ours, theirs = run("star", n, mu, 50), run("star", n, mu, n)
            p, q = (np.array(one["exchanged"]) for one in (ours, theirs))
            same = int((np.array(ours["best"]) == np.array(theirs["best"])).sum())
            near = int((np.abs(p - q) <= 0.01).sum())
            told = [
                f"{one[name]:.2f}" for name in ("expected", "gigabytes") for one in (ours, theirs)
            ]
            spent = (f"{ours['seconds']:.1f}", f"{theirs['seconds']:.1f}")
            rows.append((f"{n:,}", mu, *spent, f"{same:,}", f"{near:,}", *told))
    columns = [
        "calls",
        "mu",
        "s sums",
        "s pairs",
        "same best",
        "within .01",
        "expected",
        "by pairs",
    ]
    show("both calibrated without labels, by themselves", [*columns, "GB sums", "GB pairs"], rows)


def both(calls: int, mu: float) -> None:
    """One line, and what sums and all pairs make of it."""
    from spklink.calibration.certificate import certify
    from spklink.calibration.curves import Line
    from spklink.calibration.frequent import FrequentVoices, by_sound, side_line
    from spklink.calibration.pairs import make_pairs
    from spklink.calibration.settling import Problem, Settling, listed_pieces
    from spklink.database.cliques import find_cliques
    from spklink.database.conversations import read_conversations
    from spklink.database.frequent import chosen_frequent
    from spklink.database.links import find_links, needed_sides
    from spklink.posterior.likelihood import Weight, build_model
    from spklink.posterior.posterior import Options, solve
    from spklink.posterior.summed import loosened
    from spklink.recognizers.products import Cosine
    from spklink.recognizers.sums import compared_by, table_of_ratios
    from spklink.scores.needed import no_side_scores
    from spklink.tables import read_table

    rng = np.random.default_rng([calls, int(100 * mu)])
    one, two = who_talks("star", calls, rng)
    vectors, truth = simulated(one, two, WIDTH["star"], mu, rng)
    rows = [{"conversation": f"c{m}", "participants": f"a;b{m}"} for m in range(calls)]
    table, flat = read_conversations(read_table(rows)), vectors.reshape(2 * calls, -1)
    how = (
        compared_by(Cosine(np.zeros(len(flat[0]), np.float32)), flat, np.arange(len(flat)), None),
    )
    unit = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    mine = unit.reshape(calls, 2, -1)[np.arange(calls), truth]
    same = (mine @ mine.T)[np.triu_indices(calls, 1)]
    other = (unit.reshape(calls, 2, -1)[np.arange(calls), 1 - truth] @ mine.T).ravel()
    scale = (same.mean() - other.mean()) / ((same.var() + other.var()) / 2.0)
    line = Line(float(scale), float(-scale * (same.mean() + other.mean()) / 2.0))
    frequent = by_sound(table, chosen_frequent(table, 50), np.arange(len(flat)))
    spoken = FrequentVoices(
        table, frequent, lambda _: how, np.ones(len(flat), bool), None, len(flat[0])
    )
    begin = time.perf_counter()
    links = find_links(table, without=frequent.person)
    pairs = make_pairs(table, links, np.zeros(0), no_side_scores())
    settling = Settling(Problem(table, pairs, spoken, None, 0.0, Options()), Weight())
    settled = settling.finished(np.zeros(0), line)
    summed = replace(spoken, table=replace(table, sums=settled.sums))
    piece = listed_pieces(table, links).label.astype(np.int64)
    slack = certify(summed, line, Weight(), settled.answer, piece, 60.0)
    ours, middle = loosened(settled.answer, slack).bits, time.perf_counter()
    links = find_links(table)
    every, each = np.arange(len(flat)), np.ones(len(flat), bool)
    ratios = table_of_ratios(how, side_line(line, None, len(flat)), every, each)
    llr = ratios(slice(0, len(flat)))[needed_sides(links, table.sides)].astype(np.float64)
    theirs = solve(build_model(table, find_cliques(table), links, llr))
    end, apart = time.perf_counter(), np.abs(ours.exchanged - theirs.exchanged)
    inside = (ours.exchanged_low <= theirs.exchanged_high + 1e-9) & (
        ours.exchanged_high >= theirs.exchanged_low - 1e-9
    )
    agree = int((ours.best == theirs.best).sum())
    told = (f"{middle - begin:.1f}", f"{end - middle:.1f}", f"{agree:,}", f"{apart.max():.5f}")
    told += (f"{int((apart <= 0.01).sum()):,}", f"{int(inside.sum()):,}")
    print(json.dumps({"row": [*told, str(theirs.certainty[0]), bool(theirs.proved.all())]}))


def centre(sizes: list[int]) -> None:
    chosen = sizes or [1000, 10_000, 100_000, 1_000_000]
    found = [run("centre", n, MUS[1]) for n in chosen]
    rows = [row(n, MUS[1], one) for n, one in zip(chosen, found, strict=True)]
    show(f"call centres: {AGENT_CALLS} calls an agent, 128 dimensions", list(COLUMNS), rows)
    names = list(found[-1]["stages"])
    shown = [(n, *(f"{one['stages'].get(n, 0.0):.1f}" for one in found)) for n in names]
    show("seconds a stage", ["stage", *(f"{n:,}" for n in chosen)], shown)
    if len(chosen) > 1:
        time_, size = (np.log([one["seconds"] for one in found]), np.log(chosen))
        slopes = np.diff(time_) / np.diff(size)
        print("growth (slope in log-log):", ", ".join(f"{slope:.2f}" for slope in slopes))


def main(words: list[str]) -> None:
    what, rest = (words[0], words[1:]) if words else ("star", [])
    if what == "one":
        shape, calls, mu, *more = rest
        longest = int(more[0]) if more and more[0] != "-" else None
        if shape == "both":
            both(int(calls), float(mu))
            return
        voices = Path(more[1]) if len(more) > 1 and more[1] != "-" else None
        seed = int(more[2]) if len(more) > 2 else 0
        book = more[3:] == ["book"]
        measure(shape, int(calls), float(mu), longest, voices, seed, book)
    elif what == "real":
        real(*rest[:3], [int(n) for n in rest[3:]])
    else:
        whats = {"star": star, "lists": lists, "listed": listed, "seeds": seeds, "centre": centre}
        whats["centre-lists"] = centre_lists
        whats[what]([int(n) for n in rest])


if __name__ == "__main__":
    main(sys.argv[1:])

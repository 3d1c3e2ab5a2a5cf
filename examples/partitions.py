"""Real calls without lists: what each level of knowledge is worth, and how linking compares.

    python examples/partitions.py sets|linking|others|all FOLDER scores-1.npz scores-2.npz …

    python examples/partitions.py picture FOLDER scores.npz LINKED OUT.svg

FOLDER has conversations.csv and key.csv; a file of scores is scores.npz of a run of
`spklink partition` on that table (scores of all pairs, before calibration). Prints
  sets     8 random calls (16 sides) each: cross entropy of the truth and errors at levels I to IV
           with the same scores, by weight rule; calibrated on one half of the speakers, figures of
           both halves: choose on the one, believe the other;
  linking  the whole table by agglomerative linking, calibrated without lists; and that calibration
           beside one with the true labels;
  others   clustering by scipy, scikit-learn and spectralcluster on the same scores, with the
           threshold or number that suits them best by the key;
  picture  bits before and after listening, of the whole table (LINKED is a folder of `link`, run
           with its lists) and of the sets above.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from spklink.calibration.fitting import supervised
from spklink.database.side_names import read_side_names, read_without_lists
from spklink.database.sides import pairs_within
from spklink.measures.detection import measure
from spklink.measures.entropy import confusion, levels
from spklink.measures.partitions import agreement
from spklink.partitions.agglomerative import LINKAGES, agglomerate, merge_all
from spklink.partitions.exact import solve_exactly
from spklink.partitions.items import make_items, make_problem
from spklink.partitions.learning import learn_dense
from spklink.posterior.likelihood import Weight
from spklink.scores.files import read_pairs

LN2 = np.log(2.0)
CALLS, SETS = 8, 20
RULES = {"paper 2/n": Weight()} | {
    f"book {beta:g}": Weight("book", beta) for beta in (0.05, 0.1, 0.2)
}
BOOK = Weight("book", 0.1)


def halves(who: np.ndarray, calls: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Calls between people of one half of the speakers, and of the other."""
    people = rng.permutation(who.max() + 1)
    half = np.isin(who, people[: len(people) // 2])[calls]
    return [np.flatnonzero((half == side).all(axis=1)) for side in (True, False)]


def level_bits(llr: np.ndarray, truth: np.ndarray, weight: Weight) -> dict[str, tuple[float, bool]]:
    """Bits of the truth and whether the best partition is it, at levels I to IV."""
    sides, found = len(truth), {}
    calls = np.arange(sides).reshape(-1, 2)
    number = len(set(truth.tolist()))
    known = {
        "I": (None, None),
        "II": (None, number),
        "III": (calls, number),
        "III, N unknown": (calls, None),
    }
    for name, (apart, speakers) in known.items():
        answer = solve_exactly(make_problem(make_items(llr, apart=apart), weight, None, speakers))
        bits = -answer.log_probability(truth) / LN2
        found[name] = bits, bool(same_partition(answer.best, truth))
    found["IV"] = listed_bits(llr, truth, weight)
    return found


def listed_bits(llr: np.ndarray, truth: np.ndarray, weight: Weight) -> tuple[float, bool]:
    """The same where the two people of every call are known, and only their channels are not."""
    calls = len(truth) // 2
    problem = make_problem(make_items(llr), weight)
    value = np.empty(1 << calls)
    for bits in range(1 << calls):
        turned = (bits >> np.arange(calls)) & 1
        label = truth.reshape(-1, 2).copy()
        label[turned == 1] = label[turned == 1, ::-1]
        value[bits] = problem.log_weight(label.ravel())
    most = value.max()
    total = most + np.log(np.exp(value - most).sum())
    return float((total - value[0]) / LN2), bool(value[0] >= most - 1e-9)


def same_partition(one: np.ndarray, two: np.ndarray) -> bool:
    return bool(((one[:, None] == one) == (two[:, None] == two)).all())


def small_sets(name: str, scores: np.ndarray, who: np.ndarray, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    calls = np.arange(len(who)).reshape(-1, 2)
    teach, test = halves(who, calls, rng)
    sides = calls[teach].ravel()
    line = line_of(scores[np.ix_(sides, sides)], who[sides])
    llr = line(scores)
    print(f"\n{name}: sets of {CALLS} calls, {SETS} of each half; calibrated on one half")
    print(
        f"  bits a conversation (errors of {SETS}) of the other half; mean true number of speakers"
    )
    before: list[list[float]] = []
    chosen: dict[str, dict[str, list]] = {}
    for rule, weight in RULES.items():
        for half, pool in (("teach", teach), ("test", test)):
            draw = np.random.default_rng(seed + 1)
            rows: dict[str, list] = {}
            for _ in range(SETS):
                sides = calls[draw.choice(pool, CALLS, replace=False)].ravel()
                truth = np.unique(who[sides], return_inverse=True)[1]
                for level, one in level_bits(llr[np.ix_(sides, sides)], truth, weight).items():
                    rows.setdefault(level, []).append(one)
                if rule == "paper 2/n" and half == "test":
                    table = levels(CALLS, int(truth.max()) + 1)
                    before.append([row.bits / CALLS for row in table if row.exact])
            chosen.setdefault(half, {})[rule] = rows  # type: ignore[assignment]
    print(
        "  before listening: "
        + ", ".join(
            f"{n} {b:.3f} (F {confusion(b, 1):.2f})"
            for n, b in zip(("I", "II", "III", "IV"), np.mean(before, axis=0), strict=True)
        )
    )
    for half in ("teach", "test"):
        for rule, rows in chosen[half].items():
            text = ", ".join(
                f"{level} {np.mean([b for b, _ in one]) / CALLS:.3f} ({sum(not r for _, r in one)})"
                for level, one in rows.items()
            )
            print(f"  {half:5} {rule:10} {text}")
    best = min(
        chosen["teach"], key=lambda rule: np.mean([b for b, _ in chosen["teach"][rule]["III"]])
    )
    print(f"  best at level III on the teaching half: {best}")


def picture(folder: str, file: str, linked: str, out: str) -> None:
    """What is unknown at every level, before and after listening."""
    import json

    import matplotlib

    matplotlib.rcParams.update({"svg.hashsalt": "spklink", "svg.fonttype": "none", "font.size": 9})
    from matplotlib.figure import Figure

    who, scores, _, calls = read(folder, file)
    result = json.loads((Path(linked) / "run.json").read_text())["result"]
    table = [row for row in levels(calls, int(who.max()) + 1) if row.exact]
    whole = [(f"level {row.level}", row.bits) for row in table]
    whole.append(("IV, after linking", float(np.mean(result["entropy_bits"]))))
    before, after = set_bits(scores, who)
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    bars(left, whole, calls)
    left.set_title(f"{calls} calls, {who.max() + 1} speakers: before listening, and linked")
    names = [f"{level}, {when}" for level in before for when in ("before", "after")]
    values = [x for level in before for x in (before[level], after[level])]
    bars(right, list(zip(names, values, strict=True)), CALLS)
    right.set_title(f"sets of {CALLS} calls: before and after listening")
    figure.savefig(out, metadata={"Date": None, "Creator": None})
    for name, bits in (*whole, *zip(names, values, strict=True)):
        size = calls if name.startswith(("level", "IV, after linking")) else CALLS
        print(f"  {name:20} {bits:10.3f} bits  F = {confusion(bits, size):.4g}")


def bars(axes, rows: list[tuple[str, float]], calls: int) -> None:
    place = np.arange(len(rows))[::-1]
    colours = ["#0072b2" if "after" in name else "#8a929b" for name, _ in rows]
    axes.barh(place, [bits for _, bits in rows], color=colours)
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_yticks(place, [name for name, _ in rows])
    for y, (_, bits) in zip(place, rows, strict=True):
        f = confusion(bits, calls)
        shown = f"{f:,.0f}" if f >= 100.0 else "0" if f < 5e-4 else f"{f:.3g}"
        text = f" {bits:,.2f} bits, F = {shown}"
        axes.text(bits, y, text, va="center", fontsize=8)
    axes.set_xlim(0.0, 40.0 * max(bits for _, bits in rows))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("bits")


def set_bits(scores: np.ndarray, who: np.ndarray) -> tuple[dict[str, float], dict[str, float]]:
    """Mean bits of a set before and after listening, by level: of the half that taught nothing."""
    calls = np.arange(len(who)).reshape(-1, 2)
    teach, test = halves(who, calls, np.random.default_rng(0))
    sides = calls[teach].ravel()
    llr = line_of(scores[np.ix_(sides, sides)], who[sides])(scores)
    draw, before, after = np.random.default_rng(1), {}, {}
    for _ in range(SETS):
        sides = calls[draw.choice(test, CALLS, replace=False)].ravel()
        truth = np.unique(who[sides], return_inverse=True)[1]
        for row in levels(CALLS, int(truth.max()) + 1):
            if row.exact:
                before[row.level] = before.get(row.level, 0.0) + row.bits / SETS
        for level, (bits, _) in level_bits(llr[np.ix_(sides, sides)], truth, BOOK).items():
            after[level] = after.get(level, 0.0) + bits / SETS
    return before, after


def line_of(scores: np.ndarray, who: np.ndarray):
    """The calibration that true labels teach."""
    upper = np.triu_indices(len(who), 1)
    same = who[upper[0]] == who[upper[1]]
    return supervised(scores[upper][same], scores[upper][~same], "cmlg")


def whole_table(name: str, scores: np.ndarray, who: np.ndarray, apart: np.ndarray) -> None:
    upper = np.triu_indices(len(who), 1)
    same = who[upper[0]] == who[upper[1]]
    learned = learn_dense(scores, apart, BOOK)
    taught = line_of(scores, who)
    print(f"\n{name}: {len(who)} sides of {who.max() + 1} speakers, EER "
          f"{100 * measure(scores[upper][same], scores[upper][~same]).eer:.2f} %")  # fmt: skip
    for what, line in (("without lists", learned.calibration), ("true labels", taught)):
        llr = line(scores[upper])
        print(f"  calibration {what}: Cllr {measure(llr[same], llr[~same]).cllr:.4f} bits")
    print(
        "  method                             speakers  impurity: cluster speaker    ARI  B-cubed"
    )
    llr = learned.calibration(scores)
    for rule, weight in (("book 0.1", BOOK), ("paper 2/n", Weight())):
        show(f"gain, {rule}", agglomerate(make_problem(make_items(llr, apart=apart), weight)), who)
    problem = make_problem(make_items(llr, apart=apart), BOOK)
    for linkage in LINKAGES[1:]:
        show(f"{linkage}, threshold 0", agglomerate(problem, linkage), who)
    for linkage in LINKAGES:
        show(
            f"{linkage}, {who.max() + 1} speakers given",
            agglomerate(problem, linkage, speakers=int(who.max()) + 1),
            who,
        )
    for linkage in LINKAGES:
        merges = merge_all(problem, linkage)
        cuts = range(len(merges.one) - min(200, len(merges.one)), len(merges.one) + 1)
        show(
            f"{linkage}, best cut by the key",
            max((merges.label(k) for k in cuts), key=lambda x: rand(x, who)),
            who,
        )


def other_clusterings(name: str, scores: np.ndarray, who: np.ndarray, apart: np.ndarray) -> None:
    print(f"\n{name}: clustering by others, tuned by the key")
    for label, text in others(learn_dense(scores, apart, BOOK).calibration(scores), who):
        show(text, label, who)


def others(llr: np.ndarray, who: np.ndarray):
    """Clusterings of others on the same log-likelihood-ratios, tuned by the key in their favour."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    far = llr.max() - llr
    np.fill_diagonal(far, 0.0)
    far = (far + far.T) / 2.0
    for kind in ("average", "complete", "single"):
        tree = linkage(squareform(far, checks=False), kind)
        cuts = (fcluster(tree, k, "maxclust") for k in range(5, 120))
        yield max(cuts, key=lambda x: rand(x, who)), f"scipy {kind}, best cut"
    try:
        from sklearn.cluster import DBSCAN, AgglomerativeClustering, SpectralClustering
    except ImportError:
        return
    cuts = (
        AgglomerativeClustering(n_clusters=k, metric="precomputed", linkage="average").fit_predict(
            far
        )
        for k in range(20, 45)
    )
    yield max(cuts, key=lambda x: rand(x, who)), "scikit-learn average, best number"
    likely = 1.0 / (1.0 + np.exp(-np.clip(llr - 3.0, -30, 30)))
    cuts = (
        SpectralClustering(n_clusters=k, affinity="precomputed", random_state=0).fit_predict(likely)
        for k in range(24, 37, 2)
    )
    yield max(cuts, key=lambda x: rand(x, who)), "scikit-learn spectral, best number"
    cuts = (
        DBSCAN(eps=e, min_samples=m, metric="precomputed").fit_predict(far)
        for e in np.quantile(far, (0.002, 0.005, 0.01, 0.02, 0.03))
        for m in (3, 5, 8)
    )
    yield max((alone(x) for x in cuts), key=lambda x: rand(x, who)), "scikit-learn DBSCAN, best eps"
    try:
        from spectralcluster import SpectralClusterer
    except ImportError:
        return
    vectors = spectral_vectors(llr)
    found = [
        SpectralClusterer(min_clusters=k, max_clusters=k).predict(vectors)
        for k in (26, 28, 30, 32, 34)
    ]
    yield max(found, key=lambda x: rand(np.array(x), who)), "spectralcluster, best number"
    yield (
        SpectralClusterer(min_clusters=5, max_clusters=60).predict(vectors),
        "spectralcluster, own number",
    )


def spectral_vectors(llr: np.ndarray) -> np.ndarray:
    """Vectors whose inner products are about the scores: spectralcluster wants such."""
    value, vector = np.linalg.eigh((llr + llr.T) / 2.0)
    kept = value > 0.0
    return vector[:, kept] * np.sqrt(value[kept])


def alone(label: np.ndarray) -> np.ndarray:
    """What DBSCAN calls noise, each by itself."""
    found = label.copy()
    noise = found < 0
    found[noise] = found.max() + 1 + np.arange(noise.sum())
    return found


def rand(label: np.ndarray, who: np.ndarray) -> float:
    return agreement(np.asarray(label), who).adjusted_rand


def show(text: str, label: np.ndarray, who: np.ndarray) -> None:
    a = agreement(np.asarray(label), who)
    impure = f"{100 * a.cluster_impurity:15.2f} % {100 * a.speaker_impurity:6.2f} %"
    rest = f"{a.adjusted_rand:5.3f}  {a.bcubed:6.3f}"
    print(f"  {text:34} {a.clusters:8}  {impure}  {rest}", flush=True)


def read(folder: str, file: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Who is on every side, scores of all pairs, sides of one call, and the number of calls."""
    table = read_without_lists(Path(folder) / "conversations.csv")
    who = read_side_names(Path(folder) / "key.csv", table).speaker
    kept = read_pairs(Path(file), table)
    scores = np.zeros((len(who), len(who)))
    scores[kept.side_1, kept.side_2] = scores[kept.side_2, kept.side_1] = kept.score
    return who, scores, pairs_within(table.sides), len(table)


def main(what: str, folder: str, *files: str) -> None:
    if what == "picture":
        picture(folder, *files)
        return
    for file in files:
        who, scores, apart, _ = read(folder, file)
        name = Path(file).parent.name
        if what in ("sets", "all"):
            small_sets(name, scores, who)
        if what in ("linking", "all"):
            whole_table(name, scores, who, apart)
        if what in ("others", "all"):
            other_clusterings(name, scores, who, apart)


if __name__ == "__main__":
    main(*sys.argv[1:])

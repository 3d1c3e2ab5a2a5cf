"""`partition` from end to end: tables with and without lists, scores, vectors, files, errors."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import spklink
from spklink.errors import SpklinkError
from spklink.runs.partition_folder import read_partition

PEOPLE = 5


def write_case(folder, calls=6, seed=0, mu=6.0, lists=False):
    """A table, a key and calibrated scores of all pairs of sides."""
    rng = np.random.default_rng(seed)
    who = np.array([rng.choice(PEOPLE, 2, replace=False) for _ in range(calls)]).ravel()
    table, key, scores = (folder / f"{name}.csv" for name in ("conversations", "key", "scores"))
    with table.open("w") as file:
        out = csv.writer(file)
        out.writerow(["conversation", "participants"] if lists else ["conversation"])
        for m in range(calls):
            names = ";".join(f"p{k}" for k in sorted(who[2 * m : 2 * m + 2]))
            out.writerow([f"c{m}", names] if lists else [f"c{m}"])
    with key.open("w") as file:
        out = csv.writer(file)
        out.writerow(["conversation", "channel", "speaker"])
        out.writerows((f"c{s // 2}", s % 2 + 1, f"p{who[s]}") for s in range(2 * calls))
    with scores.open("w") as file:
        out = csv.writer(file)
        out.writerow(["conversation_1", "channel_1", "conversation_2", "channel_2", "score"])
        for s in range(2 * calls):
            for t in range(s):
                if s // 2 != t // 2:
                    mean = mu if who[s] == who[t] else -mu
                    score = rng.normal(mean, np.sqrt(2 * mu))
                    out.writerow([f"c{s // 2}", s % 2 + 1, f"c{t // 2}", t % 2 + 1, score])
    return table, scores, key, who


@pytest.fixture
def case(tmp_path):
    return write_case(tmp_path)


def test_from_scores_to_files_and_back(case, run, tmp_path):
    table, scores, key, who = case
    out = tmp_path / "out"
    code, text, _ = run("partition", table, "--scores", scores, "-o", out)
    assert code == 0, text
    assert "exact" in text
    names = {path.name for path in out.iterdir()}
    assert names >= {"partition.csv", "pairs.csv", "speakers.csv", "report.html", "run.json"}
    rows = list(csv.DictReader((out / "partition.csv").open()))
    assert [row["conversation"] for row in rows] == [f"c{m}" for m in range(6) for _ in "12"]
    assert all(row["certainty"] == "exact" for row in rows)
    label = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    code, printed, _ = run("evaluate", out, "--key", key, "--json")
    found = json.loads(printed)
    assert code == 0
    assert found["agreement"]["clusters"] == len(set(label.tolist()))
    assert found["cross_entropy_bits"][0] == found["cross_entropy_bits"][1] >= 0.0
    counts = list(csv.DictReader((out / "speakers.csv").open()))
    assert sum(float(row["probability"]) for row in counts) == pytest.approx(1.0, abs=1e-6)
    assert run("evaluate", out, "--key", key)[0] == 0
    assert run("report", out)[0] == 0
    assert len(who) == len(read_partition(out).label)


def test_the_library_says_what_the_files_say(case, tmp_path):
    table, scores, key, _ = case
    found = spklink.partition(table, tmp_path / "out", scores=scores)
    direct = spklink.evaluate_partition(found, key)
    saved = spklink.evaluate_partition(tmp_path / "out", key)
    assert direct.agreement == saved.agreement
    assert direct.cross_entropy_bits == pytest.approx(saved.cross_entropy_bits, abs=1e-6)
    assert "speakers" in repr(found)
    assert len(found.to_pandas()) == 12


def test_levels_know_more_and_more(case):
    """The truth gets no less probable by knowing what is true."""
    table, scores, key, who = case
    people = len(set(who.tolist()))
    known = [{"level": 1}, {"level": 2, "speakers": people}, {"level": 3, "speakers": people}]
    bits = []
    for more in known:
        found = spklink.partition(table, scores=full(scores), **more)
        bits.append(spklink.evaluate_partition(found, key).cross_entropy_bits[0])
    assert bits[0] >= bits[1] >= bits[2]


def full(scores):
    """With scores between the sides of a call, which level 1 needs."""
    rows = list(csv.DictReader(scores.open()))
    calls = {row["conversation_1"] for row in rows} | {row["conversation_2"] for row in rows}
    within = dict.fromkeys(("conversation_1", "conversation_2"))
    return rows + [
        within
        | {"conversation_1": c, "channel_1": "1", "conversation_2": c, "channel_2": "2"}
        | {"score": "-6.0"}
        for c in sorted(calls)
    ]


def test_lists_are_passed_over_but_for_their_number(tmp_path):
    table, scores, _, who = write_case(tmp_path, lists=True)
    found = spklink.partition(table, scores=full(scores), level=2)
    assert found.speakers == len(set(who.tolist()))
    assert any("as the lists" in note for note in found.notes)
    table.write_text(table.read_text().replace("p0", "?").replace(";", ";;;"))
    assert spklink.partition(table, scores=scores).speakers is None


def test_known_pairs_are_obeyed(case, tmp_path):
    table, scores, _, _ = case
    columns = ("conversation_1", "channel_1", "conversation_2", "channel_2", "same")
    rows = [dict(zip(columns, row, strict=True)) for row in
            [("c0", "1", "c1", "1", "yes"), ("c0", "2", "c2", "1", "no")]]  # fmt: skip
    found = spklink.partition(table, tmp_path / "out", scores=scores, pairs=rows)
    label = found.beliefs.label
    assert label[0] == label[2]
    assert label[1] != label[4]
    pair = list(zip(found.beliefs.one, found.beliefs.two, strict=True)).index((0, 2))
    assert found.beliefs.pair.value[pair] == 1.0
    assert read_partition(tmp_path / "out").problem is not None


@pytest.mark.parametrize("method", ["agglomerative", "sample"])
def test_estimates_are_never_called_exact(case, method, tmp_path):
    table, scores, key, _ = case
    found = spklink.partition(table, tmp_path / "out", scores=scores, method=method, sweeps=400)
    assert found.beliefs.certainty in ("sampled", "estimated")
    assert found.beliefs.entropy_bits is None
    measured = spklink.evaluate_partition(tmp_path / "out", key)
    assert measured.cross_entropy_bits is None
    if method == "agglomerative":
        assert (found.beliefs.side.low == 0.0).all()
        assert (found.beliefs.side.high == 1.0).all()


def test_vectors_are_calibrated_without_lists(tmp_path):
    rng = np.random.default_rng(0)
    who = np.array([rng.choice(8, 2, replace=False) for _ in range(60)]).ravel()
    voices = rng.normal(size=(8, 24)) * 2.0
    vectors = voices[who] + rng.normal(size=(120, 24))
    rows = [{"conversation": f"c{m}"} for m in range(60)]
    found = spklink.partition(rows, tmp_path / "out", embeddings=vectors, method="agglomerative")
    key = [
        {"conversation": f"c{s // 2}", "channel": s % 2 + 1, "speaker": f"p{who[s]}"}
        for s in range(120)
    ]
    assert spklink.evaluate_partition(found, key).agreement.adjusted_rand > 0.95
    assert found.calibration["kind"] == "cmlg"
    assert any("no list vouches" in note for note in found.notes)
    again = spklink.partition(
        rows, embeddings=vectors, method="agglomerative",
        calibration=tmp_path / "out" / "calibration.json",
    )  # fmt: skip
    assert (again.beliefs.label == found.beliefs.label).all()


def test_very_many_sides_go_by_the_pairs_that_matter(tmp_path, monkeypatch):
    monkeypatch.setattr("spklink.runs.partition.DENSE_SIDES", 300)
    rng = np.random.default_rng(1)
    who = np.array([rng.choice(60, 2, replace=False) for _ in range(200)]).ravel()
    voices = rng.normal(size=(60, 32)) * 2.0
    vectors = voices[who] + rng.normal(size=(400, 32))
    rows = [{"conversation": f"c{m}"} for m in range(200)]
    found = spklink.partition(rows, tmp_path / "out", embeddings=vectors)
    key = [
        {"conversation": f"c{s // 2}", "channel": s % 2 + 1, "speaker": f"p{who[s]}"}
        for s in range(400)
    ]
    measured = spklink.evaluate_partition(tmp_path / "out", key)
    assert found.beliefs.certainty == "estimated"
    assert measured.agreement.adjusted_rand > 0.95
    assert measured.cross_entropy_bits is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--level", "1", "--speakers", "3"), "--level 1"),
        (("--speakers", "99"), "--speakers 99"),
        (("--speakers", "1"), "no partition into 1"),
        (("--prior", "crp"), "--prior"),
        (("--weight", "paper", "--beta", "1"), "--beta"),
        (("--level", "2"), "--speakers"),
        (("--floor", "2"), "--floor"),
    ],
)
def test_what_cannot_be_is_one_line(case, more, said, run, tmp_path):
    table, scores, _, _ = case
    code, _, err = run("partition", table, "--scores", scores, "-o", tmp_path / "out", *more)
    assert code == 2
    assert said in err
    assert not (tmp_path / "out" / "run.json").exists()


def test_a_missing_score_is_named(case, run, tmp_path):
    table, scores, _, _ = case
    lines = scores.read_text().splitlines()
    scores.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(SpklinkError, match="1 pairs of sides have no score, such as"):
        spklink.partition(table, scores=scores)


def test_sides_of_a_call_need_a_score_where_they_might_be_one(case):
    table, scores, _, _ = case
    with pytest.raises(SpklinkError, match="6 pairs of sides have no score, such as c0 channel 1"):
        spklink.partition(table, scores=scores, level=1)


def test_participants_may_be_missing_here_only(case):
    table, scores, _, _ = case
    with pytest.raises(SpklinkError, match="participants"):
        spklink.assign(table, scores)

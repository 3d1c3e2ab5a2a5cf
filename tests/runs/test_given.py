"""`link` from vectors and from scores that somebody else computed."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import spklink
from commands import rows
from given_voices import make_voices
from spklink.errors import SpklinkError
from spklink.runs.folder import load

VOICES = make_voices()


def wrong(result, key=VOICES.key):
    """Sides with another name than in the key."""
    said = {(r[0], str(r[1])): r[2] for r in result.assignments()}
    return sum(said[r["conversation"], r["channel"]] != r["speaker"] for r in key)


def all_scores(voices=VOICES, scale=1.0, shift=0.0):
    """(S, S) cosines about the mean, in some unit."""
    centred = voices.vectors - voices.vectors.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return (scale * (unit @ unit.T) + shift).astype(np.float64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return VOICES.write(tmp_path_factory.mktemp("voices"))


@pytest.fixture(scope="module")
def linked(folder):
    out = folder / "out"
    result = spklink.link(folder / "conversations.csv", out, embeddings=folder / "vectors.npz")
    return result, out


def test_vectors_without_any_recording(linked):
    result, out = linked
    assert wrong(result) == 0
    assert spklink.evaluate(out, VOICES.key).total == len(VOICES.table)
    assert "float" not in (out / "assignments.csv").read_text()  # figures, however close to 1
    run = json.loads((out / "run.json").read_text())
    assert run["recognizer"]["name"] == "embeddings"
    assert run["recognizer"]["recipe"]["dimensions"] == 24
    assert run["inputs"]["embeddings"]["file"] == "../vectors.npz"
    assert len(run["inputs"]["embeddings"]["sha256"]) == 64
    assert {path.name for path in (out / "cache").iterdir()} == {"answers", "models"}
    assert result.calibration["kind"] == "lr-dur"  # the file has the seconds of speech


def test_all_later_stages_are_those_of_audio(linked):
    result, out = linked
    assert result.raw is not None
    assert not result.answer.binary
    assert result.calibration["source"] == "labelfree"
    assert result.calibration["first"]  # voices were compared twice
    for name in ("sides.csv", "problems.csv", "misfits.csv", "presence.csv", "scores.npz"):
        assert (out / name).exists()
    assert {r["mark"] for r in rows(out / "sides.csv")} == {""}


def test_a_folder_is_read_back(linked):
    result, out = linked
    again = load(out)
    assert list(again.assignments()) == list(result.assignments())
    assert spklink.write_report(out).exists()


def test_without_seconds_the_calibration_does_without(folder, tmp_path):
    result = spklink.link(VOICES.table, tmp_path / "out", embeddings=VOICES.arrays())
    assert wrong(result) == 0
    assert result.calibration["kind"] == "lr-floor"
    assert result.summary()["speech_hours"] is None
    assert {r["speech_seconds"] for r in rows(tmp_path / "out" / "sides.csv")} == {""}
    assert load(tmp_path / "out").summary()["speech_hours"] is None
    spklink.write_report(tmp_path / "out")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["inputs"]["embeddings"]["file"] is None


def test_a_kind_by_speech_asks_for_seconds():
    with pytest.raises(SpklinkError, match=r"--kind lr-dur needs the seconds .*--sides"):
        spklink.link(VOICES.table, embeddings=VOICES.arrays(), kind="lr-dur")


def test_seconds_from_a_table(tmp_path):
    sides = [
        {"conversation": name, "channel": track, "speech_seconds": seconds}
        for name, track, seconds in zip(
            VOICES.conversation, VOICES.channel, VOICES.seconds, strict=True
        )
    ]
    sides[3]["speech_seconds"] = 0.5
    result = spklink.link(VOICES.table, embeddings=VOICES.arrays(), sides=sides)
    assert result.calibration["kind"] == "lr-dur"
    assert result.listening.speech.marks[3] == "too little speech"
    assert sum(map(bool, result.listening.speech.marks)) == 1


def test_names_rows_and_channels_change_nothing(linked):
    """Sides are taken in the order of their vectors."""
    result, _ = linked
    order = np.random.default_rng(4).permutation(len(VOICES.table))
    table = [{**VOICES.table[m], "conversation": f"x{m}"} for m in order]
    names = [f"x{m}" for m in range(len(VOICES.table)) for _ in range(2)]
    given = {
        "conversation": np.array(names),
        "channel": 3 - np.array(VOICES.channel),
        "embedding": VOICES.vectors,
        "seconds": VOICES.seconds,
    }
    other = spklink.link(table, embeddings=given)
    first = _answers(result, {t["conversation"]: k for k, t in enumerate(VOICES.table)}, False)
    second = _answers(other, {f"x{m}": m for m in range(len(VOICES.table))}, True)
    assert {at: name for at, (name, _) in first.items()} == {
        at: name for at, (name, _) in second.items()
    }
    chances = [[float(found[at][1]) for at in sorted(found)] for found in (first, second)]
    np.testing.assert_allclose(*chances, rtol=0.0, atol=1e-9)
    scores = [np.sort(found.raw.score) for found in (result, other)]
    np.testing.assert_allclose(*scores, rtol=1e-10)  # the same pairs were drawn


def _answers(result, number, turned):
    """(call, side) → name and probability."""
    return {
        (number[r[0]], 3 - int(r[1]) if turned else int(r[1])): (r[2], str(r[3]))
        for r in result.assignments()
    }


def test_missing_sides_are_marked_and_never_named(tmp_path):
    kept = {name: values[3:] for name, values in VOICES.arrays().items()}
    result = spklink.link(VOICES.table, tmp_path / "out", embeddings=kept)
    assert result.listening.speech.marks[:4] == ["no embedding"] * 3 + [""]
    assert any("3 sides of 240 without an embedding" in note for note in result.notes)
    decided = {(r["conversation"], r["channel"]): r for r in rows(tmp_path / "out/assignments.csv")}
    assert decided["call_00-0", "1"]["decision"] == "unusable"
    assert decided["call_00-0", "2"]["decision"] == "unusable"
    said = [r["problem"] for r in rows(tmp_path / "out/problems.csv")]
    assert said == ["missing: no embedding in the file"] * 3


def test_bad_vectors_stop_a_run_or_are_marked():
    vectors = VOICES.vectors.copy()
    vectors[7] = np.nan
    given = VOICES.arrays() | {"embedding": vectors}
    with pytest.raises(SpklinkError, match=r"entry 7: no vector: number 1 is nan.*--on-bad-audio"):
        spklink.link(VOICES.table, embeddings=given)
    result = spklink.link(VOICES.table, embeddings=given, on_bad_audio="skip")
    assert result.listening.speech.marks[7] == "bad embedding"
    assert wrong(result) <= 2


def test_vectors_that_are_all_alike_are_refused():
    """But for rounding: no two are equal."""
    vectors = np.tile(VOICES.vectors[0], (240, 1))
    for k in range(240):
        vectors[k, k % 24] += (1 + k // 24) * np.spacing(vectors[k, k % 24])
    with pytest.raises(SpklinkError, match="vectors are alike"):
        spklink.link(VOICES.table, embeddings=vectors)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"embeddings": VOICES.vectors, "scores": all_scores()}, "give one of the two"),
        ({"embeddings": VOICES.vectors, "components": 8}, "--components is about listening"),
        ({"sides": []}, "--sides goes with --embeddings or --scores"),
        ({"embedding_keys": []}, "--embedding-keys goes with --embeddings"),
        ({"scores": all_scores(), "embedding_keys": []}, "not with --scores"),
    ],
)
def test_what_does_not_go_together(options, said):
    with pytest.raises(SpklinkError, match=said):
        spklink.link(VOICES.table, **options)


# --- scores -------------------------------------------------------------------------------------


def test_raw_scores_of_any_unit_give_the_same_answer(tmp_path):
    plain = spklink.link(VOICES.table, tmp_path / "a", scores=all_scores())
    other = spklink.link(VOICES.table, tmp_path / "b", scores=all_scores(scale=40.0, shift=-300.0))
    assert wrong(plain) == wrong(other) == 0
    one, two = (np.array([float(r[3]) for r in found.assignments()]) for found in (plain, other))
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert any("link-WCCN): that needs vectors" in note for note in plain.notes)
    run = json.loads((tmp_path / "a" / "run.json").read_text())
    assert run["recognizer"]["name"] == "scores"
    assert run["recognizer"]["normalise"] is True
    spklink.write_report(tmp_path / "a")
    assert list(load(tmp_path / "a").assignments()) == list(plain.assignments())


def test_scores_of_the_same_vectors_are_normalised_as_vectors_are():
    """Without the second comparison the two ways must meet."""
    scores = spklink.link(VOICES.table, scores=all_scores(), link_wccn=False, kind="lr")
    vectors = spklink.link(VOICES.table, embeddings=VOICES.vectors, link_wccn=False, kind="lr")
    both = [np.sort(found.raw.score[: len(found.evidence.scores.needed)])
            for found in (scores, vectors)]  # fmt: skip
    np.testing.assert_allclose(*both, rtol=1e-3, atol=1e-3)
    assert not scores.notes


def needed_rows(sides=None):
    """Only the scores that are needed and those within calls, as a table."""
    names = list(zip(VOICES.conversation, VOICES.channel, strict=True))
    scores, people = all_scores(), {r["conversation"]: r["participants"] for r in VOICES.table}
    for i, (a, u) in enumerate(names):
        for j, (b, v) in enumerate(names[:i]):
            shared = set(people[a].split(";")) & set(people[b].split(";"))
            if shared and (sides is None or (i in sides and j in sides)):
                yield a, u, b, v, scores[i, j]


def test_without_scores_of_strangers_it_is_said_what_could_not_be_done(tmp_path):
    path = tmp_path / "scores.csv"
    with path.open("w", newline="") as file:
        header = ["conversation_1", "channel_1", "conversation_2", "channel_2", "score"]
        csv.writer(file).writerows([header, *needed_rows()])
    result = spklink.link(VOICES.table, scores=path)
    assert any("scores are not normalised" in note for note in result.notes)
    assert wrong(result) <= 6


def test_scores_of_sides_that_are_not_used_may_be_missing(tmp_path):
    sides = [
        {"conversation": name, "channel": track, "speech_seconds": 30, "mark": ""}
        for name, track in zip(VOICES.conversation, VOICES.channel, strict=True)
    ]
    sides[0]["mark"] = "noise"
    header = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
    given = [dict(zip(header, row, strict=True)) for row in needed_rows(range(1, 240))]
    result = spklink.link(VOICES.table, scores=given, sides=sides)
    assert result.listening.speech.marks[0] == "noise"
    with pytest.raises(SpklinkError, match="have no score: call_00-0 channel 1"):
        spklink.link(VOICES.table, scores=given)

from __future__ import annotations

import numpy as np
import pytest

from spklink import SpklinkError, find_links, read_scores
from spklink.database.conversations import make_conversations
from spklink.scores import npz_format as scores_npz

HEADER = "conversation_1,channel_1,conversation_2,channel_2,score\n"
TABLE = make_conversations([("x", "a", "b"), ("y", "c", "a"), ("z", "d", "e"), ("w", "b", "a")])
LINKS = find_links(TABLE)
SIDES = [(c, ch) for c in "xyzw" for ch in (1, 2)]
NEEDED = [("x", "y"), ("x", "w"), ("y", "w")]


def value(one, two) -> float:
    """A score for every two sides, the same in either order."""
    i, j = sorted((SIDES.index(one), SIDES.index(two)))
    return i + j / 10


def rows(*, turned=False):
    for first, second in NEEDED:
        for u in (1, 2):
            for v in (1, 2):
                one, two = (first, u), (second, v)
                if turned:
                    one, two = two, one
                yield f"{one[0]},{one[1]},{two[0]},{two[1]},{value(one, two)}\n"


def expected() -> np.ndarray:
    ids = TABLE.ids
    return np.array(
        [
            [[value((ids[i], u), (ids[j], v)) for v in (1, 2)] for u in (1, 2)]
            for i, j in zip(LINKS.first, LINKS.second, strict=True)
        ]
    ).ravel()


def message(path) -> str:
    with pytest.raises(SpklinkError) as caught:
        read_scores(path, TABLE, LINKS)
    assert path.name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("turned", [False, True])
def test_csv_in_either_order(write, turned):
    path = write("s.csv", HEADER + "".join(rows(turned=turned)))
    assert np.array_equal(read_scores(path, TABLE, LINKS).needed, expected())


def test_unneeded_pairs_are_counted_not_kept(write):
    extra = "x,1,x,2,-9\nz,1,x,2,-8\nnobody,1,x,2,7\n"
    found = read_scores(write("s.csv", HEADER + "".join(rows()) + extra), TABLE, LINKS)
    assert found.needed.size == 12
    assert found.others == 3


def test_equal_duplicates_are_accepted(write):
    text = HEADER + "".join(rows()) + "".join(rows(turned=True))
    assert np.array_equal(read_scores(write("s.csv", text), TABLE, LINKS).needed, expected())


def test_duplicates_that_disagree(write):
    text = message(write("s.csv", HEADER + "".join(rows()) + "y,2,x,1,99\n"))
    assert "99" in text
    assert "same two sides" in text


def test_duplicates_that_disagree_across_chunks(write, monkeypatch):
    from spklink.scores import csv_format as scores_csv

    monkeypatch.setattr(scores_csv, "CHUNK", 5)
    text = message(write("s.csv", HEADER + "".join(rows()) + "y,2,x,1,99\n"))
    assert "row 14" in text


def test_missing_pairs_are_named(write):
    text = message(write("s.csv", HEADER + "".join(list(rows())[:-2])))
    assert "2 needed side pairs of 12" in text
    assert "y channel 2 with w channel 1" in text


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_not_finite_csv(write, bad):
    text = message(write("s.csv", HEADER + "".join(rows()) + f"x,1,y,1,{bad}\n"))
    assert "row 14" in text
    assert "not a finite number" in text


def test_not_a_number(write):
    text = message(write("s.csv", HEADER + "".join(rows()) + "x,1,y,1,high\n"))
    assert "row 14" in text
    assert "'high' is not a number" in text


def test_bad_channel(write):
    text = message(write("s.csv", HEADER + "".join(rows()) + "x,3,y,1,1.0\n"))
    assert "row 14" in text
    assert "a channel is 1 or 2" in text


def test_short_row(write):
    assert "row 14" in message(write("s.csv", HEADER + "".join(rows()) + "x,1,y\n"))


def test_unknown_kind_of_file(write):
    assert ".csv, .npz or .parquet" in message(write("s.txt", "hello"))


# --- npz -----------------------------------------------------------------------------------------


def sides():
    return {
        "conversation": np.array([c for c, _ in SIDES]),
        "channel": np.array([ch for _, ch in SIDES]),
    }


def dense() -> np.ndarray:
    return np.array([[value(a, b) if a != b else np.nan for b in SIDES] for a in SIDES])


def test_npz_triples(tmp_path):
    first, second = np.triu_indices(len(SIDES), 1)
    score = np.array([value(SIDES[i], SIDES[j]) for i, j in zip(first, second, strict=True)])
    np.savez(tmp_path / "s.npz", **sides(), side_1=second, side_2=first, score=score)
    found = read_scores(tmp_path / "s.npz", TABLE, LINKS)
    assert np.array_equal(found.needed, expected())
    assert found.others == len(first) - 12


@pytest.mark.parametrize("cells", [1, 20, 1 << 20])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_dense_in_blocks(tmp_path, monkeypatch, cells, save):
    monkeypatch.setattr(scores_npz, "BLOCK_CELLS", cells)
    order = np.random.default_rng(0).permutation(len(SIDES))
    arrays = {name: array[order] for name, array in sides().items()}
    matrix = dense()[np.ix_(order, order)].astype(np.float32)
    save(tmp_path / "s.npz", **arrays, scores=np.asfortranarray(matrix))
    found = read_scores(tmp_path / "s.npz", TABLE, LINKS)
    assert np.allclose(found.needed, expected(), atol=1e-6)


def test_npz_dense_not_symmetric(tmp_path):
    matrix = dense()
    matrix[0, 2] += 1.0
    np.savez(tmp_path / "s.npz", **sides(), scores=matrix)
    text = message(tmp_path / "s.npz")
    assert "not symmetric: x channel 1 with y channel 1" in text


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_the_halves_of_a_dense_matrix_may_differ_by_rounding(tmp_path, size):
    matrix = dense()
    matrix[0, 2], matrix[2, 0] = size, size * (1.0 + 9e-6)
    np.savez(tmp_path / "s.npz", **sides(), scores=matrix)
    found = read_scores(tmp_path / "s.npz", TABLE, LINKS)
    assert np.isclose(found.needed, size * (1.0 + 4.5e-6), rtol=1e-12, atol=0.0).sum() == 1


def test_npz_dense_not_finite(tmp_path):
    matrix = dense()
    matrix[4, 1] = np.inf
    np.savez(tmp_path / "s.npz", **sides(), scores=matrix)
    assert "scores[4, 1] is inf" in message(tmp_path / "s.npz")


def test_npz_triples_not_finite_and_outside(tmp_path):
    arrays = {"side_1": np.array([0, 0]), "side_2": np.array([2, 80])}
    np.savez(tmp_path / "s.npz", **sides(), **arrays, score=np.array([np.nan, 1.0]))
    text = message(tmp_path / "s.npz")
    assert "triple 0: score is nan" in text
    assert "triple 1: sides 0, 80 outside 0..7" in text


def test_npz_with_pickle_is_refused(tmp_path):
    np.savez(tmp_path / "s.npz", **sides(), scores=np.array([[{}]], dtype=object))
    assert "not numbers" in message(tmp_path / "s.npz")
    np.savez(tmp_path / "o.npz", conversation=np.array([None]), channel=np.array([1]))
    assert "pickle" in message(tmp_path / "o.npz").lower()


@pytest.mark.parametrize(
    ("arrays", "expected_text"),
    [
        ({"scores": np.zeros((3, 3))}, "is (3, 3) where 8 sides are listed"),
        ({}, "needs arrays side_1, side_2, score or a matrix scores"),
        (
            {"side_1": np.zeros(2, int), "side_2": np.zeros(3, int), "score": np.zeros(2)},
            "lists of one length",
        ),
    ],
)
def test_npz_of_wrong_shape(tmp_path, arrays, expected_text):
    np.savez(tmp_path / "s.npz", **sides(), **arrays)
    assert expected_text in message(tmp_path / "s.npz")


def test_npz_side_twice(tmp_path):
    arrays = sides()
    arrays["channel"][1] = 1
    np.savez(tmp_path / "s.npz", **arrays, scores=dense())
    assert "sides 0 and 1 are both x channel 1" in message(tmp_path / "s.npz")


def test_npz_that_is_none(write):
    assert "not a readable .npz" in message(write("s.npz", b"not a zip"))

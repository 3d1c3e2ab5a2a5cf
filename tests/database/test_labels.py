from __future__ import annotations

import numpy as np
import pytest

from spklink import SpklinkError, read_key, read_known
from spklink.database.conversations import make_conversations
from spklink.posterior.likelihood import combine_prior

TABLE = make_conversations([("x", "a", "b"), ("y", "c", "a"), ("z", "d", "e")])
HEADER = "conversation,channel,speaker\n"


def message(read, path) -> str:
    with pytest.raises(SpklinkError) as caught:
        read(path, TABLE)
    assert path.name in str(caught.value)
    return str(caught.value)


def test_one_or_two_rows_a_conversation(write):
    key = read_key(write("k.csv", HEADER + "x,1,a\nx,2,b\ny,1,a\n"), TABLE)
    assert key.bits.tolist() == [0, 1, -1]


def test_foreign_rows_of_a_key_are_counted(write):
    assert read_key(write("k.csv", HEADER + "x,1,a\nq,1,a\n"), TABLE).foreign == 1


def test_soft_knowledge_becomes_a_prior(write):
    text = "conversation,channel,speaker,probability\nx,1,b,0.8\ny,2,c,\nz,1,d,0\n"
    known = read_known(write("k.csv", text), TABLE)
    assert np.allclose(known.exchanged, [0.8, 1.0, 1.0])
    prior = combine_prior(TABLE, known)
    assert prior.clamped.tolist() == [-1, 1, 1]
    assert np.isclose(prior.log_odds[0], np.log(4.0))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("q,1,a", "no conversation 'q'"),
        ("x,3,a", "channel '3' is not 1 or 2"),
        ("x,1,c", "speaker 'c' takes no part in conversation 'x' (a and b)"),
    ],
)
def test_bad_rows(write, row, expected):
    text = message(read_known, write("k.csv", HEADER + row + "\n"))
    assert "row 2" in text
    assert expected in text


@pytest.mark.parametrize("chance", ["2", "-0.1", "maybe"])
def test_bad_probability(write, chance):
    text = "conversation,channel,speaker,probability\nx,1,a," + chance + "\n"
    assert "not between 0 and 1" in message(read_known, write("k.csv", text))


def test_contradictions_name_both_rows(write):
    text = message(read_key, write("k.csv", HEADER + "x,1,a\ny,1,c\nx,2,a\n"))
    assert "row 4: contradicts row 2" in text


def test_missing_column(write):
    assert "no column 'speaker'" in message(read_known, write("k.csv", "conversation,channel\n"))

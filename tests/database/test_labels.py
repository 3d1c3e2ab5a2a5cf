from __future__ import annotations

import numpy as np
import pytest

from spklink import SpklinkError, read_conversations, read_key, read_known
from spklink.database.conversations import make_conversations
from spklink.database.labels import STRANGER, read_claims
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


# --- people who are not listed, and other numbers of tracks -----------------------------------

MEETINGS = read_conversations(
    [
        {"conversation": "x", "participants": "a;b;c;?d"},
        {"conversation": "y", "participants": "a;?"},
        {"conversation": "z", "participants": "a;e"},
    ]
)


def rows(*statements):
    names = ("conversation", "channel", "speaker", "probability")
    return [dict(zip(names, row, strict=False)) for row in statements]


def said(labels):
    one = labels.said
    return list(
        zip(
            one.conversation.tolist(),
            one.track.tolist(),
            one.person.tolist(),
            one.probability.tolist(),
            one.names,
            strict=True,
        )
    )


def test_statements_about_tracks():
    given = rows(("x", "3", "d", 0.25), ("x", 3, "a", 0.5), ("y", 1, "*"), ("x", "3", "d", 0.25))
    known = read_known(given, MEETINGS)
    assert said(known) == [(0, 2, 3, 0.25, "d"), (0, 2, 0, 0.5, "a"), (1, 0, STRANGER, 1.0, "*")]
    assert np.isnan(known.exchanged).all()


def test_a_plain_table_has_bits_and_statements():
    key = read_key(rows(("x", 1, "b"), ("y", 2, "a")), TABLE)
    assert key.bits.tolist() == [1, 0, -1]
    assert said(key) == [(0, 0, 1, 1.0, "b"), (1, 1, 0, 1.0, "a")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("x", 4, "a")], "row 2: channel '4' is not one of 1, 2, 3"),
        ([("x", 1, "e")], "speaker 'e' takes no part in conversation 'x' (a and b and c and d)"),
        ([("x", 1, "*")], "someone else ('*') in conversation 'x', whose tracks are all taken"),
        ([("z", 1, "*")], "someone else ('*') in conversation 'z'"),
        ([("x", 1, "")], "no speaker; write '*'"),
        ([("x", 1, "a"), ("x", 1, "b")], "row 3: contradicts row 2 about conversation 'x'"),
        ([("x", 1, "a"), ("x", 2, "a")], "row 3: contradicts row 2"),
        ([("x", 1, "a", 0.6), ("x", 2, "a", 0.5)], "row 3: contradicts row 2"),
        ([("x", 1, "a", 0.6), ("x", 1, "a", 0.5)], "row 3: contradicts row 2"),
        ([("y", 1, "a", 0.6), ("y", 1, "*", 0.5)], "row 3: contradicts row 2"),
    ],
)
def test_faults(given, expected):
    with pytest.raises(SpklinkError) as caught:
        read_known(rows(*given), MEETINGS)
    assert expected in str(caught.value)


def test_two_strangers_are_no_contradiction():
    table = read_conversations([{"conversation": "x", "participants": "?;?"}])
    assert len(read_known(rows(("x", 1, "*"), ("x", 2, "*")), table).said) == 2


@pytest.mark.parametrize("order", [1, -1])
def test_a_key_may_name_people_who_are_not_listed(order):
    """No bit is true of such a conversation, but everybody's name is kept."""
    given = [("x", 1, "e"), ("x", 2, "b"), ("y", 1, "nobody"), ("z", 2, "d")][::order]
    key = read_key(rows(*given), TABLE)
    assert key.bits.tolist() == [-1, -1, 1]
    assert sorted(said(key)) == [
        (0, 0, STRANGER, 1.0, "e"),
        (0, 1, 1, 1.0, "b"),
        (1, 0, STRANGER, 1.0, "nobody"),
        (2, 1, 3, 1.0, "d"),
    ]
    e, d = TABLE.speakers.index("e"), TABLE.speakers.index("d")
    assert key.speakers(TABLE).tolist() == [e, 1, 5, -1, e, d]


def test_nobody_by_name_is_no_speaker():
    key = read_key(rows(("x", 1, "*"), ("x", 2, "q"), ("z", 1, "q"), ("z", 2, "a")), MEETINGS)
    q = len(MEETINGS.speakers)
    assert key.speakers(MEETINGS).tolist() == [-1, q, -1, -1, -1, q, 0]


def test_a_key_of_other_names_is_refused():
    with pytest.raises(SpklinkError, match=r"nobody in it is listed .*the first is .A."):
        read_key(rows(("x", 1, "A"), ("y", 1, "C")), TABLE)


def test_claims_are_about_people_who_are_listed():
    assert read_claims(rows(("x", 1, "b"), ("q", 1, "b")), TABLE).bits.tolist() == [1, -1, -1]
    with pytest.raises(SpklinkError, match="'e' takes no part"):
        read_claims(rows(("x", 1, "e")), TABLE)

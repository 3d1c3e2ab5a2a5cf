"""Participant lists: certain, possible, unknown, open; every error, and both forms of the table."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spklink import SpklinkError, find_cliques, read_conversations
from spklink.database.cliques import inseparable
from spklink.database.conversations import make_conversations
from spklink.database.sides import (
    are_strangers,
    certainly_different,
    refuse_more_than_bits,
    speakers_on,
)
from spklink.worlds.files import write_table

pytestmark = pytest.mark.usefixtures("either_way")

LONG = "conversation,speaker,status,probability\n"


def read(participants: str, **cells: str):
    return read_conversations([{"conversation": "x", "participants": participants, **cells}])


def read_rows(*rows: str, header: str = LONG):
    names = header.strip().split(",")
    return read_conversations([dict(zip(names, row.split(","), strict=True)) for row in rows])


def message(make) -> str:
    with pytest.raises(SpklinkError) as caught:
        make()
    return str(caught.value)


def test_marks_of_the_plain_table():
    table = read("anna;bob;? carol;?;*")
    assert table.names(0) == ("anna", "bob", "carol")
    assert table.presence.tolist() == [1.0, 1.0, 0.5]
    assert table.possible.tolist() == [False, False, True]
    assert (table.unknown.tolist(), table.open.tolist()) == ([1], [True])
    assert table.sides.counts.tolist() == [3]
    assert not table.plain


def test_two_certain_people_are_plain():
    for table in (read("a;b"), make_conversations([("x", "a", "b")]), read("a;b", tracks="2.0")):
        assert table.plain
        assert table.presence.tolist() == [1.0, 1.0]
        assert not table.possible.any()
        assert not table.unknown.any()
        assert not table.open.any()
        refuse_more_than_bits(table)


@pytest.mark.parametrize("participants", ["a;?b", "a;?", "a;b;?c", "a;b;*", "?;?", "*", "a;b;c"])
def test_all_else_is_not(participants):
    table = read(participants)
    assert not table.plain
    assert "conversation 'x' is not between two" in message(lambda: speakers_on(table, None))


@pytest.mark.parametrize(
    ("participants", "cells", "tracks"),
    [
        ("a;b", {}, 2),
        ("a;?", {}, 2),
        ("a;*", {}, 2),
        ("a;b;?c", {}, 2),
        ("a;b;c;?;?d", {}, 4),
        ("a;b;c;?d", {"audio": "1.wav;2.wav;3.wav"}, 3),
        ("a;b;c;?d", {"audio": "1.wav"}, 3),
        ("a;b;c;?d", {"audio": "1.wav", "tracks": "4"}, 4),
        ("a", {"tracks": "1"}, 1),
        ("a;*", {"tracks": "40"}, 40),
    ],
)
def test_number_of_tracks(participants, cells, tracks):
    assert read(participants, **cells).sides.counts.tolist() == [tracks]


FAULTS = [
    ("a;b;c", {"tracks": "2"}, "3 participants for 2 tracks (column tracks); write those who may"),
    ("a;?;?", {"audio": "1.wav;2.wav"}, "3 participants for 2 tracks (2 audio files); write"),
    ("a;?", {"tracks": "1"}, "2 participants for 1 track (column tracks)"),
    ("a", {}, "only one participant ('a') for 2 tracks; add ? for each unknown person, or * for"),
    ("a;b;?c", {"tracks": "4"}, "only 3 participants for 4 tracks (column tracks); add ?"),
    ("a;?a", {}, "participant 'a' twice in conversation 'x'"),
    ("a;??b", {}, "participant '??b': ?name is a possible participant"),
    ("a;*b", {}, "participant '*b': ?name is a possible participant"),
    ("a;?b=0.8", {}, "participant '?b=0.8': a probability has a column of its own"),
    ("a;;?", {}, "an empty participant name"),
    ("a;b", {"tracks": "0"}, "tracks '0' is not a whole number between 1 and 1000"),
    ("a;b", {"tracks": "2.5"}, "tracks '2.5' is not a whole number"),
    ("a;b", {"tracks": "٣"}, "tracks '٣' is not a whole number"),
    ("a;b", {"tracks": "9" * 50}, "is not a whole number"),
    ("a;b;c", {"tracks": "3", "audio": "1.wav;2.wav"}, "2 audio files for 3 tracks; give one file"),
    ("a;b;c", {"prior": "0.3"}, "prior '0.3', which is about two named people on two tracks"),
    ("a;?", {"prior": "0.3"}, "prior '0.3', which is about two named people on two tracks"),
    (";".join(f"s{k}" for k in range(17)), {}, "17 named participants on 17 tracks; at most 16"),
    ("*;" + ";".join(f"?s{k}" for k in range(101)), {}, "101 named participants; at most 100"),
]


@pytest.mark.parametrize(("participants", "cells", "expected"), FAULTS)
def test_faults_of_the_plain_table(participants, cells, expected):
    text = message(lambda: read(participants, **cells))
    assert "row 2" in text
    assert expected in text
    assert "problems" not in text  # one fault, one message


def test_a_prior_of_one_half_says_nothing():
    assert read("a;b;c", prior="0.5").prior.tolist() == [0.5]
    assert read("a;?b", prior="0.3").prior.tolist() == [0.3]


def test_long_table():
    table = read_rows(
        "x,a,certain,", "x,b,Possible,0.8", "x,NN,unknown,", "x,,unknown,", "x,,open,"
    )
    assert table.names(0) == ("a", "b")
    assert table.presence.tolist() == [1.0, 0.8]
    assert table.possible.tolist() == [False, True]
    assert (table.unknown.tolist(), table.open.tolist()) == ([2], [True])


def test_rows_without_a_status_read_as_the_plain_table_does():
    for header, column in (("conversation,participant\n", ""), (LONG, ",,")):
        rows = (f"x,{who}{column}" for who in ("a", "?b", "?", "*"))
        table = read_rows(*rows, header=header)
        assert table.names(0) == ("a", "b")
        assert (table.unknown.tolist(), table.open.tolist()) == ([1], [True])


def test_names_that_begin_with_marks_need_a_status():
    table = read_rows("x,?a,certain,", "x,*b=1,possible,1")
    assert table.names(0) == ("?a", "*b=1")
    assert table.presence.tolist() == [1.0, 1.0]
    assert table.possible.tolist() == [False, True]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("x,b,maybe,", "status 'maybe' is not certain, possible, unknown or open"),
        ("x,b,possible,0", "probability '0' is not above 0 and at most 1"),
        ("x,b,possible,1.1", "probability '1.1' is not above 0 and at most 1"),
        ("x,b,possible,often", "probability 'often' is not above 0"),
        ("x,b,possible,nan", "probability 'nan' is not above 0"),
        ("x,b,certain,0.9", "probability '0.9' of somebody whose status is not possible"),
        ("x,b,,0.9", "probability '0.9' of somebody whose status is not possible"),
        ("x,,unknown,0.9", "probability '0.9' of somebody whose status is not possible"),
        ("x,b,open,", "status open with the name 'b'"),
        ("x,?,certain,", "a participant called '?'"),
        ("x,*,possible,", "a participant called '*'"),
    ],
)
def test_faults_of_the_long_table(row, expected):
    text = message(lambda: read_rows("x,a,certain,", row))
    assert "row 3: " in text
    assert expected in text
    assert "problems" not in text


# --- any database, written in either form -----------------------------------------------------

NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0;\r\n"), min_size=1, max_size=8)
NAME = NAME.map(str.strip).filter(lambda name: name and name not in "?*")
CHANCE = st.floats(0.01, 1.0)
MARKED = ("?", "*")


@st.composite
def lists(draw, names=NAME, chances=CHANCE):
    people = draw(st.lists(names, max_size=6, unique=True))
    certain = draw(st.integers(0, len(people)))
    chance = [None] * certain + [draw(chances) for _ in people[certain:]]
    unknown, open_ = draw(st.integers(0, 3)), draw(st.booleans())
    if not people and not unknown:
        open_ = True
    low = max(certain + unknown, 1)
    high = 8 if open_ else len(people) + unknown
    order = draw(st.permutations(list(zip(people, chance, strict=True))))
    return order, unknown, open_, draw(st.integers(low, max(low, high)))


def check_same(table, databases):
    assert len(table) == len(databases)
    for m, (people, unknown, open_, tracks) in enumerate(databases):
        here = table.listing.of(m)
        assert table.names(m) == tuple(name for name, _ in people)
        assert table.presence[here].tolist() == [1.0 if p is None else p for _, p in people]
        assert table.possible[here].tolist() == [p is not None for _, p in people]
        assert (table.unknown[m], table.open[m]) == (unknown, open_)
        assert table.sides.counts[m] == tracks


def closed_over_tracks(one) -> bool:
    people, unknown, open_, tracks = one
    return open_ or len(people) + unknown >= tracks


@given(st.lists(lists().filter(closed_over_tracks), min_size=1, max_size=4))
def test_the_long_table_can_say_everything(databases):
    rows = []
    for m, (people, unknown, open_, tracks) in enumerate(databases):
        said = [(n, "certain", None) if p is None else (n, "possible", p) for n, p in people]
        said += [("", "unknown", None)] * unknown + [("", "open", None)] * open_
        rows += [
            {"conversation": m, "tracks": tracks, "speaker": n, "status": s, "probability": p}
            for n, s, p in said
        ]
    table = read_conversations(rows)
    check_same(table, databases)
    with tempfile.TemporaryDirectory() as folder:  # and as it is written
        path = write_table(Path(folder), table, [""] * len(table))
        check_same(read_conversations(path), databases)


PLAIN = NAME.filter(
    lambda name: not name.startswith(MARKED) and "=" not in name and ":" not in name
)


@given(
    st.lists(lists(PLAIN, st.just(0.5)).filter(closed_over_tracks), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_the_plain_table_says_the_same(databases, rng):
    rows = []
    for m, (people, unknown, open_, tracks) in enumerate(databases):
        entries = [n if p is None else f"?{n}" for n, p in people]
        for mark in ["?"] * unknown + ["*"] * open_:
            entries.insert(rng.randint(0, len(entries)), mark)
        rows.append({"conversation": m, "participants": entries, "tracks": tracks})
    check_same(read_conversations(rows), databases)


# --- cliques ----------------------------------------------------------------------------------


def cliques_of(*lists: str):
    rows = [{"conversation": f"c{m}", "participants": who} for m, who in enumerate(lists)]
    table = read_conversations(rows)
    return find_cliques(table), table


def test_lists_without_a_name_are_cliques_of_their_own():
    cliques, _ = cliques_of("?;?", "a;?", "*", "b;a", "?;?")
    assert cliques.label.tolist() == [0, 1, 2, 1, 3]
    assert cliques.speakers.tolist() == [0, 2, 0, 0]


@pytest.mark.parametrize(
    ("lists", "resolvable"),
    [
        (["a;b;c", "c;b;a"], False),
        (["a;b;c", "c;b;a;?"], True),  # on more tracks
        (["a;b;c", "c;b;d"], True),
        (["a;b;?c", "a;b"], True),
        (["a;?"], False),
        (["a;?", "a;?"], True),  # one voice of each call is the same
        (["a;b;*", "b;a;*"], False),
        (["?;?"], True),  # nothing is asked
    ],
)
def test_what_can_be_resolved(lists, resolvable):
    cliques, _ = cliques_of(*lists)
    assert cliques.resolvable.tolist() == [resolvable]


def test_people_who_are_always_together():
    _, table = cliques_of("a;b;c", "b;a;d", "c;e", "c;?f", "g;?h")
    names = {table.speakers[k] for k in table.people[inseparable(table)].tolist()}
    assert names == {"a", "b"}  # h is possible only: the two are not as sure


def test_somebody_unknown_may_be_anybody():
    """Only people of two lists that name everybody are certainly different; and whoever speaks in
    one conversation."""
    _, table = cliques_of("a;b", "c;?", "d;e;*", "f;?g", "a;h")
    sides = np.arange(len(table.sides))
    one, two = (grid.ravel() for grid in np.meshgrid(sides, sides, indexing="ij"))
    m, n = table.sides.conversation[one], table.sides.conversation[two]
    named = {(0, 3), (3, 0), (3, 4), (4, 3)}
    expected = [(i, j) in named for i, j in zip(m.tolist(), n.tolist(), strict=True)]
    assert are_strangers(table, sides, sides).ravel().tolist() == expected
    assert np.array_equal(certainly_different(table, one, two), np.array(expected) | (m == n))

"""Enrolled people: conversations of one track behind all others; what is wrong is named by row."""

import numpy as np
import pytest

from spklink.database.conversations import read_conversations
from spklink.database.enrolment import with_enrolment
from spklink.database.links import find_links
from spklink.errors import SpklinkError

CALLS = [
    {"conversation": "x", "audio": "x.wav", "participants": "ann;bob"},
    {"conversation": "y", "audio": "y.wav", "participants": ""},
]


def table():
    return read_conversations(CALLS, unlisted=True)


def test_they_stand_behind_the_conversations():
    rows = [
        {"speaker": "bob", "audio": "b.wav"},
        {"speaker": "cid", "audio": "c.wav", "channel": "2"},
        {"speaker": "bob", "audio": "b2.wav", "channel": "1.0"},
    ]
    found = with_enrolment(table(), rows)
    assert found.asked == 2
    assert len(found) == 5
    assert found.ids[2:] == ["bob-enrolled-1", "cid-enrolled-1", "bob-enrolled-2"]
    assert found.speakers == ["ann", "bob", "cid"]
    assert found.sides.counts.tolist() == [2, 2, 1, 1, 1]
    assert found.channel == [None, None, None, 1, 0]
    links = find_links(found)  # bob in x and his two recordings
    shared = zip(links.first[links.pair].tolist(), links.second[links.pair].tolist(), strict=True)
    assert sorted(shared) == [(0, 2), (0, 4), (2, 4)]
    assert links.calls.tolist() == [3, 3, 3]
    assert found.place(3) == "enrolment, row 3"
    assert not found.plain


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"speaker": "", "audio": "a.wav"}], ["row 2", "empty speaker"]),
        ([{"speaker": "a;b", "audio": "a.wav"}], ["row 2", "'a;b'"]),
        ([{"speaker": "?a", "audio": "a.wav"}], ["row 2", "'\\?a'"]),
        ([{"speaker": "a", "audio": "a.wav", "channel": "0"}], ["row 2", "channel '0'"]),
        ([{"speaker": "a", "audio": "a.wav", "channel": "left"}], ["channel 'left'"]),
        ([{"speaker": "a", "audio": "a.wav;b.wav"}], ["row 2", "one file a row"]),
        ([{"speaker": who, "audio": "a.wav"} for who in "ab"], ["row 3: the same", "row 2"]),
        ([{"speaker": who, "recording": "r"} for who in "ab"], ["row 3", "'r'", "row 2"]),
        ([{"speaker": "a", "recording": "x"}], ["row 2", "'x'", "row 2"]),
        ([{"audio": "a.wav"}], ["speaker"]),
        ([{"speaker": "a"}], ["recording"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(rows, said):
    with pytest.raises(SpklinkError) as error:
        with_enrolment(table(), rows)
    for part in said:
        assert part.replace("\\", "") in str(error.value)


def test_empty_lists_are_open_where_they_may_be():
    found = table()
    assert found.open.tolist() == [False, True]
    assert np.array_equal(found.listing.counts, [2, 0])
    without = read_conversations([{"conversation": "x"}, {"conversation": "y"}], unlisted=True)
    assert without.open.all()
    assert without.speakers == []
    rows = [{"conversation": "x", "speaker": s} for s in ("ann", "bob")]
    rows.append({"conversation": "y", "speaker": ""})
    assert read_conversations(rows, unlisted=True).open.tolist() == [False, True]


def test_elsewhere_they_are_an_error_with_a_remedy():
    with pytest.raises(SpklinkError, match=r"row 3: empty participants; add \? for each unknown"):
        read_conversations(CALLS)

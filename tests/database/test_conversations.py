from __future__ import annotations

import pytest

from spklink import SpklinkError, read_conversations
from spklink.errors import problems_in

pytestmark = pytest.mark.usefixtures("either_way")

HEADER = "conversation,audio,participants\n"


def message(path) -> str:
    with pytest.raises(SpklinkError) as caught:
        read_conversations(path)
    text = str(caught.value)
    assert path.name in text
    return text


def test_wide_form(write):
    path = write("c.csv", HEADER + "x,a.wav;b.wav,anna;ben\ny,,ben; carl \n")
    table = read_conversations(path)
    assert table.ids == ["x", "y"]
    assert table.names(0) == ("anna", "ben")
    assert table.names(1) == ("ben", "carl")
    assert table.audio == [("a.wav", "b.wav"), ()]
    assert table.prior.tolist() == [0.5, 0.5]


def test_byte_order_mark_crlf_and_further_columns(write):
    text = "﻿conversation,note,participants,audio\r\nx,hm,a;b,x.wav\r\n\r\n"
    table = read_conversations(write("c.csv", text))
    assert table.ids == ["x"]
    assert table.audio == [("x.wav",)]


def test_prior_and_group(write):
    text = "conversation,audio,participants,prior,group\nx,,a;b,0.9,g\ny,,a;c,,h\n"
    table = read_conversations(write("c.csv", text))
    assert table.prior.tolist() == [0.9, 0.5]
    assert table.groups == ["g", "h"]
    assert table.group.tolist() == [0, 1]


def test_long_form_equals_wide_form(write):
    long = write(
        "long.csv",
        "conversation,participant,audio,prior\nx,a,x.wav,0.2\ny,b,,\nx,b,x.wav,\ny,c,,\n",
    )
    wide = write(
        "wide.csv",
        "conversation,audio,participants,prior\nx,x.wav,a;b,0.2\ny,,b;c,\n",
    )
    one, two = read_conversations(long), read_conversations(wide)
    assert (one.ids, one.speakers, one.audio) == (two.ids, two.speakers, two.audio)
    assert one.people.tolist() == two.people.tolist()
    assert one.prior.tolist() == two.prior.tolist()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("x,,a;b\nx,,a;c\n", ["row 3", "'x'", "already in row 2"]),
        ("x,,a\n", ["row 2", "only one participant"]),
        ("x,,a;a\n", ["row 2", "'a' twice"]),
        (",,a;b\n", ["row 2", "empty conversation id"]),
        ("x,,\n", ["row 2", "empty participants"]),
        ("x,,a;\n", ["row 2", "empty participant name"]),
        ("x,1.wav;2.wav,a;b;c\n", ["row 2", "3 participants for 2 tracks (2 audio files)"]),
        ("x,1.wav;2.wav;3.wav,a;b\n", ["row 2", "only 2 participants for 3 tracks (3 audio"]),
        ("x,1.wav;,a;b\n", ["row 2", "empty name among the audio files"]),
        ("x,a;b\n", ["row 2", "2 fields where the header has 3"]),
        ("", ["no conversations below the header"]),
    ],
)
def test_malformed_rows(write, rows, expected):
    text = message(write("c.csv", HEADER + rows))
    for part in expected:
        assert part in text


def test_all_problems_in_one_error(write):
    text = message(write("c.csv", HEADER + "x,,a\nx,,a;b\ny,,b;b\nz,,c;d\n"))
    assert "3 problems" in text
    assert all(f"row {n}" in text for n in (2, 3, 4))
    assert "row 5" not in text


def test_many_problems_are_counted(write):
    text = message(write("c.csv", HEADER + "".join(f"c{k},,a\n" for k in range(50))))
    assert "50 problems" in text
    assert "and 30 more" in text


def test_missing_header(write):
    text = message(write("c.csv", "x,,a;b\n"))
    assert "no column 'conversation', 'participants'" in text
    assert "header row missing" in text


def test_semicolons_between_columns(write):
    text = message(write("c.csv", "conversation;audio;participants\n"))
    assert "no conversations below the header" in text


def test_column_twice(write):
    assert "'audio' appears more than once" in message(
        write("c.csv", "conversation,audio,audio,participants\nx,,,a;b\n")
    )


def test_empty_file(write):
    assert "empty" in message(write("c.csv", ""))


def test_letters_of_no_encoding(write):
    text = message(write("c.csv", HEADER.encode() + b"x,,ren\x8d\xe9\x81;b\n"))
    assert "line 2" in text
    assert "not UTF-8" in text
    assert "0x8d" in text
    assert "--encoding" in text


def test_unclosed_quote(write):
    assert "not valid CSV" in message(write("c.csv", HEADER + 'x,,"a;b\n'))


def test_missing_file(tmp_path):
    assert "cannot be read" in message(tmp_path / "none.csv")


@pytest.mark.parametrize("value", ["1.5", "-0.1", "often", "nan"])
def test_prior_out_of_range(write, value):
    text = message(write("c.csv", f"conversation,audio,participants,prior\nx,,a;b,{value}\n"))
    assert "row 2" in text
    assert "between 0 and 1" in text


def test_long_form_that_disagrees(write):
    text = message(write("c.csv", "conversation,participant,group\nx,a,g\nx,b,h\n"))
    assert "row 3" in text
    assert "'h'" in text


def test_long_form_with_three(write):
    table = read_conversations(write("c.csv", "conversation,participant\nx,a\nx,b\nx,c\n"))
    assert table.names(0) == ("a", "b", "c")
    assert table.sides.counts.tolist() == [3]
    assert not table.plain


def test_real_table(real_calls):
    table = read_conversations(real_calls / "conversations.csv")
    assert len(table) == 420
    assert len(table.speakers) == 30


def test_a_name_with_the_separator_of_names_is_refused(write):
    """In the long form it could be typed; in tables of results it would be taken for two names."""
    text = message(write("c.csv", "conversation,participant\nx,a;b\nx,c\n"))
    assert "row 2: participant 'a;b' contains ';'" in text


def test_a_remedy_is_not_counted_as_a_problem():
    assert str(problems_in("f", ["one", "two"], "do this")) == "f: 2 problems: one; two; do this"
    assert str(problems_in("f", ["one"], "do this")) == "f: one; do this"

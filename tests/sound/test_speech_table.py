"""The table of sides: written and read again, and all that can be wrong with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spklink import SpklinkError
from spklink.database.conversations import make_conversations
from spklink.database.sides import numbered
from spklink.sound.speech_table import COLUMNS, SpeechTable, read_speech_table, speech_rows
from spklink.tables import write_csv

HEADER = "conversation,channel,speech_seconds,mark\n"


@pytest.fixture
def calls():
    """One call of two tracks, one of three."""
    made = make_conversations([("x", "a", "b"), ("y", "a", "c")])
    return replace(made, sides=numbered([2, 3]))


def test_what_is_written_is_read(calls, tmp_path):
    marks = ["", "bad audio", "", "", "too little speech"]
    table = SpeechTable(np.array([3.5, 0.0, 7.25, 1.0, 2.0]), marks, list("abcde"))
    write_csv(tmp_path / "sides.csv", COLUMNS, speech_rows(calls, table))
    text = (tmp_path / "sides.csv").read_text().splitlines()
    assert text[0] == "conversation,channel,speech_seconds,mark,sha256,recording_seconds"
    assert text[2:4] == ["x,2,0.00,bad audio,b,", "y,1,7.25,,c,"]
    again = read_speech_table(tmp_path / "sides.csv", calls)
    assert again.seconds.tolist() == table.seconds.tolist()
    assert (again.marks, again.sha256) == (marks, list("abcde"))
    assert again.usable.tolist() == [True, False, True, True, False]


def test_columns_that_may_be_missing_and_rows_about_others(calls, write):
    rows = "x,2,1\nq,7,-3\nx,1,2\ny,1,3\ny,2,4\ny,3,5\n"
    found = read_speech_table(write("s.csv", "conversation,channel,speech_seconds\n" + rows), calls)
    assert found.seconds.tolist() == [2.0, 1.0, 3.0, 4.0, 5.0]
    assert found.usable.all()
    assert found.sha256 == [""] * 5


def test_all_problems_in_one_error(calls, write):
    rows = "x,3,1,\nx,1,-1,\ny,4,1,\ny,1,1,\ny,1,1,\ny,2,1\n"
    with pytest.raises(SpklinkError) as caught:
        read_speech_table(write("s.csv", HEADER + rows), calls)
    for text in (
        "6 problems",
        "row 2: channel '3' is not 1 or 2",
        "row 3: speech_seconds '-1' is not a number of 0 or more",
        "row 4: channel '4' is not 1 to 3",
        "row 6: 'y' channel 1 is already in row 5",
        "row 7: 3 fields where the header has 4",
        "3 sides have no row: x channel 2, y channel 2, y channel 3",
    ):
        assert text in str(caught.value)


def test_how_long_recordings_are_is_kept_and_may_be_missing(calls, tmp_path):
    lengths = np.array([9.5, 9.5, np.nan, 20.0, 20.0])
    table = SpeechTable(np.ones(5), [""] * 5, [""] * 5, lengths)
    write_csv(tmp_path / "sides.csv", COLUMNS, speech_rows(calls, table))
    assert np.array_equal(
        read_speech_table(tmp_path / "sides.csv", calls).lengths, lengths, equal_nan=True
    )
    text = (tmp_path / "sides.csv").read_text()
    old = "\n".join(line.rpartition(",")[0] for line in text.splitlines())
    (tmp_path / "old.csv").write_text(old)  # a folder written before
    assert np.isnan(read_speech_table(tmp_path / "old.csv", calls).lengths).all()
    (tmp_path / "bad.csv").write_text(text.replace("9.50", "long", 1))
    with pytest.raises(SpklinkError, match="recording_seconds 'long' is not a number"):
        read_speech_table(tmp_path / "bad.csv", calls)

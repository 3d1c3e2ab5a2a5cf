"""Where each side speaks: kept with what was heard, written, read back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import rows
from spklink.cache import Store
from spklink.database.conversations import make_conversations, read_conversations
from spklink.errors import SpklinkError
from spklink.runs.folder import load
from spklink.runs.link import link
from spklink.sound.listening import SPEECH
from spklink.sound.speech_marks import (
    COLUMNS,
    SpeechMarks,
    joined,
    mark_rows,
    read_speech_marks,
    runs_of,
    segments_of,
)
from spklink.tables import write_csv


def plain_segments(kept: list[bool]) -> list[list[int]]:
    """Frame by frame: a frame begins a segment unless the one before ends less than .3 s ago."""
    found: list[list[int]] = []
    for t, speech in enumerate(kept):
        if speech and found and 10 * t - found[-1][1] < 300:
            found[-1][1] = 10 * t + 25
        elif speech:
            found.append([10 * t, 10 * t + 25])
    return found


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 50)), max_size=12))
def test_segments_are_speech_over_short_pauses(pieces):
    kept = [speech for speech, length in pieces for _ in range(length)]
    runs = runs_of(np.array(kept, np.bool_))
    assert segments_of(runs).tolist() == plain_segments(kept)
    lengths = runs.reshape(-1, 2)
    assert lengths[:, 1].sum() == sum(kept)
    assert (lengths[1:] > 0).all()


def test_segments_that_touch_or_overlap_are_one():
    times = np.array([[0, 900], [100, 200], [900, 1000], [1001, 1100]])
    assert joined(times, 0).tolist() == [[0, 1000], [1001, 1100]]
    assert joined(times, 2).tolist() == [[0, 1100]]


SMALL = {"components": 8, "workers": 1}


@pytest.fixture(scope="module")
def linked(calls, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    link(calls / "conversations.csv", out, **SMALL)
    return out


def test_results_have_the_speech_of_every_side(linked):
    table = read_conversations(linked / "conversations.csv")
    marks = read_speech_marks(linked / "segments.csv", table)
    seconds = [float(row["speech_seconds"]) for row in rows(linked / "sides.csv")]
    for side, spoken in enumerate(seconds):
        times = marks.of_side(side)
        assert (times[:, 1] > times[:, 0]).all()
        assert (times[1:, 0] - times[:-1, 1] >= 300).all()
        lasts = (times[:, 1] - times[:, 0]).sum() / 1000
        assert spoken <= lasts <= 10.0  # pauses within add to it


def test_a_cache_of_an_earlier_version_is_heard_once_more_for_them(linked, calls, tmp_path):
    expected = (linked / "segments.csv").read_bytes()
    store = Store(linked / "cache" / "features")
    for name, about in list(store.listed()):
        kept = store.load(name)
        about.pop(SPEECH)
        about.pop("lengths")
        store.write(name, about, {key: array.copy() for key, array in kept.arrays.items()})
    times = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    link(calls / "conversations.csv", tmp_path / "two", cache=linked / "cache", **SMALL)
    assert (tmp_path / "two" / "segments.csv").read_bytes() == expected
    assert (tmp_path / "two" / "sides.csv").read_bytes() == (linked / "sides.csv").read_bytes()
    assert all(path.stat().st_mtime_ns > time for path, time in times.items())
    times = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    link(calls / "conversations.csv", tmp_path / "three", cache=linked / "cache", **SMALL)
    assert (tmp_path / "three" / "segments.csv").read_bytes() == expected
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == times


def test_results_that_are_read_and_saved_keep_them(linked, tmp_path):
    load(linked).save(tmp_path / "again")
    again = (tmp_path / "again" / "segments.csv").read_bytes()
    assert again == (linked / "segments.csv").read_bytes()


def test_what_is_wrong_with_a_table_is_said_by_row(tmp_path, write):
    table = make_conversations([("c1", "a", "b")])
    text = "conversation,channel,start,end\nc1,1,0,1\nc1,3,0,1\nc1,1,x,1\nc1,1,2,1\nother,9,x,y\n"
    with pytest.raises(SpklinkError) as error:
        read_speech_marks(write("s.csv", text), table)
    assert "row 3: conversation 'c1' has no channel '3'" in str(error.value)
    assert "row 4: 'x' is not a number of seconds" in str(error.value)
    assert "row 5: a segment from 2 s ends at 1 s" in str(error.value)
    assert "row 6" not in str(error.value)


def test_rows_of_any_order_that_overlap(write):
    table = make_conversations([("c1", "a", "b")])
    text = "conversation,channel,start,end\nc1,2,5,6\nc1,1,3,4\nc1,1,0,2\nc1,1,1,1.5\nc1,2,6,7\n"
    found = read_speech_marks(write("s.csv", text), table)
    assert found.of_side(0).tolist() == [[0, 2000], [3000, 4000]]
    assert found.of_side(1).tolist() == [[5000, 7000]]


def test_written_and_read(tmp_path):
    table = make_conversations([("c1", "a", "b"), ("c2", "a", "c")])
    marks = SpeechMarks.of(
        np.array(times, np.int32).reshape(-1, 2)
        for times in ([[5, 1000], [2000, 2025]], [], [], [[0, 35]])
    )
    write_csv(tmp_path / "segments.csv", COLUMNS, mark_rows(table, marks))
    found = read_speech_marks(tmp_path / "segments.csv", table)
    assert found.start.tolist() == marks.start.tolist()
    assert found.times.tolist() == marks.times.tolist()

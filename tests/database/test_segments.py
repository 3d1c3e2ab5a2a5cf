"""Diarized tracks: from a table, from RTTM, from a folder of RTTM; every fault."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spklink import SpklinkError, read_conversations, read_key
from spklink.database.segments import is_rttm, read_segments, read_tracks
from spklink.tables import Content

HEADER = "conversation,track,start,end\n"
IDS, AUDIO = ["x", "y"], [("calls/one.wav",), ("calls/two.wav",)]


def message(path) -> str:
    with pytest.raises(SpklinkError) as caught:
        read_segments(path, IDS, AUDIO)
    assert path.name in str(caught.value)
    return str(caught.value)


def test_a_table(write):
    rows = "x,b,1,2.5\ny,1,0,1\nx,a,0.5,1\nx,b,0.2,0.4\n"
    x, y = read_segments(write("t.csv", HEADER + rows), IDS, AUDIO)
    assert x.labels == ("b", "a")  # b speaks first
    assert x.turns == ((0, 0.2, 0.4), (1, 0.5, 1.0), (0, 1.0, 2.5))
    assert (y.labels, y.turns) == (("1",), ((0, 0.0, 1.0),))


def test_numbers_stay_numbers(write):
    rows = "x,2,0,1\nx,3,1,2\nx,1,2,3\ny,2,0,1\ny,3,1,2\n"
    x, y = read_segments(write("t.csv", HEADER + rows), IDS, AUDIO)
    assert x.labels == ("1", "2", "3")
    assert y.labels == ("2", "3")


RTTM = """\
;; a comment
SPKR-INFO x 1 <NA> <NA> <NA> unknown spk1 <NA>
SPEAKER x 1 0.50 1.25 <NA> <NA> spk1 <NA> <NA>
SPEAKER two 1 3 .5 <NA> <NA> spk2 0.9

SPEAKER x 1 2 1 <NA> <NA> spk0 <NA>
"""


def test_rttm_by_id_and_by_the_name_of_the_recording(write):
    x, y = read_segments(write("t.txt", RTTM), IDS, AUDIO)
    assert (x.labels, x.turns) == (("spk1", "spk0"), ((0, 0.5, 1.75), (1, 2.0, 3.0)))
    assert (y.labels, y.turns) == (("spk2",), ((0, 3.0, 3.5),))


def test_a_folder_of_rttm(tmp_path, write):
    whole = read_segments(write("t.rttm", RTTM), IDS, AUDIO)
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    for k, line in enumerate(RTTM.splitlines()):
        (tmp_path / "parts" / "deep" / f"{k}.rttm").write_text(line)
    assert read_segments(tmp_path / "parts", IDS, AUDIO) == whole
    (tmp_path / "none").mkdir()
    with pytest.raises(SpklinkError, match=r"no \.rttm file below"):
        read_tracks(tmp_path / "none")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("z,a,0,1", "row 3: no conversation, and no recording, is called 'z'"),
        ("x,,0,1", "row 3: an empty name of a track"),
        ("x,a,-1,1", "row 3: start '-1' is not a number of seconds"),
        ("x,a,soon,1", "row 3: start 'soon'"),
        ("x,a,nan,1", "row 3: start 'nan'"),
        ("x,a,1,1", "row 3: end '1': a segment ends after it begins (at 1)"),
        ("x,a,1,inf", "row 3: end 'inf'"),
        ("x,a,1", "row 3: 3 fields"),
        ("x,a,1,2", "no segments of conversation 'y'; add them, or leave the conversation out"),
    ],
)
def test_faults_of_a_table(write, row, expected):
    assert expected in message(write("t.csv", HEADER + "x,b,0,1\n" + row + "\n"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("SPEAKER z 1 0 1 <NA> <NA> a", "row 2: no conversation, and no recording"),
        ("SPEAKER x 1 0 0 <NA> <NA> a", "row 2: duration '0': a segment ends after"),
        ("SPEAKER x 1 0 1", "row 2: not a line of RTTM"),
        ("speaks x 1 0 1 <NA> <NA> a", "row 2: not a line of RTTM"),
        ("SPEAKER x 2 0 1 <NA> <NA> a", "channel '2' where other segments of 'x' are of"),
    ],
)
def test_faults_of_rttm(write, line, expected):
    assert expected in message(write("t.rttm", f"SPEAKER x 1 0 1 <NA> <NA> b\n{line}\n"))


def test_other_faults(write):
    assert "empty" in message(write("t.csv", ""))
    assert "no column 'conversation', 'track'" in message(write("t.csv", "a,b\n"))
    assert "not UTF-8" in message(write("t.rttm", b"SPEAKER x 1 0 1 <NA> <NA> \xe9\n"))
    with pytest.raises(SpklinkError, match="'one' is the recording of 'x' and 'y'; write the id"):
        read_segments(
            [{"conversation": "one", "track": 1, "start": 0, "end": 1}], IDS, AUDIO[:1] * 2
        )


@pytest.mark.parametrize("text", [HEADER, "SPEAKER,x\n", "", "\n", "speaker x\n"])
def test_what_is_no_rttm(text, tmp_path):
    assert not is_rttm(Content(tmp_path, text.encode()))


def brute(text: str) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """RTTM read by its columns: type, file, channel, begin, duration, two others, name."""
    found: dict = {}
    for line in text.splitlines():
        if line.startswith("SPEAKER"):
            columns = line.split()
            begin = float(columns[3])
            segment = begin, begin + float(columns[4])
            found.setdefault(columns[1], {}).setdefault(columns[7], []).append(segment)
    return found


WORD = st.text("abcXYZ01_-.", min_size=1, max_size=4)
SEGMENT = st.tuples(st.sampled_from(IDS), st.integers(0, 9999), st.integers(1, 9999), WORD)


@given(st.lists(SEGMENT, min_size=1, max_size=20))
def test_rttm_as_its_columns_say(segments):
    lines = [
        f"SPEAKER {i} 1 {a / 100:.2f} {d / 100:.2f} <NA> <NA> {w} <NA> <NA>"
        for i, a, d, w in segments
    ]
    lines += [f"SPEAKER {i} 1 200.00 1.00 <NA> <NA> last <NA> <NA>" for i in IDS]
    text = "\n".join(lines)
    said = brute(text)
    for name, one in zip(
        IDS, read_segments(Content("t.rttm", text.encode()), IDS, AUDIO), strict=True
    ):
        back: dict = {}
        for track, start, end in one.turns:
            back.setdefault(one.labels[track], []).append((start, end))
        assert back == {label: sorted(parts) for label, parts in said[name].items()}
        starts = [min(back[label])[0] for label in one.labels]
        assert starts == sorted(starts) or set(one.labels) == {
            str(k + 1) for k in range(len(starts))
        }


# --- in a database ----------------------------------------------------------------------------


def meeting(participants="a;b;?c", **cells):
    return [{"conversation": "x", "audio": "one.wav", "participants": participants, **cells}]


def turns(*labels):
    return [
        {"conversation": "x", "track": label, "start": k, "end": k + 1}
        for k, label in enumerate(labels)
    ]


def test_tracks_are_those_of_the_segments():
    table = read_conversations(meeting(), turns("t3", "t1", "t3", "t2"))
    assert table.sides.counts.tolist() == [3]
    assert table.tracks(0) == ("t3", "t1", "t2")
    assert read_conversations(meeting("a;b;c")).tracks(0) == ("1", "2", "3")
    key = read_key(
        [{"conversation": "x", "track": t, "speaker": s} for t, s in (("t1", "a"), ("3", "b"))],
        table,
    )
    assert key.said.track.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"tracks": "4"}, "row 2: 4 tracks, but the segments are those of 3"),
        ({"audio": "1.wav;2.wav;3.wav"}, "row 2: 3 audio files; tracks that are diarized are"),
        ({"participants": "a;b"}, "row 2: only 2 participants for 3 tracks (diarized); add ?"),
        ({"participants": "a;b;c;d"}, "row 2: 4 participants for 3 tracks (diarized); write"),
    ],
)
def test_faults_of_diarized_conversations(cells, expected):
    with pytest.raises(SpklinkError) as caught:
        read_conversations(meeting(**cells), turns("t1", "t2", "t3"))
    assert expected in str(caught.value)


def test_faults_of_the_table_are_said_first():
    with pytest.raises(SpklinkError, match="already in row 2"):
        read_conversations(meeting() * 2, turns("t1"))


def test_the_order_of_rows_does_not_count():
    rows = turns("b", "a", "c")
    found = [read_conversations(meeting(), list(some)) for some in itertools.permutations(rows)]
    assert all(one.diarized == found[0].diarized for one in found)

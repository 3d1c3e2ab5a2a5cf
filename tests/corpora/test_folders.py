"""Folders of recordings without a table: what the names of files say."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from commands import rows
from spklink import check, read_conversations
from spklink.corpora.folder import guessed_pattern
from spklink.errors import SpklinkError
from spklink.runs.init import init


@pytest.fixture
def sound(tmp_path):
    """Put short recordings of so many channels into a folder."""

    def put(*names, channels=2):
        for name in names:
            path = tmp_path / "calls" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, np.zeros((1600, channels)), 8000)
        return tmp_path / "calls"

    return put


def written(path):
    return [(row["conversation"], row["audio"], row["participants"]) for row in rows(path)]


def test_names_by_pattern(sound, tmp_path):
    folder = sound("anna_ben_2024-03-01.wav", "carl_anna_2024-03-02.wav", "notes.wav")
    made = init(folder, tmp_path / "t.csv", audio="{caller}_{callee}_{date}.wav")
    assert written(tmp_path / "t.csv") == [
        ("anna_ben_2024-03-01", "calls/anna_ben_2024-03-01.wav", "anna;ben"),
        ("carl_anna_2024-03-02", "calls/carl_anna_2024-03-02.wav", "carl;anna"),
    ]
    assert [row["date"] for row in rows(tmp_path / "t.csv")] == ["2024-03-01", "2024-03-02"]
    assert made.corpus.notes == ["1 file left out, not called by the pattern: notes.wav"]
    found = check(tmp_path / "t.csv")
    assert (found["speakers"], found["bad_recordings"]) == (3, False)


def test_channels_and_folders_in_a_pattern(sound, tmp_path):
    pairs = ("d1/7_{}_anna_ben.wav", "d2/7_{}_carl_ben.wav")
    folder = sound(*(name.format(side) for name in pairs for side in "AB"), channels=1)
    init(folder, tmp_path / "t.csv", audio="{day}/{call}_{channel}_{a}_{b}.wav")
    assert written(tmp_path / "t.csv") == [
        ("d1/7_A_anna_ben", "calls/d1/7_A_anna_ben.wav;calls/d1/7_B_anna_ben.wav", "anna;ben"),
        ("d2/7_A_carl_ben", "calls/d2/7_A_carl_ben.wav;calls/d2/7_B_carl_ben.wav", "carl;ben"),
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{x}_{y}.wav", "which of x, y are people"),
        ("{caller}-{callee}.flac", r"no file of .* is called so; one is 'a_b.wav'"),
        ("calls.wav", r"give \{fields\}"),
    ],
)
def test_patterns_that_do_not_do(pattern, message, sound, tmp_path):
    with pytest.raises(SpklinkError, match=message):
        init(sound("a_b.wav"), tmp_path / "t.csv", audio=pattern)


def test_files_of_one_call_are_joined(sound, tmp_path):
    sound("1_A.wav", "1_B.wav", "2-left.wav", "2-right.wav", "3_ch1.wav", "3_ch2.wav", channels=1)
    sound("4_1.wav", "5_out.wav", channels=1)
    folder = sound("6_A.wav", "6_B.wav")
    made = init(folder, tmp_path / "t.csv")
    assert [(name, audio.count(";")) for name, audio, _ in written(tmp_path / "t.csv")] == [
        *(("1", 1), ("2", 1), ("3", 1), ("4_1", 0), ("5_out", 0), ("6_A", 0), ("6_B", 0)),
    ]
    assert made.as_json()["with_participants"] == 0
    assert "2 recordings of one channel: linking needs --tracks" in made.corpus.notes
    with pytest.raises(SpklinkError, match="empty participants"):
        read_conversations(tmp_path / "t.csv")


def test_a_pattern_is_guessed(sound, tmp_path):
    names = [f"{k}_{a}_{b}.wav" for k, (a, b) in enumerate([("x", "y"), ("y", "z"), ("z", "x")])]
    folder = sound(*names)
    made = init(folder, tmp_path / "t.csv")
    assert any("--audio '{part1}_{caller}_{callee}.wav'" in note for note in made.corpus.notes)
    assert guessed_pattern(sorted(folder.rglob("*.wav"))) == "{part1}_{caller}_{callee}.wav"


def test_nothing_is_overwritten(sound, write, run):
    path = write("conversations.csv", "precious")
    code, _, err = run("init", sound("a_b.wav"), "-o", path)
    assert (code, path.read_text()) == (2, "precious")
    assert "is there already; give another -o" in err


def test_the_command_says_what_is_next(sound, run, tmp_path):
    folder = sound("anna_ben.wav", "ben_carl.wav")
    table = tmp_path / "new" / "t.csv"
    code, text, _ = run("init", folder, "--audio", "{a}_{b}.wav", "-o", table)
    assert code == 0
    assert f"wrote {table}\n" in text
    assert f"next: spklink check {table}, then spklink link {table} -o results\n" in text
    assert run("init")[::2] == (2, "spklink: give a folder of recordings, or --corpus NAME:PATH\n")

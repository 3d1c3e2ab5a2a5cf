"""`check` names files that cannot be heard, with row and reason, and never waits or fails."""

from __future__ import annotations

import os

from spklink.runs.check import check


def test_files_that_cannot_be_heard(write, tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    names = ["gone.wav", "pipe.wav", "n" * 300, "pipe.wav;gone.wav"]
    rows = [f"c{k},{name},a;b" for k, name in enumerate(names)]
    table = write("t.csv", "\n".join(["conversation,audio,participants", *rows, ""]))
    said = "\n".join(check(table)["problems"])
    assert "2 audio files are not there: gone.wav (row 2), gone.wav (row 5)" in said
    assert "2 audio files cannot be used: a pipe, not a file: pipe.wav (row 3), pipe" in said
    assert "1 audio files cannot be used: cannot be read (File name too long): nnn" in said

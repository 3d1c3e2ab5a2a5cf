"""`link` on recordings of one channel with diarized tracks: results, read back, told again."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
import soundfile

from made_calls import write_calls
from spklink import SpklinkError, link, load, read_conversations
from spklink.report.provenance import command
from spklink.runs.folder import read_run
from spklink.sound.chunks import find_speech
from spklink.sound.features import DEFAULT


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """The calls of two channels as mixes, and RTTM of where one speaks alone."""
    folder = write_calls(tmp_path_factory.mktemp("mixed"))
    lines = []
    for m, files in enumerate(read_conversations(folder / "conversations.csv").audio):
        path = folder / files[0]
        kept = find_speech((path,), 2, DEFAULT).kept
        for k, mask in enumerate(kept):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], mask & ~kept[1 - k], [0]])))
            for a, b in zip(edges[::2] / 100, edges[1::2] / 100 + 0.015, strict=True):
                lines.append(f"SPEAKER {m} 1 {a:.3f} {b - a:.3f} <NA> <NA> s{k + 1} <NA> <NA>")
        samples, rate = soundfile.read(path)
        soundfile.write(path, samples.mean(axis=1), rate)
    (folder / "tracks.rttm").write_text("\n".join(lines) + "\n")
    return folder


def test_from_rttm_to_results_and_back(mixed, tmp_path):
    out = tmp_path / "out"
    result = link(
        mixed / "conversations.csv",
        out,
        tracks=mixed / "tracks.rttm",
        components=16,
        min_speech=0.5,
        workers=1,
    )
    table = result.conversations
    assert {label for m in range(len(table)) for label in table.tracks(m)} == {"s1", "s2"}
    again = load(out, workers=1)
    assert again.conversations.diarized == table.diarized
    assert np.allclose(again.posterior.exchanged, result.posterior.exchanged)
    first = (out / "tracks.csv").read_text().splitlines()
    assert first[0] == "conversation,track,start,end"
    assert first[1].startswith("c0,s")
    words = shlex.split(command(read_run(out)))
    assert words[words.index("--tracks") + 1].endswith("mixed0/tracks.rttm")


def test_tracks_from_memory_are_in_the_folder(mixed, tmp_path):
    table = read_conversations(mixed / "conversations.csv", mixed / "tracks.rttm")
    rows = [
        {"conversation": name, "track": one.labels[k], "start": a, "end": b}
        for name, one in zip(table.ids, table.diarized, strict=True)
        for k, a, b in one.turns
    ]
    how = {"components": 16, "min_speech": 0.5, "workers": 1}
    link(mixed / "conversations.csv", tmp_path, tracks=rows, **how)
    assert "--tracks tracks.csv" in command(read_run(tmp_path))


def test_faults_of_tracks_are_said_before_listening(mixed):
    with pytest.raises(SpklinkError, match="no segments of conversation 'c1'"):
        link(
            mixed / "conversations.csv",
            tracks=[{"conversation": "c0", "track": 1, "start": 0, "end": 1}],
        )

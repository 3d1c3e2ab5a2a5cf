"""Meetings of artificial voices: what is written, and that lists are wrong where they should be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import soundfile

from spklink import read_conversations, read_key
from spklink.worlds import meeting_voices
from spklink.worlds.meeting_voices import UNKNOWN, WRONG, demo_sessions, take_turns, write_meetings


def test_everybody_speaks_in_turn():
    turns = list(take_turns(4, 60.0, np.random.default_rng(0)))
    tracks = [track for track, _, _ in turns]
    assert set(tracks) == {0, 1, 2, 3}
    assert all(a != b for a, b in pairwise(tracks))
    ends = [begin + length for _, begin, length in turns]
    assert all(end <= after[1] for end, after in zip(ends, turns[1:], strict=False))
    assert ends[-1] <= 60.0


def test_one_list_is_wrong_and_one_has_somebody_unknown():
    for seed in range(5):
        sessions = demo_sessions(np.random.default_rng(seed))
        for k, session in enumerate(sessions):
            listed = {person for person, _ in session.entries}
            assert (listed <= set(session.present)) == (k != WRONG)
            assert session.unknown == (k == UNKNOWN)
            assert not session.open


def test_written_files_are_a_database_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(meeting_voices, "SECONDS", (20.0, 21.0))
    monkeypatch.setattr(meeting_voices, "DEMO", meeting_voices.Plan(10, 6, (3, 4)))
    table_file, mixed_file, tracks, key = write_meetings(tmp_path, seed=1)
    table = read_conversations(table_file)
    mixed = read_conversations(mixed_file, tracks)
    assert np.array_equal(table.sides.start, mixed.sides.start)
    assert np.array_equal(table.people, mixed.people)
    assert len(read_key(key, table).said) == len(read_key(key, mixed).said) == len(table.sides)
    for m, count in enumerate(table.sides.counts.tolist()):
        assert soundfile.info(tmp_path / table.audio[m][0]).channels == count
        assert soundfile.info(tmp_path / mixed.audio[m][0]).channels == 1
    samples, rate = soundfile.read(tmp_path / table.audio[0][0])
    for track, start, end in mixed.diarized[0].turns:
        here = samples[round(start * rate) : round(end * rate)]
        loud = np.sqrt((here**2).mean(axis=0))
        assert loud.argmax() == track

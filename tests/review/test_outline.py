"""What a recording looks like, drawn once and kept."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from spklink.cache import Store
from spklink.review import outline as source
from spklink.review.outline import PAUSE, outline, stretches

RATE = 8000


def talk(seconds: float, spoken: list[tuple[float, float]]) -> np.ndarray:
    rng = np.random.default_rng(1)
    sound = 1e-4 * rng.normal(size=round(seconds * RATE))
    for start, end in spoken:
        own = slice(round(start * RATE), round(end * RATE))
        length = own.stop - own.start
        wave = 0.3 * np.abs(np.sin(np.arange(length) * 2 * np.pi * 3 / RATE))
        sound[own] += wave * rng.normal(size=length)
    return sound


def test_speech_is_where_somebody_speaks(tmp_path):
    first, second = [(1.0, 2.0), (4.0, 5.0)], [(2.2, 3.6)]
    sound = np.stack([talk(6.0, first), talk(6.0, second)], axis=1)
    soundfile.write(tmp_path / "x.wav", sound, RATE)
    found = outline(Store(tmp_path / "kept"), [tmp_path / "x.wav"], 2, None)
    assert found.seconds == 6.0
    assert found.problems == []
    for own, spoken in zip(found.speech, (first, second), strict=True):
        assert np.abs(own - np.array(spoken)).max() < 0.08
    loud = found.levels[0].astype(int)
    assert loud.max() == 255
    assert loud[110:190].mean() > 20 * loud[:80].mean()


def test_it_is_kept_until_the_file_changes(tmp_path, monkeypatch):
    path, store = tmp_path / "x.wav", Store(tmp_path / "kept")
    soundfile.write(path, np.stack([talk(3.0, [(1, 2)])] * 2, axis=1), RATE)
    drawn = []
    draw = source.draw
    monkeypatch.setattr(source, "draw", lambda *given: drawn.append(1) or draw(*given))
    first = outline(store, [path], 2, None)
    again = outline(store, [path], 2, None)
    assert len(drawn) == 1
    assert (first.levels == again.levels).all()
    assert first.problems == again.problems != []  # two channels of the same sound
    assert [own.tolist() for own in first.speech] == [own.tolist() for own in again.speech]
    soundfile.write(path, np.stack([talk(4.0, [(1, 2)])] * 2, axis=1), RATE)
    assert outline(store, [path], 2, None).seconds == 4.0
    assert len(drawn) == 2


def test_a_long_recording_has_no_more_points(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "POINTS", 50)
    soundfile.write(tmp_path / "x.wav", np.stack([talk(9.0, [(1, 2)])] * 2, axis=1), RATE)
    assert outline(Store(tmp_path), [tmp_path / "x.wav"], 2, None).levels.shape[1] <= 50


def test_diarized_tracks_show_their_own_turns(tmp_path):
    soundfile.write(tmp_path / "x.wav", talk(6.0, [(1, 2), (3, 5)]), RATE)
    found = outline(Store(tmp_path), [tmp_path / "x.wav"], 2, ((0, 1.0, 2.0), (1, 3.0, 5.0)))
    assert [own.round(1).tolist() for own in found.speech] == [[[1.0, 2.0]], [[3.0, 5.0]]]


def test_no_folder_to_keep_it_in_is_no_error(tmp_path):
    soundfile.write(tmp_path / "x.wav", np.stack([talk(3.0, [(1, 2)])] * 2, axis=1), RATE)
    (tmp_path / "file").write_text("")
    assert outline(Store(tmp_path / "file" / "below"), [tmp_path / "x.wav"], 2, None).seconds == 3.0


@given(st.lists(st.booleans(), max_size=300))
def test_stretches_hold_all_frames_and_are_apart(frames):
    kept = np.array(frames, np.bool_)
    found = np.rint(stretches(kept) * 100).astype(int)
    inside = np.zeros(len(kept), np.bool_)
    for start, end in found:
        assert kept[start]
        assert kept[end - 1]
        inside[start:end] = True
    assert (inside >= kept).all()
    assert all(b[0] - a[1] > PAUSE for a, b in pairwise(found))

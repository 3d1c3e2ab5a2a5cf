"""Diarized tracks: each is the speech of its own segments of one recording."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given
from hypothesis import strategies as st

from spklink import SpklinkError, read_conversations, read_key
from spklink.sound.chunks import find_speech
from spklink.sound.features import DEFAULT, mfcc, warp
from spklink.sound.front_end import Side
from spklink.sound.listening import hear
from spklink.sound.speech import Framing
from spklink.sound.turns import own_frames
from spklink.sound.waveform import Waveform

RATE = 8000
HOW = {"min_speech": 0.5, "skip_bad": True}


def voices(seconds: float = 6.0, seed: int = 0):
    """(samples,) noise that comes and goes."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.1 * rng.standard_normal(len(time)) * (1.05 + np.sin(8 * np.pi * time))).astype("f4")


def save(path: Path, sound, rate: int = RATE) -> Path:
    sf.write(path, sound, rate, subtype="FLOAT")
    return path


# --- which frames are whose ---------------------------------------------------------------------

TURN = st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 40))


@given(st.lists(TURN, min_size=1, max_size=8), st.integers(0, 90))
def test_own_frames_sample_by_sample(given, count):
    framing = Framing(rate=RATE)
    turns = tuple((k, a / 100, (a + d) / 100) for k, a, d in given)
    speaks = np.zeros((3, RATE * 2), bool)
    for k, start, end in turns:
        speaks[k, round(start * RATE) : round(end * RATE)] = True
    found = own_frames(turns, 3, framing, count)
    for k in range(3):
        for t in range(count):
            frame = speaks[:, t * framing.step : t * framing.step + framing.window]
            alone = frame[k].all() and not np.delete(frame, k, axis=0).any()
            assert found[k][t] == alone


TURNS = ((0, 0.0, 2.5), (1, 2.0, 4.0), (0, 4.0, 5.0), (0, 5.0, 6.0))


def test_features_are_those_of_these_frames(tmp_path):
    sound = voices()
    file = save(tmp_path / "one.wav", sound)
    sides, problems = DEFAULT.hear((file,), 2, turns=TURNS)
    assert problems == []
    every = mfcc(sound)
    assert [1.0 < side.speech_seconds < 4.0 for side in sides] == [True, True]
    assert [side.seconds for side in sides] == [6.0, 6.0]
    kept = find_speech((file,), 2, DEFAULT, turns=TURNS).kept
    assert not (kept[0] & kept[1]).any()
    assert not kept[0][200:400].any()  # from 2.0 s on both speak, then the other
    assert kept[0][400:590].any()
    assert kept[1][250:397].any()
    assert not kept[1][:250].any()
    for side, mask in zip(sides, kept, strict=True):
        assert np.array_equal(side.array, warp(every[mask].copy(), DEFAULT.warping))


def test_one_track_of_the_whole_is_the_recording(tmp_path):
    file = save(tmp_path / "one.wav", voices())
    [alone], _ = DEFAULT.hear((file,), 1)
    [whole], problems = DEFAULT.hear((file,), 1, turns=((0, 0.0, 6.0),))
    assert problems == []
    assert np.array_equal(alone.array, whole.array)


def test_long_recordings_are_decoded_twice(tmp_path, monkeypatch):
    file = save(tmp_path / "one.wav", voices(24.0))
    turns = ((0, 0.0, 9.0), (1, 9.0, 24.0))
    before, _ = DEFAULT.hear((file,), 2, turns=turns)
    monkeypatch.setattr("spklink.sound.chunks.HELD", 1)
    after, _ = DEFAULT.hear((file,), 2, turns=turns)
    assert all(np.array_equal(a.array, b.array) for a, b in zip(before, after, strict=True))


def test_channels_are_mixed(tmp_path):
    left, right = voices(seed=1), voices(seed=2)
    both = save(tmp_path / "both.wav", np.stack([left, right], axis=1))
    mono = save(tmp_path / "mono.wav", ((left + right) / 2).astype("f4"))
    found = [DEFAULT.hear((file,), 2, turns=TURNS) for file in (both, mono)]
    for one, two in zip(found[0][0], found[1][0], strict=True):
        assert np.allclose(one.array, two.array, atol=1e-3)
    assert found[0][1] == found[1][1] == []


def test_samples_never_reach_into_the_other_track(tmp_path):
    """Speech is widened, but not beyond the segments."""
    rng = np.random.default_rng(0)
    sound = (0.2 * rng.random(6 * RATE) + 0.05).astype("f4")
    for k, start, end in TURNS:
        if k == 1:
            sound[round(start * RATE) : round(end * RATE)] *= -1
    sound *= np.repeat(10 ** np.sin(np.arange(600)), 80).astype("f4") / 4
    sides, problems = Waveform(rate=RATE).hear((save(tmp_path / "one.wav", sound),), 2, turns=TURNS)
    assert problems == []
    assert [len(side.array) > RATE for side in sides] == [True, True]
    assert (sides[0].array > 0).all()
    assert (sides[1].array < 0).all()


# --- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "fatal", "text"),
    [
        (((0, 0.0, 6.9), (1, 3.0, 4.0)), None, ""),
        (((0, 0.0, 7.5), (1, 3.0, 4.0)), False, "late: segments up to 7.5 s, sound up to 6.0 s"),
        (((0, 0.0, 3.0), (1, 6.5, 7.0)), True, "segments: 1 of 2 segments begin after its end at"),
        (((0, 0.0, 3.0), (1, 6.0, 7.0)), True, "segments: 1 of 2 segments begin after its end at"),
    ],
)
def test_segments_outside_the_recording(tmp_path, turns, fatal, text):
    sides, problems = DEFAULT.hear((save(tmp_path / "one.wav", voices()),), 2, turns=turns)
    assert [p.fatal for p in problems] == ([] if fatal is None else [fatal])
    assert all(text in str(p) for p in problems)
    assert all(p.channel is None for p in problems)
    assert bool(len(sides[0].array)) != bool(fatal)


def test_a_recording_that_is_cut_short_keeps_what_it_has(tmp_path):
    file = save(tmp_path / "one.wav", voices())
    file.write_bytes(file.read_bytes()[: 4 * 4 * RATE])
    sides, problems = DEFAULT.hear((file,), 2, turns=((0, 0.0, 3.0), (1, 4.5, 6.0)))
    assert [p.kind for p in problems] == ["truncated", "late"]
    assert [len(side.array) > 0 for side in sides] == [True, False]


def test_what_is_wrong_with_the_file_is_wrong_with_all_tracks(tmp_path):
    for sound, kind in ((np.zeros(RATE), "silent"), (np.zeros(8), "empty")):
        sides, problems = DEFAULT.hear((save(tmp_path / "one.wav", sound),), 3, turns=TURNS)
        assert [(p.kind, p.channel) for p in problems][:1] == [(kind, None)]
        assert all(len(side.array) == 0 for side in sides)
    _, problems = DEFAULT.hear((tmp_path / "none.wav",), 3, turns=TURNS)
    assert [(p.kind, p.channel) for p in problems] == [("unreadable", None)]


# --- a table of them ----------------------------------------------------------------------------


def session(folder: Path, *turns, participants="a;b"):
    save(folder / "one.wav", voices())
    rows = [{"conversation": "x", "audio": str(folder / "one.wav"), "participants": participants}]
    said = [{"conversation": "x", "track": f"t{k}", "start": a, "end": b} for k, a, b in turns]
    return read_conversations(rows, said)


def test_the_cache_knows_the_segments(tmp_path):
    first = session(tmp_path, *TURNS)
    second = session(tmp_path, *TURNS[:-1], (0, 5.0, 5.9))
    heard = [hear(t, DEFAULT, tmp_path / "cache", **HOW) for t in (first, second, first)]
    keys = [one.heard[0].key for one in heard]
    assert keys[0] == keys[2] != keys[1]
    assert len(heard[1].array(0)) < len(heard[0].array(0)) == len(heard[2].array(0))
    assert heard[0].marks == ["", ""]


def test_a_bad_track_is_called_by_its_name(tmp_path):
    table = session(tmp_path, (0, 0.0, 3.0), (1, 7.0, 8.0))
    with pytest.raises(SpklinkError, match="row 2: x: segments: 1 of 2 segments begin after"):
        hear(table, DEFAULT, tmp_path / "cache", min_speech=0.5, skip_bad=False)
    assert (table.track_name(0, 1), table.tracks(0)) == ("track t1", ("t0", "t1"))


class Deaf:
    key = None

    def hear(self, files, tracks):
        return [Side(np.zeros((0, 1), "f4"), 0.0, 0.0)] * tracks, []


def test_a_front_end_may_know_nothing_of_it(tmp_path):
    with pytest.raises(SpklinkError, match=r"front end Deaf .* knows nothing of diarized tracks"):
        hear(session(tmp_path, *TURNS), Deaf(), tmp_path / "cache", **HOW)


# --- real recordings ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def four(real_calls, tmp_path_factory):
    """Two real calls at once: as four channels, as four files, and as a mix."""
    folder = tmp_path_factory.mktemp("four")
    table = read_conversations(real_calls / "conversations.csv")
    names, sounds, m = [], [], 0
    while len(sounds) < 2:
        if not set(table.names(m)) & set(names):
            names += table.names(m)
            sounds.append(sf.read(real_calls / table.audio[m][0], dtype="float32")[0])
        m += 1
    size = min(map(len, sounds))
    every = np.hstack([sound[:size] for sound in sounds])
    rate = sf.info(real_calls / table.audio[0][0]).samplerate
    save(folder / "four.wav", every, rate)
    for k in range(4):
        save(folder / f"{k}.wav", every[:, k], rate)
    save(folder / "mix.wav", every.sum(axis=1) / 4, rate)
    return folder, names


def test_four_tracks_of_real_calls(four, tmp_path):
    folder, names = four
    audio = [folder / "four.wav", ";".join(str(folder / f"{k}.wav") for k in range(4))]
    sounds = []
    for files in audio:
        rows = [{"conversation": "x", "audio": str(files), "participants": names}]
        table = read_conversations(rows)
        assert table.sides.counts.tolist() == [4]
        sounds.append(hear(table, DEFAULT, tmp_path / "cache", min_speech=2.0, skip_bad=False))
    assert sounds[0].marks == [""] * 4
    for side in range(4):
        assert np.array_equal(sounds[0].array(side), sounds[1].array(side))


def test_the_mix_of_real_calls_with_its_rttm(four, tmp_path):
    """Where one of the four speaks alone, the mix has their voice and little else."""
    folder, names = four
    kept = find_speech((folder / "four.wav",), 4, DEFAULT).kept
    alone = np.stack(kept) & (np.sum(kept, axis=0) == 1)
    lines = []
    for k in range(4):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], alone[k], [0]])))
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            lines.append(
                f"SPEAKER mix 1 {a / 100:.2f} {(b - a + 2) / 100:.2f} <NA> <NA> s{k} <NA> <NA>"
            )
    (tmp_path / "mix.rttm").write_text("\n".join(lines))
    rows = [{"conversation": "x", "audio": str(folder / "mix.wav"), "participants": names}]
    table = read_conversations(rows, tmp_path / "mix.rttm")
    sound = hear(table, DEFAULT, tmp_path / "cache", min_speech=0.5, skip_bad=False)
    assert sound.marks == [""] * 4
    for side, label in enumerate(table.tracks(0)):
        k = int(label[1:])
        assert 0.3 * alone[k].sum() < len(sound.array(side)) <= alone[k].sum() + 2 * len(lines)


def test_real_meetings(tmp_path):
    folder = Path(os.environ.get("SPKLINK_DATA", ""), "ami-excerpts")
    if "SPKLINK_DATA" not in os.environ or not folder.exists():
        pytest.skip("real meetings: SPKLINK_DATA does not name a folder with ami-excerpts/")
    table = read_conversations(folder / "conversations.csv", folder / "rttm")
    key = read_key(folder / "key.csv", table)
    assert len(key.said) == len(table.sides) == sum(len(one.labels) for one in table.diarized)
    sound = hear(table, DEFAULT, tmp_path / "cache", min_speech=0.5, skip_bad=False)
    seconds = sound.seconds()
    for m, one in enumerate(table.diarized):
        for k, side in enumerate(range(*table.sides.of(m).indices(len(seconds)))):
            said = sum(end - start for track, start, end in one.turns if track == k)
            assert seconds[side] <= said + 0.01
    assert sound.usable.sum() > 0.6 * len(seconds)  # some say no more than a word
    again = hear(replace(table), DEFAULT, tmp_path / "cache", min_speech=0.5, skip_bad=False)
    assert [one.key for one in again.heard] == [one.key for one in sound.heard]

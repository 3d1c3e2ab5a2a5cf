"""Listening through the cache: arrays of any front end, any number of tracks, background speech."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from spklink import SpklinkError
from spklink.cache import Store
from spklink.database.conversations import make_conversations, read_conversations
from spklink.database.sides import numbered
from spklink.hands import Here
from spklink.sound.background_speech import hear_background
from spklink.sound.chunks import changed
from spklink.sound.features import DEFAULT
from spklink.sound.front_end import Side
from spklink.sound.listening import hear, load_array
from spklink.sound.waveform import Waveform

RATE = 8000
FRONT_ENDS = [DEFAULT, Waveform(rate=8000)]


def noise(tracks: int, seed: int, seconds: float = 3.0):
    """With the ups and downs of syllables."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4 * time[:, None] + rng.uniform(0, 6, tracks))
    return 0.1 * syllables * rng.standard_normal((len(time), tracks))


@pytest.fixture
def calls(tmp_path):
    """Calls of 1, 2, 3 and 4 tracks, the third in three files."""
    folder = tmp_path / "calls"
    folder.mkdir()
    names = [("0.wav",), ("1.wav",), ("2a.wav", "2b.wav", "2c.wav"), ("3.wav",)]
    for k, files in enumerate(names):
        sound = noise(k + 1, k)
        parts = list(sound.T) if len(files) > 1 else [sound]
        for name, part in zip(files, parts, strict=True):
            sf.write(folder / name, part, RATE)
    made = make_conversations([(f"c{k}", "a", "b") for k in range(4)], path=folder / "table.csv")
    return replace(made, sides=numbered([1, 2, 3, 4]), audio=names)


def heard_by(front_end, calls, tmp_path, **how):
    how = {"min_speech": 1.0, "skip_bad": False} | how
    return hear(calls, front_end, tmp_path / "cache", **how)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_sides_of_calls_of_any_number_of_tracks(front_end, calls, tmp_path):
    sound = heard_by(front_end, calls, tmp_path)
    assert sound.marks == [""] * 10
    assert [len(one.frames) for one in sound.heard] == [1, 2, 3, 4]
    side = 0
    for m, files in enumerate(calls.audio):
        paths = tuple(calls.path.parent / name for name in files)
        for k, expected in enumerate(front_end.hear(paths, m + 1)[0]):
            assert np.array_equal(sound.array(side), expected.array)
            assert sound.seconds()[side] == pytest.approx(expected.speech_seconds)
            carries = paths[k if len(paths) > 1 else 0]
            assert sound.table().sha256[side] == sha256(carries.read_bytes()).hexdigest()
            side += 1


@dataclass(frozen=True)
class Counting:
    """A front end that makes three rows a side and remembers whom it heard."""

    log: Path
    version: int = 1

    @property
    def key(self):
        return {"version": self.version}

    def hear(self, files, tracks):
        with self.log.open("a") as file:
            file.write(f"{files[0].name} {tracks}\n")
        row = np.arange(3, dtype=np.float32)
        own = int(sha256(files[0].name.encode()).hexdigest()[:4], 16)
        return [Side(np.stack([row, row + k, row + own]), 5.0, 9.0) for k in range(tracks)], []

    def heard(self):
        return self.log.read_text().split("\n")[:-1]


def test_every_recording_is_listened_to_once(calls, tmp_path):
    front_end = Counting(tmp_path / "log")
    first = heard_by(front_end, calls, tmp_path)
    assert front_end.heard() == ["0.wav 1", "1.wav 2", "2a.wav 3", "3.wav 4"]
    assert first.array(5)[:2].tolist() == [
        [0, 1, 2],
        [2, 3, 4],
    ]  # the third track of the third call
    again = heard_by(front_end, calls, tmp_path)
    assert again.heard == first.heard
    assert len(front_end.heard()) == 4
    heard_by(replace(front_end, version=2), calls, tmp_path)
    assert len(front_end.heard()) == 8
    sf.write(calls.path.parent / "2c.wav", noise(1, 9), RATE)
    heard_by(front_end, calls, tmp_path)
    assert front_end.heard()[8:] == ["2a.wav 3"]
    fewer = replace(calls, sides=numbered([1, 2, 3, 2]))  # the same file, other tracks
    heard_by(front_end, fewer, tmp_path)
    assert front_end.heard()[9:] == ["3.wav 2"]


def test_a_lost_file_costs_one_recording(calls, tmp_path):
    front_end = Counting(tmp_path / "log")
    before = heard_by(front_end, calls, tmp_path)
    before.store.path(before.heard[2].key).unlink()
    assert heard_by(front_end, calls, tmp_path).heard == before.heard
    assert front_end.heard()[4:] == ["2a.wav 3"]


def test_the_ending_of_a_name_counts(calls, tmp_path):
    """libsndfile tells some formats by it alone."""
    front_end = Counting(tmp_path / "log")
    heard_by(front_end, calls, tmp_path)
    (calls.path.parent / "0.wav").rename(calls.path.parent / "0.gsm")
    heard_by(front_end, replace(calls, audio=[("0.gsm",), *calls.audio[1:]]), tmp_path)
    assert front_end.heard()[4:] == ["0.gsm 1"]


@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_arrays_that_are_damaged_later_are_made_once_more(how, calls, tmp_path):
    """Damage in the arrays is seen when they are wanted, long after listening."""
    front_end = Counting(tmp_path / "log")
    heard_by(front_end, calls, tmp_path)
    sound = heard_by(front_end, calls, tmp_path)
    path = sound.store.path(sound.heard[2].key)
    data = path.read_bytes()
    path.write_bytes(data[:-65] + bytes([data[-65] ^ 1]) + data[-64:])
    if how == "gone":
        path.unlink()
    assert sound.array(5)[:2].tolist() == [[0, 1, 2], [2, 3, 4]]
    assert front_end.heard()[4:] == ["2a.wav 3"]
    assert sound.store.damaged == ({f"cache/{path.name}"} if how == "flipped" else set())
    path.write_bytes(b"")
    (calls.path.parent / "2c.wav").write_bytes(b"another sound")
    with pytest.raises(SpklinkError, match=r"2a\.wav: the file changed"):
        sound.array(5)


@dataclass(frozen=True)
class Crashing(Counting):
    """A front end whose decoder crashes on some recordings, as long as a file is there."""

    def hear(self, files, tracks):
        if files[0].name in ("3.wav", "7.wav") and self.log.with_name("crash").exists():
            os._exit(139)
        return super().hear(files, tracks)


def test_a_recording_that_ends_the_process_is_a_bad_one(tmp_path):
    """It is named with its file, all others are heard, and it is tried again in the next run."""
    for m in range(20):
        (tmp_path / f"{m}.wav").write_bytes(b"sound %d" % m)
    made = make_conversations([(f"c{m}", "a", "b") for m in range(20)], path=tmp_path / "t.csv")
    calls = replace(made, audio=[(f"{m}.wav",) for m in range(20)])
    front_end, crash = Crashing(tmp_path / "log"), tmp_path / "crash"
    crash.touch()
    with pytest.raises(SpklinkError, match=r"c3: .*3\.wav ended the process") as caught:
        heard_by(front_end, calls, tmp_path, hands=Here(2))
    assert "row 8: c7: " in str(caught.value)
    assert "exit code 139" in str(caught.value)
    assert len(front_end.heard()) == 18
    sound = heard_by(front_end, calls, tmp_path, hands=Here(2), skip_bad=True)
    assert {side for side, mark in enumerate(sound.marks) if mark} == {6, 7, 14, 15}
    crash.unlink()
    again = heard_by(front_end, calls, tmp_path, hands=Here(2))
    assert not any(again.marks)
    assert sorted(front_end.heard()[18:]) == ["3.wav 2", "7.wav 2"]
    assert again.heard[:3] == heard_by(front_end, calls, tmp_path).heard[:3]


def test_a_decoder_may_crash_on_few_recordings_too(calls, tmp_path, monkeypatch):
    """Helpers find a decoder that ends them; what is in the cache needs none."""
    first = heard_by(DEFAULT, calls, tmp_path, hands=Here(2))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "soundfile.py").write_text(
        "import os\n"
        "class SoundFile:\n"
        "    def __init__(self, *given):\n"
        "        os._exit(139)\n"
        "SoundFileError = LibsndfileError = OSError\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "broken")
    sf.write(calls.path.parent / "1.wav", noise(2, 8), RATE)
    path = first.store.path(first.heard[0].key)
    path.write_bytes(b"damaged")
    sound = heard_by(DEFAULT, calls, tmp_path, hands=Here(2), skip_bad=True)
    assert sound.marks == ["bad audio"] * 3 + [""] * 7
    assert "ended the process, twice (exit code 139)" in sound.heard[1].fatal(0)
    assert sound.heard[2:] == first.heard[2:]
    assert sound.store.damaged == {f"cache/{path.name}"}


def test_marks_of_the_tracks_of_a_call(calls, tmp_path):
    (calls.path.parent / "2b.wav").write_bytes(b"no sound")
    sf.write(calls.path.parent / "0.wav", noise(1, 5, 0.5), RATE)
    with pytest.raises(
        SpklinkError, match=r"table\.csv: row 3: c2 channel 2: unreadable.*--on-bad-audio"
    ):
        heard_by(DEFAULT, calls, tmp_path)
    sound = heard_by(DEFAULT, calls, tmp_path, skip_bad=True)
    assert sound.marks[:6] == ["too little speech", "", "", "", "bad audio", ""]


@pytest.fixture
def background(tmp_path):
    """Files of one, two and four channels, one at another rate, and one clipped: a remark."""
    folder = tmp_path / "background"
    (folder / "more").mkdir(parents=True)
    sf.write(folder / "a.wav", noise(1, 1), RATE)
    sf.write(folder / "b.flac", np.clip(noise(2, 2) * [1, 9], -1, 1), RATE)
    sf.write(folder / "more" / "c.wav", noise(4, 3), 16000)
    return folder


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_background_has_any_number_of_channels(front_end, background, tmp_path):
    store = Store(tmp_path / "cache")
    heard = hear_background(background, front_end, store)
    assert [len(one.frames) for one in heard] == [1, 2, 4]
    sides, _ = front_end.hear((background / "more" / "c.wav",), 4)
    assert np.array_equal(load_array(store, heard[2], 3), sides[3].array)


def test_damaged_background_is_named_or_left_out(background, tmp_path):
    (background / "d.wav").write_bytes(b"RIFF, but no sound")
    silent = noise(2, 4) * [1, 0]
    sf.write(background / "e.wav", silent, RATE)  # one good channel is enough
    sf.write(background / "f.wav", 0 * silent, RATE)
    with pytest.raises(SpklinkError) as caught:
        hear_background(background, DEFAULT, Store(tmp_path / "cache"))
    text = str(caught.value)
    assert text.startswith(f"{background}: 2 problems: d.wav: unreadable: ")
    assert "f.wav: silent: nothing above idle noise" in text
    assert "--on-bad-audio skip" in text
    heard = hear_background(background, DEFAULT, Store(tmp_path / "cache"), skip_bad=True)
    assert [len(one.frames) for one in heard] == [1, 2, 2, 4]
    for path in background.rglob("*.*"):
        path.write_bytes(b"no sound")
    with pytest.raises(SpklinkError, match="6 problems"):  # skipping all of it would be no answer
        hear_background(background, DEFAULT, Store(tmp_path / "cache"), skip_bad=True)
    with pytest.raises(SpklinkError, match="no sound files to use as background"):
        hear_background(tmp_path / "nothing", DEFAULT, Store(tmp_path / "cache"))


# ------------------------------------------------------------------------------ bad recordings


def table_of(folder, names):
    """One call a file, written as a table with its first call in row 3: row 2 is empty."""
    rows = [f"c{k},{name},a;b" for k, name in enumerate(names)]
    path = folder / "table.csv"
    path.write_text("\n".join(["conversation,audio,participants", "", *rows, ""]))
    return read_conversations(path)


@pytest.fixture
def odd_files(tmp_path):
    """Nothing here can be heard, each for a reason of its own; the last one can."""
    folder = tmp_path / "odd"
    folder.mkdir()
    os.mkfifo(folder / "pipe.wav")
    (folder / "folder.wav").mkdir()
    sf.write(folder / "good.wav", noise(2, 1), RATE)
    long = "n" * 300 + ".wav"
    return folder, ["gone.wav", "pipe.wav", "folder.wav", long, "/proc/self/mem", "good.wav"]


def test_skip_means_skip(odd_files, tmp_path):
    folder, names = odd_files
    table = table_of(folder, names)
    with pytest.raises(SpklinkError) as caught:
        heard_by(DEFAULT, table, tmp_path)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'table.csv'}: 5 problems: row 3: c0: unreadable: no such ")
    for row, said in (
        (4, "c1: unreadable: a pipe, not a file (pipe.wav)"),
        (5, "c2: unreadable: a folder, not a file (folder.wav)"),
        (6, "c3: unreadable: cannot be read (File name too long) (nnn"),
        (7, "c4: unreadable: cannot be read (Input/output error) (/proc/self/mem)"),
    ):
        assert f"row {row}: {said}" in text
    assert text.endswith("--on-bad-audio skip")
    sound = heard_by(DEFAULT, table, tmp_path, skip_bad=True)
    assert sound.marks == ["bad audio"] * 10 + ["", ""]


def test_the_remedy_is_told_however_many_are_bad(tmp_path):
    table = table_of(tmp_path, [f"{k}.wav" for k in range(25)])
    with pytest.raises(SpklinkError, match=r"and 5 more; mend or remove .*--on-bad-audio skip$"):
        heard_by(DEFAULT, table, tmp_path)


@dataclass(frozen=True)
class Meddling(Counting):
    """A front end during whose work the file is written to, or is gone."""

    how: str = "more"

    def hear(self, files, tracks):
        if self.how == "more":
            with files[0].open("ab") as file:
                file.write(b"more")
        elif self.how == "other":
            files[0].write_bytes(b"another sound")
        elif self.how == "gone":
            files[0].unlink()
        else:
            raise changed(files[0])
        return super().hear(files, tracks)


@pytest.mark.parametrize("how", ["more", "other", "gone", "told"])
def test_a_file_that_changes_meanwhile(how, tmp_path):
    sf.write(tmp_path / "a.wav", noise(2, 1), RATE)
    table, front_end = table_of(tmp_path, ["a.wav"]), Meddling(tmp_path / "log", how=how)
    sound = heard_by(front_end, table, tmp_path, skip_bad=True)
    assert sound.marks == ["bad audio"] * 2
    assert not list(tmp_path.glob("cache/*"))  # the next run hears it anew
    if how != "gone":
        expected = r"row 3: c0: changed: the file changed while it was read; run again \(a\.wav\)"
        with pytest.raises(SpklinkError, match=expected):
            heard_by(front_end, table, tmp_path)


def test_reasons_are_not_taken_from_the_cache(tmp_path):
    table = table_of(tmp_path, ["a.wav"])
    heard_by(DEFAULT, table, tmp_path, skip_bad=True)
    (tmp_path / "a.wav").mkdir()
    with pytest.raises(SpklinkError, match="a folder, not a file"):
        heard_by(DEFAULT, table, tmp_path)


def test_the_same_sound_in_two_rows(tmp_path):
    one, other = ((32768 * noise(2, k)).astype(np.int16) for k in (1, 2))
    mixed = np.stack([other[:, 1], one[:, 0]], 1)
    for name, sound in (("a", one), ("b", other), ("copy", one), ("mixed", mixed)):
        sf.write(tmp_path / f"{name}.wav", sound, RATE)
    sf.write(tmp_path / "flac.flac", one[:, ::-1], RATE)
    twice = table_of(tmp_path, ["a.wav", "b.wav", "copy.wav"])
    with pytest.raises(SpklinkError) as caught:
        heard_by(DEFAULT, twice, tmp_path)
    text = "twice: the same sound as channel 1 of row 5, conversation 'c2'; keep one of the two"
    assert f"row 3: c0 channel 1: {text} (a.wav)" in str(caught.value)
    sound = heard_by(DEFAULT, twice, tmp_path, skip_bad=True)
    assert sound.marks == ["bad audio", "bad audio", "", "", "bad audio", "bad audio"]
    parts = table_of(tmp_path, ["a.wav", "b.wav", "mixed.wav"])
    sound = heard_by(DEFAULT, parts, tmp_path, skip_bad=True)
    assert sound.marks == ["bad audio", "", "", "bad audio", "bad audio", "bad audio"]
    other_file = table_of(tmp_path, ["a.wav", "flac.flac"])
    assert heard_by(DEFAULT, other_file, tmp_path, skip_bad=True).marks == ["bad audio"] * 4


def test_background_of_pipes_and_folders(background, tmp_path):
    os.mkfifo(background / "pipe.wav")
    (background / "folder.wav").mkdir()
    with pytest.raises(SpklinkError) as caught:
        hear_background(background, DEFAULT, Store(tmp_path / "cache"))
    assert "pipe.wav: unreadable: a pipe, not a file" in str(caught.value)
    assert "folder.wav: unreadable: a folder, not a file" in str(caught.value)
    assert len(hear_background(background, DEFAULT, Store(tmp_path / "cache"), skip_bad=True)) == 3

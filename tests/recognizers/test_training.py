"""Training through the cache: what is learned again, and when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import soundfile

from spklink import SpklinkError
from spklink.cache import Store
from spklink.database.conversations import make_conversations
from spklink.recognizers.products import Cosine, mean_of
from spklink.recognizers.training import Trainer, prepare
from spklink.sound.listening import hear
from spklink.sound.waveform import Waveform

RATE = 8000


@dataclass(frozen=True)
class Loudness:
    """Learns the mean of all samples, and writes down whenever it does."""

    log: list[int]  # samples of every training
    name: str = "loudness"
    front_end: Waveform = field(default_factory=lambda: Waveform(rate=RATE))
    recipe: dict[str, int] = field(default_factory=dict)
    learns: bool = True
    level: float = 0.0
    mean: np.ndarray | None = None

    def learn(self, blocks, *, seed, threads=1, progress=None):
        samples = np.concatenate(list(blocks()))
        assert len(samples) == len(np.concatenate(list(blocks())))
        self.log.append(len(samples))
        return replace(self, level=float(np.abs(samples).mean()))

    @property
    def fingerprint(self):
        return f"{self.level:.17f}"[-16:]

    def vector(self, heard):
        assert len(heard)
        return np.array([np.abs(heard).mean() - self.level, heard.std(), 1.0], np.float32)

    def centred(self, vectors, usable):
        return replace(self, mean=mean_of(vectors, usable))

    @property
    def product(self):
        return Cosine(self.mean)

    def arrays(self):
        return {"level": np.array(self.level)} | ({} if self.mean is None else {"mean": self.mean})

    def restored(self, arrays):
        return replace(self, level=float(arrays["level"]), mean=arrays.get("mean"))


def noise(seed, loud=0.1):
    rng = np.random.default_rng(seed)
    syllables = 0.55 + 0.45 * np.sin(np.arange(3 * RATE)[:, None] / 318.0)
    return rng.uniform(0.5, 1.0, 2) * loud * syllables * rng.standard_normal((3 * RATE, 2))


@pytest.fixture
def sound_of(tmp_path):
    """The sound of some of ten calls."""
    for m in range(10):
        soundfile.write(tmp_path / f"{m}.wav", noise(m), RATE)

    def heard(calls, **how):
        rows = [(f"c{k}", "a", "b") for k in range(len(calls))]
        made = make_conversations(rows, path=tmp_path / "t.csv")
        table = replace(made, audio=[(f"{m}.wav",) for m in calls])
        how = {"min_speech": 1.0, "skip_bad": True} | how
        return hear(table, Waveform(rate=RATE), tmp_path / "features", **how)

    return heard


def test_trained_again_only_where_a_call_is_gone(sound_of, tmp_path):
    log, trainer = [], Trainer(tmp_path)
    first = prepare(Loudness(log), sound_of(range(6)), trainer)
    assert (first.trained_on, first.of) == (6, 6)
    more = prepare(Loudness(log), sound_of(range(8)), trainer)
    assert (more.name, more.trained_on, more.of) == (first.name, 6, 8)
    assert more.vectors[more.row[:12]].tobytes() == first.vectors[first.row].tobytes()
    assert more.recognizer.mean.tobytes() == first.recognizer.mean.tobytes()
    assert len(log) == 1
    fewer = prepare(Loudness(log), sound_of(range(5)), trainer)
    assert (fewer.trained_on, len(log)) == (5, 2)
    anew = prepare(Loudness(log), sound_of(range(8)), replace(trainer, retrain=True))
    assert (anew.trained_on, anew.of, len(log)) == (8, 8, 3)
    best = prepare(Loudness(log), sound_of(range(9)), trainer)  # of all that would do
    assert (best.name, best.trained_on, len(log)) == (anew.name, 8, 3)


def test_seed_recipe_and_front_end_count(sound_of, tmp_path):
    log, sound = [], sound_of(range(3))
    prepare(Loudness(log), sound, Trainer(tmp_path))
    prepare(Loudness(log), sound, Trainer(tmp_path, seed=1))
    prepare(Loudness(log, recipe={"x": 1}), sound, Trainer(tmp_path))
    prepare(Loudness(log, front_end=Waveform(rate=RATE, widen=3)), sound, Trainer(tmp_path))
    prepare(Loudness(log), sound, Trainer(tmp_path))
    assert len(log) == 4


def test_a_background_is_learned_from_once_for_all_tables(sound_of, tmp_path):
    background = tmp_path / "background"
    background.mkdir()
    soundfile.write(background / "a.wav", noise(50, 0.2), RATE)
    soundfile.write(background / "b.wav", noise(51, 0.2)[:, 0], RATE)
    log, trainer = [], Trainer(tmp_path, background=background)
    one = prepare(Loudness(log), sound_of(range(4)), trainer)
    two = prepare(Loudness(log), sound_of(range(4, 9)), trainer)
    assert log == [9 * RATE]  # three channels of three seconds, all of it speech
    assert one.recognizer.level == two.recognizer.level
    assert one.recognizer.mean.tobytes() != two.recognizer.mean.tobytes()
    assert one.name != two.name
    soundfile.write(background / "b.wav", noise(52, 0.2)[:, 0], RATE)
    prepare(Loudness(log), sound_of(range(4)), trainer)
    assert len(log) == 2
    prepare(Loudness(log), sound_of(range(4)), Trainer(tmp_path))
    assert log[2] == 4 * 2 * 3 * RATE


def test_sides_without_speech_have_no_vector(sound_of, tmp_path):
    sound_of([0])
    silent = noise(1) * [1, 0]
    soundfile.write(tmp_path / "1.wav", silent, RATE)
    (tmp_path / "2.wav").write_bytes(b"no sound")
    trained = prepare(Loudness([]), sound_of([1, 2, 3]), Trainer(tmp_path))
    there = trained.vectors.any(axis=1)[trained.row]
    assert there.tolist() == [True, False, False, False, True, True]
    assert (trained.trained_on, trained.of) == (2, 2)
    with pytest.raises(SpklinkError, match="no recording has enough speech"):
        prepare(Loudness([]), sound_of([2]), Trainer(tmp_path))


def test_usable_sides_count(tmp_path):
    """Another --min-speech on the same calls: other sides are learned from."""
    rng = np.random.default_rng(1)
    for m in range(3):
        syllables = 0.55 + 0.45 * np.sin(np.arange(4 * RATE)[:, None] / 318.0)
        samples = 0.1 * syllables * rng.standard_normal((4 * RATE, 2))
        samples[2 * RATE :, 1] = 0.0
        soundfile.write(tmp_path / f"{m}.wav", samples, RATE)
    made = make_conversations([(f"c{m}", "a", "b") for m in range(3)], path=tmp_path / "t.csv")
    table, log = replace(made, audio=[(f"{m}.wav",) for m in range(3)]), []

    def prepared(min_speech):
        how = {"min_speech": min_speech, "skip_bad": True}
        sound = hear(table, Waveform(rate=RATE), tmp_path / "features", **how)
        return prepare(Loudness(log), sound, Trainer(tmp_path))

    both, one, again = prepared(1.0), prepared(3.0), prepared(1.0)
    assert len(log) == 2
    assert log[0] > log[1]
    assert both.name == again.name != one.name
    assert prepared(1.1).name == both.name  # the same sides


def test_the_order_of_calls_does_not_count(sound_of, tmp_path):
    """Floating point knows the order of sums, so it is the same one for any order of rows."""
    found = [
        prepare(Loudness([]), sound_of(order), Trainer(tmp_path, retrain=True))
        for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2])
    ]
    assert len({one.name for one in found}) == 1
    assert len({one.recognizer.mean.tobytes() for one in found}) == 1
    assert len({one.vectors.tobytes() for one in found}) == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", None])
def test_files_that_are_something_else(content, sound_of, tmp_path):
    sound, log = sound_of([0, 1]), []
    first = prepare(Loudness(log), sound, Trainer(tmp_path))
    store = Store(tmp_path / "recognizers")
    if content is None:  # whole, but of no recognizer of this kind
        store.write(first.name, store.about(first.name), {"vectors": np.zeros(3)})
    else:
        store.path(first.name).write_bytes(content)
    again = prepare(Loudness(log), sound, Trainer(tmp_path))
    assert again.recognizer.mean.tobytes() == first.recognizer.mean.tobytes()
    assert sound.store.damaged == {f"recognizers/{first.name}.kept"}
    assert len(log) == 1  # what was learned was whole


def test_very_many_vectors_are_a_runs_own(sound_of, tmp_path, monkeypatch):
    """Mapped from a file: what another run does with the same recognizer changes nothing."""
    monkeypatch.setattr("spklink.memory.Memory.vectors", 0.0)
    few = prepare(Loudness([]), sound_of(range(4)), Trainer(tmp_path))
    before = few.vectors.tobytes()
    more = prepare(Loudness([]), sound_of([7, 6, 5, 4, 3, 2, 1, 0]), Trainer(tmp_path))
    assert few.recognizer.fingerprint == more.recognizer.fingerprint
    assert few.vectors.tobytes() == before
    same = more.vectors[more.row[8:]].reshape(4, 2, -1)[::-1].reshape(8, -1)
    assert same.tobytes() == few.vectors[few.row].tobytes()
    assert isinstance(few.vectors, np.memmap)
    del few, more
    assert not list(tmp_path.rglob(".*"))

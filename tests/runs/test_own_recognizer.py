"""A recognizer of one's own, of a few lines, goes the whole way: listening, vectors, scores.

Two of them, one for each kind of front end; `conversations` may have any number of tracks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spklink.database.conversations import Conversations, make_conversations
from spklink.database.sides import numbered
from spklink.recognizers import products
from spklink.recognizers.recognizer import Embedding, Recognizer
from spklink.recognizers.training import Trainer, prepare
from spklink.sound.features import Cepstra
from spklink.sound.listening import hear
from spklink.sound.waveform import Waveform
from spklink.worlds.voices import RATE, draw_session, make_voices, speak


@dataclass(frozen=True)
class Spectrum(Embedding):
    """The mean spectrum of a side's samples."""

    name = "spectrum"
    front_end = Waveform(rate=8000)
    size: int = 256

    @property
    def recipe(self):
        return {"size": self.size}

    def vector(self, heard):
        whole = heard[: len(heard) // self.size * self.size].reshape(-1, self.size)
        power = np.square(np.abs(np.fft.rfft(whole * np.hanning(self.size)))).mean(axis=0)
        return np.log(power[1:] + 1e-9).astype(np.float32)


class Shape(Embedding):
    """How the cepstra of a side go together."""

    name = "shape"
    front_end = Cepstra(cepstra=12)

    def vector(self, heard):
        return np.cov(heard[:, :12].T)[np.triu_indices(12)].astype(np.float32)


OWN: list[Recognizer] = [Spectrum(), Shape()]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Conversations:
    """Three voices in six calls: of one, two and three tracks, voice k on track k."""
    folder = tmp_path_factory.mktemp("own")
    cast = make_voices(3, np.random.default_rng(4))
    counts = [1, 2, 3, 3, 2, 3]
    for m, count in enumerate(counts):
        rng = np.random.default_rng(m)
        sides = [speak(voice, draw_session(rng), 8.0, rng) for voice in cast[:count]]
        shortest = min(map(len, sides))
        samples = np.stack([side[:shortest] / np.abs(side).max() / 2 for side in sides], axis=1)
        soundfile.write(folder / f"{m}.wav", samples, RATE)
    made = make_conversations([(f"c{m}", "a", "b") for m in range(6)], path=folder / "calls.csv")
    return replace(made, sides=numbered(counts), audio=[(f"{m}.wav",) for m in range(6)])


@pytest.mark.parametrize("recognizer", OWN, ids=[one.name for one in OWN])
def test_a_few_lines_are_enough(
    recognizer: Recognizer, calls: Conversations, tmp_path: Path
) -> None:
    sound = hear(calls, recognizer.front_end, tmp_path / "f", min_speech=1.0, skip_bad=False)
    trained = prepare(recognizer, sound, Trainer(tmp_path))
    assert (trained.trained_on, trained.of) == (6, 6)
    voice = calls.sides.position
    one, two = np.triu_indices(len(voice), 1)
    scores = products.pair_scores(trained.recognizer.product, trained.vectors, one, two)
    same = voice[one] == voice[two]
    assert scores[same].mean() > scores[~same].mean() + 0.2
    again = prepare(recognizer, sound, Trainer(tmp_path))
    assert (again.name, again.vectors.tobytes()) == (trained.name, trained.vectors.tobytes())
    found = products.pair_scores(again.recognizer.product, again.vectors, one, two)
    assert found.tobytes() == scores.tobytes()


def test_vectors_of_another_recipe_are_not_mixed_up(calls: Conversations, tmp_path: Path) -> None:
    front_end = Spectrum.front_end
    sound = hear(calls, front_end, tmp_path / "f", min_speech=1.0, skip_bad=False)
    widths = [
        prepare(Spectrum(size=size), sound, Trainer(tmp_path)).vectors.shape[1]
        for size in (256, 128, 256)
    ]
    assert widths == [128, 64, 128]

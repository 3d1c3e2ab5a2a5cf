"""A recognizer of one's own, of a few lines, goes the whole way: listening, vectors, scores.

Two of them, one for each kind of front end; `conversations` may have any number of tracks.
"""

from __future__ import annotations

import json
import sys
import types
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spklink import link, read_conversations, write_report
from spklink.database.conversations import Conversations, make_conversations
from spklink.database.sides import numbered
from spklink.recognizers import products
from spklink.recognizers.recognizer import Embedding, Recognizer
from spklink.recognizers.table import RECOGNIZERS
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
def many_tracks(tmp_path_factory: pytest.TempPathFactory) -> Conversations:
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
    recognizer: Recognizer, many_tracks: Conversations, tmp_path: Path
) -> None:
    sound = hear(many_tracks, recognizer.front_end, tmp_path / "f", min_speech=1.0, skip_bad=False)
    trained = prepare(recognizer, sound, Trainer(tmp_path))
    assert (trained.trained_on, trained.of) == (6, 6)
    voice = many_tracks.sides.position
    one, two = np.triu_indices(len(voice), 1)
    rows = trained.row[one], trained.row[two]
    scores = products.pair_scores(trained.recognizer.product, trained.vectors, *rows)
    same = voice[one] == voice[two]
    assert scores[same].mean() > scores[~same].mean() + 0.2
    again = prepare(recognizer, sound, Trainer(tmp_path))
    assert (again.name, again.vectors.tobytes()) == (trained.name, trained.vectors.tobytes())
    found = products.pair_scores(again.recognizer.product, again.vectors, *rows)
    assert found.tobytes() == scores.tobytes()


@pytest.mark.parametrize("recognizer", OWN, ids=[one.name for one in OWN])
def test_from_sound_to_results(recognizer: Recognizer, calls: Path, tmp_path: Path) -> None:
    """`link` with an object: its vectors are what is scored, its name is in the results."""
    found = link(calls / "conversations.csv", tmp_path / "out", recognizer=recognizer, workers=1)
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["recognizer"]["name"] == run["options"]["recognizer"] == recognizer.name
    assert run["recognizer"]["front_end"] == json.loads(json.dumps(recognizer.front_end.key))
    page = write_report(tmp_path / "out", result=found).read_text()
    assert "the command line does not know it" in page
    table = read_conversations(calls / "conversations.csv")
    sound = hear(table, recognizer.front_end, tmp_path / "f", min_speech=2.0, skip_bad=False)
    trained = prepare(recognizer, sound, Trainer(tmp_path))
    rows = trained.row[found.raw.side_1], trained.row[found.raw.side_2]
    scores = products.pair_scores(trained.recognizer.product, trained.vectors, *rows)
    # Too few calls to normalise or compare again: the scores are the recognizer's own.
    assert np.allclose(found.raw.score, scores, atol=1e-6)


def test_the_name_of_a_recognizer_decides(calls: Path, tmp_path: Path, monkeypatch, run) -> None:
    """One entry in the table, and --recognizer knows it."""
    module = types.ModuleType("spklink.recognizers.shape")
    module.make = lambda **_: Shape()
    monkeypatch.setitem(sys.modules, "spklink.recognizers.shape", module)
    monkeypatch.setitem(RECOGNIZERS, "shape", "shape")
    asked = ["link", calls / "conversations.csv", "-o", tmp_path / "out", "--no-report"]
    found = link(calls / "conversations.csv", recognizer="shape", workers=1)
    assert found.listening.recognizer["name"] == "shape"
    code, _, err = run(*asked, "--recognizer", "nobody")
    assert code == 2
    assert "nobody" in err


def test_vectors_of_another_recipe_are_not_mixed_up(
    many_tracks: Conversations, tmp_path: Path
) -> None:
    front_end = Spectrum.front_end
    sound = hear(many_tracks, front_end, tmp_path / "f", min_speech=1.0, skip_bad=False)
    widths = [
        prepare(Spectrum(size=size), sound, Trainer(tmp_path)).vectors.shape[1]
        for size in (256, 128, 256)
    ]
    assert widths == [128, 64, 128]

"""Back-ends in whole runs: chosen, recorded, taught by links or by a labelled background."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_calls import write_table
from spklink import SpklinkError, link
from spklink.recognizers.recognizer import Embedding
from spklink.runs.recipe import recipe_of, with_back_end
from spklink.sound.waveform import Waveform
from spklink.worlds.voices import RATE, call, draw_session, make_voices, speak


class Spectrum(Embedding):
    """The mean spectrum of a side."""

    name = "spectrum"
    front_end = Waveform(rate=8000)

    def vector(self, heard):
        frames = heard[: len(heard) // 256 * 256].reshape(-1, 256)
        power = np.square(np.abs(np.fft.rfft(frames * np.hanning(256)))).mean(axis=0)
        return np.log(power[1:] + 1e-9).astype(np.float32)


@pytest.fixture(scope="module")
def cast():
    return dict(zip("abcdefgh", make_voices(8, np.random.default_rng(6)), strict=True))


@pytest.fixture(scope="module")
def many_calls(tmp_path_factory, cast) -> Path:
    """Two sets of people without a common call, each in four cliques of six short calls."""
    folder, rows = tmp_path_factory.mktemp("many"), []
    for people in ("abcd", "efgh"):
        for trio in itertools.combinations(people, 3):
            for first, second in [*itertools.combinations(trio, 2)] * 2:
                k = len(rows)
                samples = call(cast[first], cast[second], np.random.default_rng(k), 5.0)
                soundfile.write(folder / f"{k}.wav", samples, RATE)
                rows.append((f"c{k}", f"{k}.wav", f"{first};{second}", "".join(trio)))
    columns = ["conversation", "audio", "participants", "group"]
    write_table(folder / "conversations.csv", columns, rows)
    return folder


@pytest.fixture(scope="module")
def background(tmp_path_factory) -> Path:
    """Twelve other people, three recordings each."""
    folder, rows = tmp_path_factory.mktemp("background"), []
    for who, voice in enumerate(make_voices(12, np.random.default_rng(8))):
        for k in range(3):
            rng = np.random.default_rng([who, k])
            samples = speak(voice, draw_session(rng), 4.0, rng)
            name = f"p{who}-{k}.wav"
            soundfile.write(folder / name, samples / np.abs(samples).max() / 2, RATE)
            rows.append((name, f"p{who}"))
    write_table(folder / "speakers.csv", ["audio", "speaker"], rows)
    return folder


def run(many_calls, out, **options):
    small = {
        "recognizer": Spectrum(),
        "min_speech": 0.5,
        "workers": 1,
        "report": False,
        "list_errors": 0.0,
    }
    cache = many_calls / "cache"  # shared: heard once
    return link(many_calls / "conversations.csv", out, **small | {"cache": cache} | options)


def recorded(out: Path) -> dict:
    return json.loads((out / "run.json").read_text())["recognizer"]


def test_what_measured_best_is_what_auto_means():
    default, paper = recipe_of("default"), recipe_of("paper")

    def back_end(recipe, asked, recognizer, twice=True):
        return with_back_end(recipe, asked, recognizer, twice=twice).back_end

    assert back_end(default, "auto", "gmm-ubm") == "wccn"
    assert back_end(default, "auto", "a network") == "plda"
    assert back_end(default, "wccn", "a network") == "wccn"
    assert back_end(default, "plda", "gmm-ubm", twice=False) == "cosine"
    assert back_end(paper, "auto", "gmm-ubm") == "cosine"
    assert back_end(paper, "plda", "gmm-ubm") == "plda"


def test_back_ends_are_chosen_and_recorded(many_calls, tmp_path):
    """Each gives other scores; the same bytes on any number of workers."""
    found = {}
    for name in ("auto", "cosine", "wccn", "plda"):
        found[name] = run(many_calls, tmp_path / name, back_end=name)
        used = "plda" if name == "auto" else name
        assert recorded(tmp_path / name)["back_end"] == used
    scores = {name: one.raw.score for name, one in found.items()}
    assert np.array_equal(scores["auto"], scores["plda"])
    for one, two in itertools.combinations(("cosine", "wccn", "plda"), 2):
        assert not np.allclose(scores[one], scores[two])
    run(many_calls, tmp_path / "two", back_end="plda", workers=2)
    for name in ("assignments.csv", "scores.npz"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "plda" / name).read_bytes()


def test_a_labelled_background_teaches(many_calls, background, tmp_path):
    """With plda it does, in place of the links; the order of its rows changes nothing; with another
    back-end it is said that nobody asks who speaks there."""
    once = run(many_calls, tmp_path / "once", back_end="cosine")
    taught = run(many_calls, tmp_path / "a", back_end="plda", background=background)
    assert taught.calibrated.first is None  # one comparison
    linked = run(many_calls, tmp_path / "b", back_end="plda")
    assert not np.allclose(taught.raw.score, once.raw.score)
    assert not np.allclose(taught.raw.score, linked.raw.score)
    told = run(many_calls, tmp_path / "c", back_end="wccn", background=background)
    assert any("--back-end plda uses it" in note for note in told.notes)
    assert not any("--back-end plda uses it" in note for note in taught.notes)
    table = background / "speakers.csv"
    first, *rows = table.read_text().splitlines()
    try:
        table.write_text("\n".join([first, *rows[::-1]]) + "\n")
        again = run(many_calls, tmp_path / "d", back_end="plda", background=background)
    finally:
        table.write_text("\n".join([first, *rows]) + "\n")
    assert np.array_equal(again.raw.score, taught.raw.score)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("p0-0.wav", "p0"), ("p1-0.wav", "p1")], "no speaker has two recordings"),
        ([("p0-0.wav", "p0"), ("p0-1.wav", "p0")], "all recordings are of one speaker"),
        ([("p0-0.wav", "p0"), ("p0-0.wav", "p0")], "row 3: 'p0-0.wav' is in row 2 already"),
        ([("gone.wav", "p0")], "row 2: there is no file 'gone.wav'"),
        ([("p0-0.wav", "")], "row 2: no speaker"),
    ],
)
def test_what_is_wrong_with_a_background_is_named(many_calls, background, tmp_path, rows, said):
    table = background / "speakers.csv"
    kept = table.read_text()
    try:
        write_table(table, ["audio", "speaker"], rows)
        with pytest.raises(SpklinkError, match=said) as error:
            run(many_calls, tmp_path / "out", back_end="plda", background=background)
        assert str(error.value).startswith(str(table))
    finally:
        table.write_text(kept)


def test_channels_of_a_background(many_calls, background, tmp_path):
    """A recording of two people needs a column that says which of them is meant."""
    folder = tmp_path / "two"
    folder.mkdir()
    names, rows = [path.name for path in sorted(background.glob("*.wav"))][:12], []
    for one, two in zip(names[::2], names[1::2], strict=True):
        sides = [soundfile.read(background / name)[0] for name in (one, two)]
        shortest = min(map(len, sides))
        both = np.stack([side[:shortest] for side in sides], axis=1)
        soundfile.write(folder / f"{one[:-4]}+{two}", both, RATE)
        rows += [(f"{one[:-4]}+{two}", one.split("-")[0], 1)]
        rows += [(f"{one[:-4]}+{two}", two.split("-")[0], 2)]
    write_table(folder / "speakers.csv", ["audio", "speaker", "channel"], rows)
    run(many_calls, tmp_path / "out", back_end="plda", background=folder)
    write_table(folder / "speakers.csv", ["audio", "speaker"], [row[:2] for row in rows[::2]])
    with pytest.raises(SpklinkError, match="has 2 channels; say which in a column channel"):
        run(many_calls, tmp_path / "out", back_end="plda", background=folder)
    wrong = [*rows[:-1], (*rows[-1][:2], 3)]
    write_table(folder / "speakers.csv", ["audio", "speaker", "channel"], wrong)
    with pytest.raises(SpklinkError, match="has no channel 3"):
        run(many_calls, tmp_path / "out", back_end="plda", background=folder)

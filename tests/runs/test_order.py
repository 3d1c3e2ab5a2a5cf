"""The answer is about voices: rows in another order, other names, channels the other way round."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_calls import write_table
from spklink.runs.link import link
from spklink.worlds.voices import RATE, call, make_voices

COLUMNS = ["conversation", "audio", "participants"]
NEAR = 1e-9
PEOPLE = "abcdefghijklmnopqrstuvwx"


@pytest.fixture(scope="module")
def hard_calls(tmp_path_factory) -> Path:
    """Eight circles of three people, short calls, noise on the line: far from certain."""
    folder = tmp_path_factory.mktemp("hard")
    cast = dict(zip(PEOPLE, make_voices(len(PEOPLE), np.random.default_rng(6)), strict=True))
    circles = [PEOPLE[k : k + 3] for k in range(0, len(PEOPLE), 3)]
    pairs = [pair for circle in circles for pair in itertools.combinations(circle, 2)] * 2
    rows = []
    for k, (first, second) in enumerate(pairs):
        rng = np.random.default_rng(k)
        samples = call(cast[first], cast[second], rng, 5.0)
        noise = 600 * rng.standard_normal(samples.shape)
        soundfile.write(folder / f"{k}.wav", (samples + noise).astype(np.int16), RATE)
        rows.append((f"c{k}", f"{k}.wav", f"{first};{second}"))
    write_table(folder / "conversations.csv", COLUMNS, rows)
    return folder


def rows_of(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row[c] for c in COLUMNS) for row in csv.DictReader(file)]


def answers(folder: Path, cache: Path, **how) -> dict[tuple[str, str], float]:
    """How probable each person is on channel 1 of each call."""
    small = {"components": 16, "min_speech": 0.5, "workers": 1, "cache": cache}
    found = link(folder / "conversations.csv", **small, **how)
    assert (found.calibrated.first is not None) == (not how), "voices compared twice, or once"
    table = found.evidence.conversations
    return {
        (table.ids[m], who): float(p if k else 1.0 - p)
        for m, p in enumerate(found.posterior.exchanged)
        for k, who in enumerate(table.names(m))
    }


HOW = {
    "twice": {},
    "once": {"link_wccn": False},
    "paper": {"preset": "paper"},
}


@pytest.fixture(scope="module", params=HOW)
def plain(request, hard_calls, heard):
    how = HOW[request.param]
    return how, answers(hard_calls, cache=heard / "plain", **how)


@pytest.fixture(scope="module")
def heard(tmp_path_factory) -> Path:
    """Every way to link listens to the same calls, and to the same changed ones, each apart."""
    return tmp_path_factory.mktemp("heard")


def changed(hard_calls: Path, folder: Path, seed: int) -> tuple[dict[str, str], set[str]]:
    """Another table of the same voices; what everything is called now, and what was swapped."""
    rng = np.random.default_rng(seed)
    rows = rows_of(hard_calls / "conversations.csv")
    people = {who: f"p{n}" for who, n in zip(PEOPLE, rng.permutation(len(PEOPLE)), strict=True)}
    calls = {row[0]: f"x{n}" for row, n in zip(rows, rng.permutation(len(rows)), strict=True)}
    swapped, table = set(), []
    for name, audio, who in (rows[k] for k in rng.permutation(len(rows))):
        file = f"{calls[name]}-{rng.integers(1000)}.wav"
        if rng.random() < 0.5:
            swapped.add(name)
            samples, rate = soundfile.read(hard_calls / audio, dtype="int16")
            soundfile.write(folder / file, samples[:, ::-1], rate)
        else:
            (folder / file).symlink_to(hard_calls / audio)
        listed = [people[p] for p in who.split(";")][:: rng.choice([-1, 1])]
        table.append((calls[name], file, ";".join(listed)))
    write_table(folder / "conversations.csv", COLUMNS, table)
    return people | calls, swapped


@pytest.mark.parametrize("seed", [1])
def test_only_the_voices_count(hard_calls, plain, heard, tmp_path, seed):
    how, before = plain
    names, swapped = changed(hard_calls, tmp_path, seed)
    after = answers(tmp_path, cache=heard / f"changed {seed}", **how)
    open_calls = [p for p in before.values() if 0.001 < p < 0.999]
    assert len(open_calls) > 4, "nothing is open: nothing is tested"
    for (conversation, who), p in before.items():
        found = after[names[conversation], names[who]]
        expected = 1.0 - p if conversation in swapped else p
        assert found == pytest.approx(expected, abs=NEAR), (conversation, who)

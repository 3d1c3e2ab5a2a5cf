"""Turns in a whole run: without voices, with them, and back from the folder."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

import spklink
from made_calls import PAIRS
from spklink.errors import SpklinkError
from spklink.sound.levels import load_levels
from spklink.sound.listening import hear, load_array
from spklink.sound.loudness import Loudness
from spklink.sound.waveform import Waveform

LINK = {"workers": 1, "report": False, "min_speech": 0.5}


def louder(calls: Path) -> list[dict[str, str]]:
    """Who is louder when, by the truth: what a transcript would say."""
    with (calls / "key.csv").open() as file:
        first = {row["conversation"]: row["speaker"] for row in csv.DictReader(file)}
    rows = []
    for k, pair in enumerate(PAIRS):
        samples, rate = soundfile.read(calls / f"{k}.wav")
        step = rate // 5
        blocks = samples[: len(samples) // step * step].reshape(-1, step, 2)
        power = 10.0 * np.log10(blocks.var(axis=1) + 1e-9)
        loud = np.where(np.abs(power[:, 0] - power[:, 1]) > 10.0, power.argmax(axis=1), -1)
        names = [first[f"c{k}"], next(p for p in pair if p != first[f"c{k}"])]
        for t, track in enumerate(loud.tolist()):
            if track >= 0:
                start = round(0.2 * t, 1)
                row = (f"c{k}", names[track], start, round(start + 0.2, 1))
                rows.append(
                    dict(zip(("conversation", "speaker", "start", "end"), row, strict=True))
                )
    return rows


def wrong(found, calls: Path) -> int:
    with (calls / "key.csv").open() as file:
        first = {row["conversation"]: row["speaker"] for row in csv.DictReader(file)}
    return sum(row[2] != first[row[0]] for row in found.assignments() if row[1] == 1)


def test_turns_alone(calls, tmp_path):
    turns = louder(calls)
    found = spklink.link(
        calls / "conversations.csv", tmp_path, recognizer="none", turns=turns, **LINK
    )
    assert wrong(found, calls) == 0
    assert found.answer.binary
    assert any("voices were not compared" in note for note in found.notes)
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["cues"]["turns"]["conversations"] == len(PAIRS)
    assert run["recognizer"]["name"] == "none"
    with (tmp_path / "evidence.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["cue"] for row in rows} == {"voices", "turns"}
    voices = [abs(float(row["log_odds"])) for row in rows if row["cue"] == "voices"]
    assert max(voices) < 1e-6
    again = spklink.load(tmp_path)
    assert list(again.assignments()) == list(found.assignments())
    measured = spklink.evaluate(tmp_path, calls / "key.csv")
    assert measured.wrong == 0


def test_order_names_and_channels_do_not_matter(calls, tmp_path):
    """The same answer for any order of the rows of both tables."""
    turns = louder(calls)
    with (calls / "conversations.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["audio"] = str(calls / row["audio"])
    one = spklink.link(rows, recognizer="none", turns=turns, **LINK)
    two = spklink.link(rows[::-1], recognizer="none", turns=turns[::-1], **LINK)
    a, b = ({row[:3]: float(row[3]) for row in x.assignments()} for x in (one, two))
    assert a.keys() == b.keys()
    assert max(abs(a[k] - b[k]) for k in a) < 1e-9


def test_turns_of_half_of_the_calls_beside_voices(calls, tmp_path):
    turns = [row for row in louder(calls) if int(row["conversation"][1:]) % 2]
    cache = tmp_path / "cache"
    plain = spklink.link(calls / "conversations.csv", cache=cache, components=16, **LINK)
    found = spklink.link(
        calls / "conversations.csv", cache=cache, components=16, turns=turns, **LINK
    )
    assert plain.evidence.cues == ()
    assert not len(plain.conversations.cues)
    alone = found.evidence.with_cues(())
    np.testing.assert_allclose(alone.scores.needed.shape, plain.evidence.scores.needed.shape)
    gh = [m for m, pair in enumerate(PAIRS) if pair == ("g", "h")]
    before, after = (1.0 - np.abs(2.0 * x.posterior.exchanged[gh] - 1.0) for x in (plain, found))
    assert (before > 0.98).all()  # no voice can tell
    assert after.min() < 0.1


def test_bad_turns_are_refused_before_any_listening(calls, tmp_path):
    with pytest.raises(SpklinkError, match="turns of 'nobody'"):
        spklink.link(
            calls / "conversations.csv",
            turns=[{"conversation": "c0", "speaker": "nobody", "start": 1, "end": 2}],
            **LINK,
        )


@pytest.mark.parametrize("front_end", [Loudness(), Waveform(rate=8000)])
def test_levels_are_kept_and_found_again(calls, tmp_path, front_end):
    table = spklink.database.conversations.read_conversations(calls / "conversations.csv")
    sound = hear(table, front_end, tmp_path, min_speech=0.5, skip_bad=False)
    kept = sound.levels(0)
    assert [len(level) for level in kept] == [len(kept[0])] * 2
    assert len(kept[0]) == pytest.approx(1000, abs=5)
    assert load_array(sound.store, sound.heard[0], 0).size > 0
    # An older cache has none: they are measured once more, to the same bytes.
    one = sound.heard[0]
    about = sound.store.about(one.key)
    arrays = {"sides": sound.store.load(one.key).arrays["sides"].copy()}
    sound.store.write(one.key, about, arrays)
    fresh = load_levels(sound.store, one)
    for a, b in zip(kept, fresh, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif("SPKLINK_DATA" not in os.environ, reason="SPKLINK_DATA is not set")
def test_twenty_real_calls_by_their_turns(tmp_path):
    data = Path(os.environ["SPKLINK_DATA"]) / "harpervalley"
    with (data / "conversations.csv").open() as file:
        rows = list(csv.DictReader(file))[:20]
    names = {row["conversation"] for row in rows}
    for row in rows:
        row["audio"] = str(data / row["audio"])
    with (data / "turns.csv").open() as file:
        turns = [row for row in csv.DictReader(file) if row["conversation"] in names]
    found = spklink.link(rows, recognizer="none", turns=turns, workers=1, report=False)
    with (data / "key.csv").open() as file:
        key = {(r["conversation"], r["channel"]): r["speaker"] for r in csv.DictReader(file)}
    assert all(key[row[0], str(row[1])] == row[2] for row in found.assignments())
    assert all(float(row[3]) > 0.99 for row in found.assignments())


def test_more_tracks_are_measured_by_evidence(tmp_path):
    """Meetings of three: a cue says of half of them who is where; each kind of evidence by itself,
    and together, track by track."""
    rng = np.random.default_rng(0)
    voice, table, vectors, key, cue = rng.normal(size=(12, 8)), [], [], [], []
    for m in range(24):
        some = rng.choice(12, 3, replace=False)
        on = rng.permutation(some).tolist()
        names = ";".join(f"p{who}" for who in sorted(some.tolist()))
        table.append({"conversation": f"c{m}", "participants": names, "tracks": "3"})
        for track, who in enumerate(on, start=1):
            vectors.append(voice[who] + 1.0 * rng.normal(size=8))
            key.append({"conversation": f"c{m}", "channel": track, "speaker": f"p{who}"})
            if m % 2:
                row = {"conversation": f"c{m}", "track": track, "speaker": f"p{who}"}
                cue.append(row | {"log_odds": 4.0})
    asked = {"report": False, "list_errors": 0.0, "cue": cue}
    found = spklink.link(table, tmp_path, embeddings=np.array(vectors, np.float32), **asked)
    rows = {row.name: row for row in spklink.evaluate(found, key).cues}
    assert set(rows) == {"voices", "cue", "together"}
    assert all(row.tracks and row.conversations == 72 for row in rows.values())
    assert rows["cue"].says == 36
    assert rows["cue"].wrong == pytest.approx(24.0)  # a third of what is not said is right by luck
    assert rows["cue"].bits == pytest.approx(0.5 * np.log2(3.0), abs=0.1)
    assert rows["together"].bits < min(rows["voices"].bits, rows["cue"].bits)
    again = {row.name: row for row in spklink.evaluate(tmp_path, key).cues}
    assert again["together"].bits == pytest.approx(rows["together"].bits, abs=1e-6)
    assert json.dumps([row.as_json() for row in again.values()])

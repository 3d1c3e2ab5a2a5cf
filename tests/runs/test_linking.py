"""`link` from sound to tables, on artificial voices; interrupted, resumed, extended, damaged."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kills import killed_when
from made_calls import PAIRS, write_table
from spklink import SpklinkError, read_conversations, read_key
from spklink.cache import Store
from spklink.json_files import read_json
from spklink.report import provenance
from spklink.runs.link import link
from spklink.worlds.voices import RATE, call, make_voices

SMALL = {"components": 16}  # Gaussians: enough for a few minutes of artificial speech


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def content(out: Path) -> dict[str, bytes]:
    """All result files but the one of clock times."""
    return {p.name: p.read_bytes() for p in sorted(out.iterdir()) if p.suffix and is_result(p)}


def is_result(path: Path) -> bool:
    return path.name != "timings.json" and path.is_file()


def run(calls: Path, out: Path, *, workers: int = 1, table: str = "conversations.csv", **more):
    return link(calls / table, out, workers=workers, **{**SMALL, **more})


@pytest.fixture(scope="module")
def linked(calls, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("linked") / "out"
    run(calls, out)
    return out


def test_results_of_a_run(calls, linked):
    names = {path.name for path in linked.iterdir()}
    assert {
        *("assignments.csv", "cliques.csv", "sides.csv", "problems.csv", "scores.npz"),
        *("calibration.json", "llrs.npz", "run.json", "timings.json", "cache"),
    } <= names
    sides = rows_of(linked / "sides.csv")
    assert [(s["conversation"], s["channel"]) for s in sides[:2]] == [("c0", "1"), ("c0", "2")]
    assert all(2.0 <= float(s["speech_seconds"]) <= 10.0 for s in sides)
    assert not any(s["mark"] for s in sides)
    table = read_conversations(calls / "conversations.csv")
    truth = read_key(calls / "key.csv", table).bits
    found = read_key(linked / "assignments.csv", table).bits
    resolvable = [c["resolvable"] == "true" for c in rows_of(linked / "cliques.csv")]
    assert resolvable == [True, True, False]
    assert (found == truth)[: 3 * 2].mean() > 0.5  # artificial voices, ten seconds: not perfect


def test_same_bytes_for_any_number_of_workers(calls, linked, tmp_path):
    run(calls, tmp_path / "out", workers=2)
    assert content(tmp_path / "out") == content(linked)


def test_a_second_run_listens_to_nothing(calls, linked, monkeypatch):
    from spklink.recognizers import mixture as gmm
    from spklink.sound.features import Cepstra

    before = content(linked)

    def refuse(*_, **__):
        raise AssertionError("this should have come from the cache")

    monkeypatch.setattr(Cepstra, "hear", refuse)
    monkeypatch.setattr(gmm, "statistics", refuse)
    monkeypatch.setattr(gmm, "train", refuse)
    run(calls, linked)
    assert content(linked) == before


def counted(monkeypatch):
    """Lists that grow with every recording heard and every mixture trained."""
    from spklink.recognizers.gmm_ubm import GmmUbm
    from spklink.sound.features import Cepstra

    heard, trained = [], []
    hear, learn = Cepstra.hear, GmmUbm.learn
    monkeypatch.setattr(Cepstra, "hear", lambda *a: heard.append(1) or hear(*a))
    monkeypatch.setattr(GmmUbm, "learn", lambda *a, **k: trained.append(1) or learn(*a, **k))
    return heard, trained


def test_new_calls_cost_only_themselves(calls, tmp_path, monkeypatch):
    rows = rows_of(calls / "conversations.csv")
    few = [tuple(row.values()) for row in rows[:-2]]
    write_table(calls / "few.csv", ["conversation", "audio", "participants"], few)
    run(calls, tmp_path / "out", table="few.csv")
    heard, trained = counted(monkeypatch)
    run(calls, tmp_path / "out")
    assert len(heard) == 2
    assert not trained
    run(calls, tmp_path / "out", retrain=True)
    assert len(heard) == 2
    assert len(trained) == 1


def test_claims_are_checked_and_never_used(calls, linked, tmp_path):
    table = read_conversations(calls / "conversations.csv")
    answer = rows_of(linked / "assignments.csv")
    sure = [a for a in answer if float(a["probability"]) > 0.9 and a["channel"] == "1"]
    assert len(sure) >= 3
    wrong = sure[0]
    other = next(
        n for n in table.names(table.index()[wrong["conversation"]]) if n != wrong["speaker"]
    )
    claims = [(a["conversation"], "1", a["speaker"]) for a in sure[1:]]
    claims.append((wrong["conversation"], "1", other))
    write_table(tmp_path / "claimed.csv", ["conversation", "channel", "speaker"], claims)
    found = run(calls, tmp_path / "out", claimed=tmp_path / "claimed.csv")
    suspects = rows_of(tmp_path / "out" / "suspects.csv")
    assert len(found.listening.suspects) == 1
    assert [s["conversation"] for s in suspects] == [wrong["conversation"]]
    assert suspects[0]["claimed"] == f"{other};{wrong['speaker']}"
    assert suspects[0]["suggested"] == f"{wrong['speaker']};{other}"
    # Somebody else than either may be there, too: the claim is wrong then as well.
    assert float(suspects[0]["probability"]) >= float(wrong["probability"]) - 1e-9
    same = (tmp_path / "out" / "assignments.csv").read_bytes()
    assert same == (linked / "assignments.csv").read_bytes()


@pytest.fixture
def damaged(calls, tmp_path) -> Path:
    """One recording is no sound, one channel of another is silent, a third says too little."""
    folder = tmp_path / "damaged"
    shutil.copytree(calls, folder)
    (folder / "0.wav").write_bytes(b"this is no sound")
    samples, rate = soundfile.read(folder / "1.wav", dtype="int16")
    samples[:, 1] = 0
    soundfile.write(folder / "1.wav", samples, rate)
    samples, rate = soundfile.read(folder / "2.wav", dtype="int16")
    samples[rate:, 0] = samples[rate:, 0] // 2000
    soundfile.write(folder / "2.wav", samples, rate)
    return folder


def test_bad_audio_stops_the_run_and_names_everything(damaged, tmp_path):
    with pytest.raises(SpklinkError) as caught:
        run(damaged, tmp_path / "out")
    text = str(caught.value)
    assert "row 2: c0: unreadable" in text
    assert "row 3: c1 channel 2: silent: nothing above idle noise (1.wav)" in text
    assert "--on-bad-audio skip" in text
    assert not (tmp_path / "out" / "run.json").exists()


def test_bad_audio_can_be_left_out(damaged, tmp_path):
    out = tmp_path / "out"
    run(damaged, out, on_bad_audio="skip")
    marks = {(s["conversation"], s["channel"]): s["mark"] for s in rows_of(out / "sides.csv")}
    assert marks["c0", "1"] == marks["c0", "2"] == marks["c1", "2"] == "bad audio"
    assert marks["c1", "1"] == ""
    assert marks["c2", "1"] == "too little speech"
    problems = rows_of(out / "problems.csv")
    assert ("c1", "2") in {(p["conversation"], p["channel"]) for p in problems}
    with np.load(out / "llrs.npz", allow_pickle=False) as arrays:
        bad = {0, 1, 3, 4}  # sides of c0, the silent one of c1, the quiet one of c2
        touched = np.isin(arrays["side_1"], list(bad)) | np.isin(arrays["side_2"], list(bad))
        assert (arrays["score"][touched] == 0.0).all()
        assert (arrays["score"][~touched] != 0.0).all()
    assert len(rows_of(out / "assignments.csv")) == 2 * len(PAIRS)


def test_background_speech_trains_instead_of_the_calls(calls, tmp_path):
    folder = tmp_path / "background"
    folder.mkdir()
    cast = make_voices(6, np.random.default_rng(77))
    for k in range(3):
        samples = call(cast[2 * k], cast[2 * k + 1], np.random.default_rng(k), 10.0)
        soundfile.write(folder / f"{k}.flac", samples[:, 0] if k else samples, RATE)
    out = tmp_path / "out"
    run(calls, out, background=folder)
    settled = [about for _, about in Store(out / "cache" / "recognizers").listed() if about]
    assert settled[0]["recipe"]["background"] is not None
    with pytest.raises(SpklinkError, match="no sound files"):
        run(calls, tmp_path / "none", background=tmp_path / "nothing-here")


def test_paper_preset_runs(calls, tmp_path):
    out = tmp_path / "out"
    run(calls, out, preset="paper", components=32)
    recipe = read_json(out / "run.json")["recognizer"]["recipe"]  # as a report reads it: strictly
    assert recipe["score"] == "dot"


def test_all_pairs_are_a_scores_file_for_assign(calls, tmp_path):
    out = tmp_path / "out"
    run(calls, out, all_pairs=True)
    sides = 2 * len(PAIRS)
    with np.load(out / "scores.npz", allow_pickle=False) as arrays:
        assert len(arrays["score"]) == sides * (sides - 1) // 2


def test_tiny_databases_get_an_answer_that_says_it_is_not_calibrated(calls, tmp_path):
    rows = [tuple(row.values()) for row in rows_of(calls / "conversations.csv")[:3]]
    write_table(calls / "tiny.csv", ["conversation", "audio", "participants"], rows)
    found = run(calls, tmp_path / "out", table="tiny.csv")
    assert found.calibrated.learned is None
    assert any("not calibrated" in note for note in found.notes)
    assert json.loads((tmp_path / "out" / "calibration.json").read_text())["kind"] == "default"


def test_calls_without_audio_are_named(write, tmp_path):
    table = write("c.csv", "conversation,audio,participants\nx,,a;b\n")
    with pytest.raises(SpklinkError, match=r"row 2: conversation 'x' names no audio"):
        link(table, tmp_path / "out")


def test_bad_settings(calls):
    for bad, message in (
        ({"preset": "best"}, "preset: 'best'"),
        ({"components": 0}, "at least 1"),
        ({"recognizer": "ivector"}, "recognizer: 'ivector'"),
        ({"metod": "auto"}, "did you mean 'method'"),
    ):
        with pytest.raises(SpklinkError, match=message):
            link(calls / "conversations.csv", **bad)


def command(calls: Path, out: Path) -> list[str]:
    words = [sys.executable, "-m", "spklink", "link", str(calls / "conversations.csv")]
    return [*words, "-o", str(out), "--components", "16", "--workers", "1", "--no-report"]


MOMENTS = {  # files of a run, and how many of them there are when it is killed
    "half is heard": ("cache/features/*.kept", len(PAIRS) // 2),
    "the recognizer is trained": ("cache/recognizers/*.kept", 1),
    "half is compared": ("cache/vectors/*/*.kept", len(PAIRS) // 2),
    "results are written": (".results.*", 1),
}


def test_killed_at_four_moments_ends_with_the_same_bytes(calls, tmp_path):
    """One run, killed in every stage; `make torture` has twenty kills at random moments."""
    clean, out = tmp_path / "clean", tmp_path / "killed"
    subprocess.run(command(calls, clean), check=True, capture_output=True)
    expected, kills = content(clean), 0
    for pattern, files in MOMENTS.values():
        kills += killed_when(command(calls, out), out, pattern, files)
        assert not (out / "run.json").exists() or content(out) == expected
    assert kills >= 3  # the last moment is so short that it can be missed
    subprocess.run(command(calls, out), check=True, capture_output=True)
    assert content(out) == expected


@pytest.mark.skipif("SPKLINK_TORTURE" not in os.environ, reason="takes minutes: make torture")
def test_killed_twenty_times_ends_with_the_same_bytes(calls, tmp_path):
    """Kills at random moments between 5 and 95 % of a run; every other one starts from nothing."""
    clean = tmp_path / "clean"
    begin = time.perf_counter()
    subprocess.run(command(calls, clean), check=True, capture_output=True)
    whole = time.perf_counter() - begin
    expected = content(clean)
    moments = random.Random(3)
    for k in range(10):
        out = tmp_path / f"killed{k}"
        for _ in range(2):
            process = subprocess.Popen(
                command(calls, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(moments.uniform(0.05, 0.95) * whole)
            process.kill()
            process.wait()
            if (out / "run.json").exists():
                assert content(out) == expected
        subprocess.run(command(calls, out), check=True, capture_output=True)
        assert content(out) == expected
        shutil.rmtree(out)


def test_the_command_in_the_report_gives_the_results_again(calls, tmp_path):
    """Run inside the folder of the results, as the report says; all paths lead somewhere."""
    out, known = tmp_path / "some where" / "out", tmp_path / "known channels.csv"
    write_table(known, ["conversation", "channel", "speaker"], [("c0", 1, "a")])
    run(calls, out, known=known, claimed=calls / "key.csv", min_speech=1.5, seed=3, all_pairs=True)
    again = provenance.command(json.loads((out / "run.json").read_text()))
    before = content(out)
    before.pop("run.json")
    assert "--known" in again
    assert "--all-pairs" in again
    for name in before:
        (out / name).unlink()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", f"{again} --no-report"], cwd=out, env=environment, check=True)
    after = content(out)
    after.pop("run.json")
    assert after == before


def test_results_stand_on_their_own(calls, linked):
    """Paths in the results lead to the recordings, and their hashes say which these are."""
    table = read_conversations(linked / "conversations.csv")
    sides = rows_of(linked / "sides.csv")
    for m, (name,) in enumerate(table.audio):
        file = linked / name
        assert file.resolve() == (calls / f"{m}.wav").resolve()
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert {s["sha256"] for s in sides if s["conversation"] == table.ids[m]} == {digest}


def test_every_recording_broken(calls, tmp_path):
    """Skipping bad audio goes on even where nothing is left: nothing is known, and that is said."""
    for k in range(len(PAIRS)):
        (tmp_path / f"{k}.wav").write_bytes(b"not sound")
    shutil.copy(calls / "conversations.csv", tmp_path)
    found = run(tmp_path, tmp_path / "out", on_bad_audio="skip")
    assert any("no side of any recording" in note for note in found.notes)
    rows = rows_of(tmp_path / "out" / "assignments.csv")
    assert {(r["speaker"], r["decision"]) for r in rows} == {("", "unusable")}
    assert all(0.4 < float(r["probability"]) < 0.5 for r in rows)  # either, or someone else
    assert len(rows_of(tmp_path / "out" / "problems.csv")) >= len(PAIRS)
    with pytest.raises(SpklinkError):
        run(tmp_path, tmp_path / "out")


def test_a_key_in_the_folder_changes_nothing(calls, linked, tmp_path):
    """The truth lies beside the table in `calls`; without it every byte is the same."""
    copy, out = tmp_path / calls.name, tmp_path / "somewhere" / "out"  # as far from each other
    shutil.copytree(calls, copy, ignore=shutil.ignore_patterns("key.csv"))
    run(copy, out)
    assert content(out) == content(linked)


@pytest.fixture(scope="module")
def many_calls(tmp_path_factory) -> Path:
    """Circles of three people, each pair calls twice: enough calls to compare twice."""
    folder = tmp_path_factory.mktemp("many")
    people = "abcdefghijklmnopqr"
    cast = dict(zip(people, make_voices(18, np.random.default_rng(6)), strict=True))
    circles = [people[k : k + 3] for k in range(0, len(people), 3)]
    pairs = [pair for some in circles for pair in itertools.combinations(some, 2)] * 2
    rows = []
    for k, (first, second) in enumerate(pairs):
        samples = call(cast[first], cast[second], np.random.default_rng(k), 5.0)
        soundfile.write(folder / f"{k}.wav", samples, RATE)
        rows.append((f"c{k}", f"{k}.wav", f"{first};{second}"))
    write_table(folder / "conversations.csv", ["conversation", "audio", "participants"], rows)
    return folder


def test_voices_compared_twice_give_the_same_bytes_anywhere(many_calls, tmp_path):
    """On any number of threads; and a saved calibration serves both comparisons."""
    small = {"min_speech": 0.5}
    found = run(many_calls, tmp_path / "one", **small)
    assert found.calibrated.first is not None
    run(many_calls, tmp_path / "two", workers=2, **small)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    again = run(
        many_calls,
        tmp_path / "three",
        cache=tmp_path / "one" / "cache",
        calibration=tmp_path / "one" / "calibration.json",
        **small,
    )
    assert again.calibrated.calibration == found.calibrated.calibration
    same = found.posterior.exchanged
    assert np.allclose(again.posterior.exchanged, same, atol=1e-6)
    once = run(many_calls, tmp_path / "four", cache=tmp_path / "one" / "cache", link_wccn=False)
    assert once.calibrated.first is None

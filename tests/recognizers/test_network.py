"""Networks: the same numbers as onnxruntime called plainly, for every form of input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import kaldi_native_fbank
import numpy as np
import onnxruntime
import pytest
import soundfile

from networks import BINS, WIDTH, filterbank_network, waveform_network
from spklink import SpklinkError, link, load, read_conversations, write_report
from spklink.recognizers.network import make
from spklink.recognizers.training import Trainer, prepare
from spklink.sound import embedded
from spklink.sound.listening import hear
from spklink.sound.waveform import Waveform
from spklink.worlds.voices import RATE, draw_session, make_voices, speak


def speech_of(table, tmp_path: Path):
    """The samples of every side, as the front end of samples has them."""
    plain = Waveform(rate=16000, widen=10, longest=120.0)
    return hear(table, plain, tmp_path / "plain", min_speech=1.0, skip_bad=False)


def kaldi(samples, window="hamming", scale=32768.0, mean=True):
    """A filterbank as everybody writes it down."""
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = window
    options.mel_opts.num_bins = BINS
    bank = kaldi_native_fbank.OnlineFbank(options)
    bank.accept_waveform(16000, (samples * np.float32(scale)).tolist())
    bank.input_finished()
    rows = np.array([bank.get_frame(t) for t in range(bank.num_frames_ready)])
    return rows - rows.mean(0) if mean else rows


def plainly(path: Path, give):
    """The vector of a side: onnxruntime, one piece after the other, averaged."""
    session = onnxruntime.InferenceSession(str(path))
    name = next(one.name for one in session.get_outputs() if one.name != "logits")
    found = []
    for feeds in give:
        [one] = session.run([name], feeds)
        found.append(one[0] / np.linalg.norm(one[0]))
    mean = np.mean(found, axis=0)
    return mean / np.linalg.norm(mean)


def forms(folder: Path):
    """Every form of network, and what it must be given of some samples."""

    def whole(samples):
        return [{"feats": kaldi(samples)[None].astype(np.float32)}]

    def turned(samples):
        rows = kaldi(samples)[None].transpose(0, 2, 1).astype(np.float32)
        return [{"audio_signal": rows, "length": np.array([rows.shape[2]])}]

    def fixed_frames(samples):
        rows = kaldi(samples).astype(np.float32)
        starts = list(range(0, len(rows) - 150 + 1, 150))
        starts += [len(rows) - 150] if starts[-1] + 150 < len(rows) else []
        return [{"feats": rows[None, at : at + 150]} for at in starts]

    def wave(samples):
        return [{"wave": samples[None]}]

    def flat(samples):
        return [{"wave": samples}]

    def channel(samples):
        return [{"wave": samples[None, None]}]

    def windows(samples):
        loud = samples * (10**-1.5 / np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
        starts = list(range(0, len(samples) - 25600 + 1, 12800))
        starts += [len(samples) - 25600] if starts[-1] + 25600 < len(samples) else []
        return [{"wave": loud[None, at : at + 25600].astype(np.float32)} for at in starts]

    level = {"spklink.level": "-30", "spklink.hop_seconds": "0.8"}
    tall = filterbank_network(folder / "tall.onnx", turned=True, length=True)
    tall.with_suffix(".toml").write_text(
        'like = "wespeaker"\nlayout = "bins, frames"\noutput_name = "embs"\n'
        'window = "hamming"\nmel = "htk"\nlowest_hz = 20\nremove_offset = true\n'
    )
    return {
        "filterbank": (filterbank_network(folder / "plain.onnx"), whole),
        "filterbank turned, with lengths": (tall, turned),
        "filterbank one at a time": (filterbank_network(folder / "one.onnx", batch=1), whole),
        "filterbank of fixed length": (
            filterbank_network(folder / "fixed.onnx", frames=150),
            fixed_frames,
        ),
        "waveform": (waveform_network(folder / "wave.onnx"), wave),
        "waveform without batch": (waveform_network(folder / "flat.onnx", rank=1), flat),
        "waveform of one channel": (waveform_network(folder / "channel.onnx", rank=3), channel),
        "waveform of fixed length and level": (
            waveform_network(folder / "windows.onnx", samples=25600, **level),
            windows,
        ),
    }


FORMS = [
    "filterbank",
    "filterbank turned, with lengths",
    "filterbank one at a time",
    "filterbank of fixed length",
    "waveform",
    "waveform without batch",
    "waveform of one channel",
    "waveform of fixed length and level",
]


@pytest.mark.parametrize("form", FORMS)
def test_as_onnxruntime_called_plainly(form, calls, tmp_path):
    table = read_conversations(calls / "conversations.csv")
    path, give = forms(tmp_path)[form]
    recognizer = make(path)
    sound = hear(table, recognizer.front_end, tmp_path / "f", min_speech=1.0, skip_bad=False)
    trained = prepare(recognizer, sound, Trainer(tmp_path))
    samples = speech_of(table, tmp_path)
    for side in range(6):
        expected = plainly(path, give(samples.array(side)))
        found = trained.vectors[trained.row[side]]
        assert found.shape == (WIDTH,)
        assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(
    "form", ["filterbank of fixed length", "waveform of fixed length and level"]
)
def test_batches_change_nothing(form, calls, tmp_path, monkeypatch):
    path, _ = forms(tmp_path)[form]
    front_end, files = make(path).front_end, (calls / "0.wav",)
    one, _ = front_end.hear(files, 2)
    assert len(one[0].array) > 2
    monkeypatch.setattr(embedded, "AT_ONCE", 1)
    two, _ = front_end.hear(files, 2)
    for a, b in zip(one, two, strict=True):
        assert a.sound == b.sound
        assert np.abs(a.array - b.array).max() < 1e-5


def test_long_sides_in_pieces_of_one_length(tmp_path):
    path = filterbank_network(tmp_path / "m.onnx", **{"spklink.piece_seconds": "2"})
    front_end = make(path).front_end
    rng = np.random.default_rng(0)
    samples = (0.1 * rng.standard_normal(7 * 16000)).astype(np.float32)
    network = embedded.open_network(path)
    found = front_end.vectors(samples, network)
    rows = kaldi(samples).astype(np.float32)  # 698 frames: four pieces of 174
    assert len(found) == 4
    starts = [k * len(rows) // 4 for k in range(4)]
    for k, at in enumerate(starts):
        expected = plainly(path, [{"feats": rows[None, at : at + len(rows) // 4]}])
        assert np.abs(found[k] - expected).max() < 1e-5


def test_short_sides_are_said_again(tmp_path):
    path = waveform_network(tmp_path / "m.onnx", samples=25600)
    front_end, short = make(path).front_end, np.ones(400, np.float32) * 0.1
    found = front_end.vectors(short, embedded.open_network(path))
    assert found.shape == (1, WIDTH)
    assert np.isfinite(found).all()


def test_any_number_of_workers_gives_the_same_bytes(calls, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    names = ("assignments.csv", "scores.npz", "sides.csv", "cliques.csv")
    for workers in (1, 2):
        link(calls / "conversations.csv", tmp_path / f"{workers}", recognizer=path, workers=workers)
    for name in names:
        one, two = (tmp_path / k / name for k in "12")
        assert one.read_bytes() == two.read_bytes(), name
    run = json.loads((tmp_path / "1" / "run.json").read_text())
    assert run["recognizer"]["name"] == "m.onnx"
    assert run["options"]["recognizer"] == "../m.onnx"
    read = load(tmp_path / "1")
    assert read.options["recognizer"] == tmp_path / "1" / ".." / "m.onnx"
    page = write_report(tmp_path / "1").read_text()
    assert "--recognizer ../m.onnx" in page
    assert "the command line does not know it" not in page


def test_diarized_tracks(tmp_path):
    """Two voices in turn on one channel: each track has the vectors of its own turns."""
    rng = np.random.default_rng(1)
    one, two = make_voices(2, rng)
    parts = [speak(voice, draw_session(rng), 4.0, rng)[: 4 * RATE] for voice in (one, two, one)]
    soundfile.write(tmp_path / "m.wav", np.concatenate(parts) / 20, RATE)
    turns = ((0, 0.0, 4.0), (1, 4.0, 8.0), (0, 8.0, 12.0))
    front_end = make(filterbank_network(tmp_path / "m.onnx")).front_end
    sides, _ = front_end.hear((tmp_path / "m.wav",), 2, turns=turns)
    plain = Waveform(rate=16000, widen=10, longest=120.0)
    samples, _ = plain.hear((tmp_path / "m.wav",), 2, turns=turns)
    for side, heard in zip(sides, samples, strict=True):
        expected = plainly(front_end.network, [{"feats": kaldi(heard.array)[None].astype("f")}])
        assert np.abs(side.array[0] - expected).max() < 1e-5


def test_the_cache_holds_vectors_not_samples(calls, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    link(calls / "conversations.csv", tmp_path / "out", recognizer=path, workers=1)
    kept = list((tmp_path / "out" / "cache" / "features").iterdir())
    assert len(kept) == 14
    assert max(one.stat().st_size for one in kept) < 4096


def test_a_changed_setting_is_another_recognizer(calls, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    one = make(path)
    path.with_suffix(".toml").write_text('window = "povey"\n')
    assert make(path).fingerprint != one.fingerprint
    path.with_suffix(".toml").unlink()
    assert make(path).fingerprint == one.fingerprint
    filterbank_network(path, made="twice")
    assert make(path).fingerprint != one.fingerprint


def test_a_copy_is_seen_though_only_vectors_are_kept(calls, tmp_path):
    text = (calls / "conversations.csv").read_text()
    for name in calls.glob("*.wav"):
        (tmp_path / name.name).write_bytes(name.read_bytes())
    (tmp_path / "t.csv").write_text(text + "again,0.wav,a;b\n")
    path = filterbank_network(tmp_path / "m.onnx")
    with pytest.raises(SpklinkError, match="twice: the same sound as channel 1"):
        link(tmp_path / "t.csv", recognizer=path, workers=1)


def test_numbers_that_are_none_mark_the_side(calls, tmp_path, monkeypatch):
    front_end = make(filterbank_network(tmp_path / "m.onnx")).front_end
    usual = embedded.embed
    monkeypatch.setattr(embedded, "embed", lambda *given: np.full_like(usual(*given), np.nan))
    sides, problems = front_end.hear((calls / "0.wav",), 2)
    assert [problem.kind for problem in problems] == ["network", "network"]
    assert all(problem.fatal for problem in problems)
    assert [len(side.array) for side in sides] == [0, 0]


def test_vectors_that_are_all_alike_are_refused(tmp_path):
    recognizer = make(filterbank_network(tmp_path / "m.onnx"))
    vectors = np.ones((8, WIDTH), np.float32) / WIDTH**0.5
    with pytest.raises(SpklinkError, match=r"m\.onnx: gives the same vector for all 8 sides"):
        recognizer.centred(vectors, np.ones(8, bool))
    usable = np.arange(8) < 1
    assert recognizer.centred(vectors, usable).mean is not None


def test_the_file_may_not_change_meanwhile(calls, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    front_end = make(path).front_end
    filterbank_network(path, made="later")
    with pytest.raises(SpklinkError, match="changed while it was used"):
        front_end.hear((calls / "0.wav",), 2)


def test_options_of_the_mixture_are_refused(tmp_path, calls):
    path = filterbank_network(tmp_path / "m.onnx")
    with pytest.raises(SpklinkError, match="--components: a network has no Gaussians"):
        link(calls / "conversations.csv", recognizer=path, components=8)


@pytest.mark.parametrize(
    ("name", "width"),
    [("resnet34-voxceleb-256", 256), ("campplus-zhen-192", 192), ("ge2e-lstm-256-wave", 256)],
)
def test_published_networks(name, width, real_calls, published, tmp_path):
    """Two real calls of two people each: the same voice is closer than the other."""
    recognizer = make(published / f"{name}.onnx")
    assert recognizer.front_end.width == width
    table = read_conversations(real_calls / "conversations.csv")
    people = [tuple(table.names(m)) for m in range(len(table))]
    two = next((m, n) for m in range(420) for n in range(m) if people[m] == people[n])
    vectors = []
    for m in two:
        sides, _ = recognizer.front_end.hear((real_calls / table.audio[m][0],), 2)
        vectors.append(np.stack([recognizer.vector(side.array) for side in sides]))
    scores = vectors[0] @ vectors[1].T
    straight, crossed = scores.trace(), scores[0, 1] + scores[1, 0]
    assert abs(straight - crossed) > 0.3


def test_settings_can_be_replaced_in_a_program(tmp_path):
    front_end = make(filterbank_network(tmp_path / "m.onnx")).front_end
    other = replace(front_end, wants=replace(front_end.wants, window="povey"))
    assert other.key != front_end.key


def test_a_killed_run_goes_on_to_the_same_bytes(calls, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    words = [sys.executable, "-m", "spklink", "link", str(calls / "conversations.csv")]
    words += ["--recognizer", str(path), "--workers", "1", "--no-report", "-o"]
    kept = tmp_path / "killed" / "cache" / "features"
    killed = subprocess.Popen([*words, str(tmp_path / "killed")])
    while len(list(kept.glob("*.kept")) if kept.exists() else []) < 3 and killed.poll() is None:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    heard = {one.name: one.stat().st_mtime_ns for one in kept.glob("*.kept")}
    assert 3 <= len(heard) < 14
    for name in ("killed", "whole"):
        subprocess.run([*words, str(tmp_path / name)], check=True, capture_output=True)
    assert heard == {name: (kept / name).stat().st_mtime_ns for name in heard}, "heard again"
    for name in ("assignments.csv", "scores.npz", "sides.csv", "run.json"):
        one, two = (tmp_path / where / name for where in ("killed", "whole"))
        assert one.read_bytes() == two.read_bytes(), name

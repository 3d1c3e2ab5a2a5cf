"""A network that tells speech from pauses; and what is no speech though it is loud."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from networks import filterbank_network, speech_detector
from spklink import SpklinkError, link
from spklink.onnx_files import open_network
from spklink.recognizers.table import make_recognizer
from spklink.sound.chunks import CHUNK, find_speech
from spklink.sound.speech import DEFAULT, Framing
from spklink.sound.speech_network import speech_network
from spklink.sound.waveform import Waveform

RATE = 16000


def bursts(seconds, rng):
    """Noise that comes and goes, loud at other times on the two channels."""
    time = np.arange(int(seconds * RATE)) / RATE
    ups = [np.sin(2 * np.pi * 0.4 * time + phase) > 0.2 for phase in (0.0, 2.0)]
    made = [(0.001 + 0.1 * up) * rng.standard_normal(len(time)) for up in ups]
    return np.stack(made, axis=1)


def plainly(path, sound):
    """(blocks, tracks) what the network says, each track by itself."""
    network, found = open_network(path), []
    for track in sound.T.astype(np.float32):
        state, before, said = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
        track = np.pad(track, (0, -len(track) % 512))
        for block in track.reshape(-1, 512):
            given = np.concatenate([before, block])[None]
            feeds = {"input": given, "state": state, "sr": np.array(RATE)}
            one, state = network(feeds, "output", "stateN")
            said.append(one[0, 0])
            before = block[-64:]
        found.append(said)
    return np.array(found).T


@pytest.mark.parametrize("seconds", [0.5, 7.0, 10.05, 10.13, 25.3])
def test_as_the_network_called_plainly(seconds, tmp_path):
    path = speech_detector(tmp_path / "v.onnx")
    assert CHUNK * 160 == 10 * RATE  # some of these lengths end just after a chunk
    check(path, bursts(seconds, np.random.default_rng(3)), tmp_path)


@pytest.mark.parametrize("sizes", [[160], [511, 1, 513, 2], [40_000], [512]])
def test_pieces_of_any_length_are_heard_as_one(sizes, tmp_path):
    path = speech_detector(tmp_path / "v.onnx")
    sound = bursts(3.0, np.random.default_rng(5))[: 512 * 20 + 100]
    listener = speech_network(path).listener(2, Framing(rate=RATE))
    at, turn = 0, 0
    while at < len(sound):
        size = sizes[turn % len(sizes)]
        listener.add(sound[at : at + size].T.astype(np.float32))
        at, turn = at + size, turn + 1
    listener.masks([10, 10])
    assert np.abs(np.stack(listener.found) - plainly(path, sound)).max() < 1e-6


def test_the_published_detector(published, tmp_path):
    rng = np.random.default_rng(4)
    for name in ("silero_vad", "silero_vad_16k_op15"):
        check(published / f"{name}.onnx", bursts(12.0, rng), tmp_path)


def check(path, sound, tmp_path):
    soundfile.write(tmp_path / "s.wav", sound, RATE, subtype="FLOAT")
    detector = speech_network(path)
    kept = {
        name: find_speech((tmp_path / "s.wav",), 2, Framing(one, RATE), 3.0).kept
        for name, one in (("energy", DEFAULT), ("network", detector))
    }
    said = plainly(path, sound) > 0.5
    for k in range(2):
        middle = (np.arange(len(kept["energy"][k])) * 160 + 200) // 512
        expected = kept["energy"][k] & said[middle, k]
        assert np.array_equal(kept["network"][k], expected)


def test_the_key_knows_the_network_and_not_where_it_is(tmp_path):
    one = speech_network(speech_detector(tmp_path / "v.onnx"))
    two = speech_network(speech_detector(tmp_path / "w.onnx"))
    assert Waveform(one).key == Waveform(two).key
    assert Waveform(one).key != Waveform().key
    assert Waveform(one).key != Waveform(replace(one, threshold=0.6)).key
    assert str(tmp_path) not in str(Waveform(one).key)


def test_what_is_no_detector_is_refused(tmp_path, calls):
    other = filterbank_network(tmp_path / "m.onnx")
    with pytest.raises(SpklinkError, match=r"m\.onnx: no speech detector that can be used"):
        link(calls / "conversations.csv", speech=other)
    detector = speech_detector(tmp_path / "v.onnx")
    with pytest.raises(SpklinkError, match="a recognizer of your own says itself"):
        link(calls / "conversations.csv", speech=detector, recognizer=object())
    with pytest.raises(SpklinkError, match=r"hears 16 kHz only, and the recognizer 8 kHz"):
        make_recognizer("gmm-ubm", speech=str(detector))  # the rate it is told is nothing to it


def test_rates(published):
    assert make_recognizer("gmm-ubm", speech=str(published / "silero_vad.onnx"))
    with pytest.raises(SpklinkError, match="hears 16 kHz only"):
        make_recognizer("gmm-ubm", speech=str(published / "silero_vad_16k_op15.onnx"))


def test_link_with_a_detector(tmp_path, calls):
    path = filterbank_network(tmp_path / "m.onnx")
    options = {"recognizer": path, "workers": 1, "cache": tmp_path / "cache"}
    energy = link(calls / "conversations.csv", **options)
    found = link(
        calls / "conversations.csv", speech=speech_detector(tmp_path / "v.onnx"), **options
    )
    assert (found.listening.speech.seconds <= energy.listening.speech.seconds).all()
    assert (found.listening.speech.seconds < energy.listening.speech.seconds).any()


# --- loud, but no speech --------------------------------------------------------------------------


def problems(channel, tmp_path, detector=DEFAULT, rate=8000):
    """What is said of a channel beside one of speech-like bursts."""
    rng = np.random.default_rng(1)
    other = np.resize(bursts(60.0, rng)[::2, 0], len(channel))
    soundfile.write(tmp_path / "n.wav", np.stack([channel, other], axis=1), rate)
    found = find_speech((tmp_path / "n.wav",), 2, Framing(detector, rate))
    return {problem.kind for problem in found.problems if problem.channel == 0}, found.kept[0]


def test_noise_is_marked(tmp_path):
    rng = np.random.default_rng(0)
    noise = 0.05 * rng.standard_normal(68 * 8000)
    found, kept = problems(noise, tmp_path)
    assert found == {"steady"}
    assert not kept.any()
    drifting = noise * 10 ** (np.sin(np.arange(len(noise)) / 80000) / 2)  # up and down by 10 dB
    assert problems(drifting, tmp_path)[0] == {"steady"}


def test_music_is_marked(tmp_path):
    time = np.arange(8000 // 4) / 8000
    rng = np.random.default_rng(2)
    notes = [
        np.exp(-3 * time) * sum(np.sin(2 * np.pi * f * k * time) / k for k in (1, 2, 3))
        for f in rng.choice([220.0, 262.0, 294.0, 330.0, 392.0, 440.0], 240)
    ]
    found, kept = problems(0.1 * np.concatenate(notes), tmp_path)
    assert found == {"endless"}
    assert kept.any()  # a remark: nobody can be sure


def test_to_a_network_noise_is_no_speech(published, tmp_path):
    rng = np.random.default_rng(0)
    detector = speech_network(published / "silero_vad.onnx")
    _, kept = problems(0.05 * rng.standard_normal(68 * 8000), tmp_path, detector)
    assert kept.mean() < 0.01

"""What is understood of a network, from whom; and what is refused, in words that help."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from onnx import helper, numpy_helper

from networks import (
    BINS,
    WIDTH,
    filterbank_network,
    floats,
    integers,
    save,
    speech_detector,
    waveform_network,
    weights,
)
from spklink import SpklinkError, onnx_files
from spklink.recognizers.network import make
from spklink.recognizers.network_reading import understand
from spklink.recognizers.network_settings import SHIPPED, families


def settings_of(path):
    return understand(path).wants


def refused(path, words):
    with pytest.raises(SpklinkError, match=words) as error:
        make(path)
    assert str(error.value).startswith(str(path.with_suffix(""))), "the file is not named first"


def flat_network(path, inputs, outputs, vector=None, **more):
    """Any inputs, and a vector that has nothing to do with them."""
    nodes = [helper.make_node("Identity", ["c"], [one.name]) for one in outputs]
    nodes += [helper.make_node("Identity", [one.name], [f"u{k}"]) for k, one in enumerate(inputs)]
    return save(path, nodes, inputs, outputs, [vector or weights("c", 1, WIDTH)], **more)


# --- understood -----------------------------------------------------------------------------------


def test_what_the_shapes_say(tmp_path):
    plain = settings_of(filterbank_network(tmp_path / "a.onnx"))
    assert (plain.input, plain.layout, plain.bins) == ("filterbank", "frames, bins", BINS)
    assert plain.batch
    assert not plain.fixed_length
    assert not settings_of(filterbank_network(tmp_path / "b.onnx", batch=1)).batch
    fixed = settings_of(filterbank_network(tmp_path / "c.onnx", frames=200))
    assert fixed.fixed_length
    assert fixed.piece_seconds == pytest.approx(2.015)
    wave = settings_of(waveform_network(tmp_path / "d.onnx", samples=16000))
    assert (wave.input, wave.fixed_length, wave.piece_seconds) == ("waveform", True, 1.0)
    assert wave.scale == 1.0
    turned = settings_of(filterbank_network(tmp_path / "e.onnx", turned=True))
    assert turned.layout == "bins, frames"


def test_who_said_what(tmp_path):
    path = filterbank_network(tmp_path / "m.onnx", **{"sample_rate": "8000", "spklink.scale": "2"})
    path.with_suffix(".toml").write_text("longest_seconds = 20\n")
    found = understand(path)
    wants, said_by = found.wants, found.said_by
    assert (wants.rate, said_by["rate"]) == (8000, "metadata")
    assert (wants.scale, said_by["scale"]) == (2.0, "metadata")
    assert (wants.longest_seconds, said_by["longest_seconds"]) == (20.0, "m.toml")
    assert said_by["bins"] == "signature"
    assert said_by["window"] == "settings of wespeaker"  # feats → embs
    assert said_by["preemphasis"] == "default"


def test_nothing_known_is_assumed_and_said(tmp_path):
    inputs, outputs = [floats("x", "b", "t", BINS)], [floats("y", "b", WIDTH)]
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["m", "c"], ["y"]),
    ]
    found = understand(
        save(tmp_path / "m.onnx", nodes, inputs, outputs, [weights("c", BINS, WIDTH)])
    )
    assert found.family is None
    assert {key for key, who in found.said_by.items() if who == "assumed"} == {
        *("window", "scale", "normalise")
    }


def test_metadata_of_sherpa_onnx(tmp_path):
    about = {
        "framework": "3d-speaker",
        "normalize_samples": "1",
        "feature_normalize_type": "global-mean",
    }
    found = understand(filterbank_network(tmp_path / "m.onnx", **about))
    assert found.family is not None
    assert found.family.title == "3d-speaker"  # its own word counts more than the names of inputs
    assert (found.wants.scale, found.wants.normalise, found.wants.window) == (1.0, "mean", "povey")
    refused(
        filterbank_network(tmp_path / "n.onnx", feature_normalize_type="odd"),
        "metadata feature_normalize_type: 'odd' is not known",
    )


def test_titanet_is_known_by_its_inputs_and_outputs(tmp_path):
    found = understand(filterbank_network(tmp_path / "m.onnx", turned=True, length=True))
    assert found.family is not None
    assert found.family.title == "nemo"
    wants = found.wants
    assert (wants.length_name, wants.output_name, wants.mel) == ("length", "embs", "slaney")
    assert wants.normalise == "mean and deviation"


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_settings_say_where_and_under_which_licence(path):
    [one] = [family for family in families() if family.title == path.stem]
    assert one.models, "chosen by nothing"
    assert one.about["published"].startswith("https://")
    assert one.about["licence"]


def test_published_networks_are_recognised(published):
    known = {
        "resnet34-voxceleb-256": "wespeaker",
        "campplus-zhen-192": "3d-speaker",
        "ge2e-lstm-256-wave": "resemblyzer",
    }
    for name, title in known.items():
        found = understand(published / f"{name}.onnx")
        assert found.family is not None
        assert found.family.title == title
    for name in ("silero_vad", "silero_vad_16k_op15"):
        refused(published / f"{name}.onnx", "a speech detector, no speaker network: use --speech")


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("windo = 'hann'", r"m\.toml: windo: no such setting; there are input, rate"),
        ("window = 'round'", r"m\.toml: window: 'round' is not one of povey, hamming"),
        ("rate = '16000'", r"m\.toml: rate: '16000' is not a whole number"),
        ("rate = 16000.5", r"m\.toml: rate: 16000.5 is not a whole number"),
        ("batch = 1", r"m\.toml: batch: 1 is not true or false"),
        ("level = 3", r"m\.toml: level: 3.0 is not between -100 and 0"),
        ("bins = 40", r"m\.toml: bins: 40 in the layout \(frames, bins\), but input feats"),
        ("rate = 1\nbins = 1", r"m\.toml: 2 problems: rate: 1 .*; bins: 1 "),
        ("like = 'wispeaker'", r"m\.toml: like: 'wispeaker' is not one of 3d-speaker"),
        ("output_name = 'e'", "output_name: there is no output 'e'; there are embs"),
        ("input_name = 'e'", "input_name: there is no input 'e'; there are feats"),
        ("rate = = 1", r"m\.toml: cannot be read as TOML"),
    ],
)
def test_settings_files_are_read_strictly(text, words, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    path.with_suffix(".toml").write_text(text)
    refused(path, words)


def test_files_that_are_no_networks(tmp_path):
    path = tmp_path / "m.onnx"
    refused(path, "No such file")
    for content in (b"", b"plain text", b"\x00" * 1000, b"PK\x03\x04" + b"x" * 200):
        path.write_bytes(content)
        refused(path, "not an ONNX file, or a damaged one")
    whole = filterbank_network(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "not an ONNX file, or a damaged one|cannot open it")


def test_an_opset_that_nobody_knows(tmp_path):
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    inputs, outputs = [floats("x", "b", "t", BINS)], [floats("y", "b", "t", BINS)]
    path = save(tmp_path / "m.onnx", nodes, inputs, outputs, [], opset=99)
    refused(path, "made for opset 99 of ONNX, which this onnxruntime does not know")


def test_networks_that_are_no_speaker_networks(tmp_path):
    path = tmp_path / "m.onnx"
    refused(speech_detector(path), "a speech detector, no speaker network: use --speech")
    picture = [floats("x", "b", 3, 224, 224)]
    vector = [floats("y", 1, WIDTH)]
    refused(flat_network(path, picture, vector), "input 'x' has 4 axes; a recognizer takes")
    words = [integers("tokens", "b", "t")]
    refused(flat_network(path, words, vector), "no input of float numbers that could be sound")
    sound = floats("x", "b", "t", BINS)
    refused(flat_network(path, [sound, integers("mask", "b", "t")], vector), "nothing else")
    refused(flat_network(path, [sound], vector), "the same numbers for two different sounds")
    negative = numpy_helper.from_array(np.full((1, WIDTH), -2.0, np.float32), "c")
    refused(flat_network(path, [sound], vector, negative), "the same numbers for two different")
    two = [floats("a", 1, WIDTH), floats("b", 1, WIDTH)]
    refused(flat_network(path, [sound], two), r"which output is the vector\? There are a .*; b ")
    frames = [helper.make_node("MatMul", ["x", "c"], ["y"])]
    each = [floats("y", "b", "t", WIDTH)]
    path = save(path, frames, [sound], each, [weights("c", BINS, WIDTH)])
    refused(path, "a speaker network gives one vector each")
    refused(waveform_network(path, width=4), "output 'vector' has 4 numbers")


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    path = filterbank_network(tmp_path / "m.onnx")
    for module in ("onnxruntime", "kaldi_native_fbank"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, module, None)
            onnx_files._opened.cache_clear()
            with pytest.raises(SpklinkError, match=r'pip install "spklink\[onnx\]"'):
                make(path)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_says_what_was_understood(run, tmp_path):
    path = filterbank_network(tmp_path / "m.onnx")
    code, out, _ = run("recognizers", path)
    assert code == 0
    assert f"vectors of {WIDTH} numbers" in out
    assert "settings of wespeaker" in out
    code, out, _ = run("recognizers", path, "--json")
    found = json.loads(out)
    assert (found["width"], found["family"]) == (WIDTH, "wespeaker")
    assert found["settings"]["window"] == "hamming"
    code, _, err = run("recognizers", speech_detector(tmp_path / "v.onnx"))
    assert (code, err.count("\n")) == (2, 1)
    assert "use --speech" in err


def test_the_command_lists_what_there_is(run):
    code, out, _ = run("recognizers", "--json")
    listed = json.loads(out)
    assert code == 0
    assert [one["name"] for one in listed["recognizers"]] == ["gmm-ubm", "none"]
    assert {one["settings"] for one in listed["networks"]} == {one.title for one in families()}
    assert all(one["licence"] for one in listed["networks"])
    assert "wespeaker" in run("recognizers")[1]

"""Tiny networks with random weights, in every form that a recognizer may take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, BINS = 24, 80


def weights(name: str, *shape: int, seed: int = 0, scale: float = 0.3) -> onnx.TensorProto:
    made = np.random.default_rng(seed).standard_normal(shape) * scale
    return numpy_helper.from_array(made.astype(np.float32), name)


def save(path: Path, nodes, inputs, outputs, constants, *, opset: int = 17, **metadata) -> Path:
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    helper.set_model_props(model, metadata)
    path.write_bytes(model.SerializeToString())
    return path


def floats(name: str, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def integers(name: str, *shape):
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def filterbank_network(
    path: Path, *, turned: bool = False, length: bool = False, frames=None, batch="b", **metadata
) -> Path:
    """tanh(frames x W), mean and mean square over time, x V: of (batch, frames, bins)."""
    frames = "t" if frames is None else frames
    shape = (batch, BINS, frames) if turned else (batch, frames, BINS)
    sound = "audio_signal" if length else "feats"
    nodes = []
    if turned:
        nodes.append(helper.make_node("Transpose", [sound], ["rows"], perm=[0, 2, 1]))
    nodes += [
        helper.make_node("MatMul", ["rows" if turned else sound, "w"], ["hidden"]),
        helper.make_node("Tanh", ["hidden"], ["bent"]),
        helper.make_node("Mul", ["bent", "bent"], ["square"]),
        helper.make_node("ReduceMean", ["bent"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("ReduceMean", ["square"], ["power"], axes=[1], keepdims=0),
        helper.make_node("Concat", ["mean", "power"], ["pooled"], axis=1),
        helper.make_node("MatMul", ["pooled", "v"], ["raw"]),
    ]
    inputs, out = [floats(sound, *shape)], "embs"
    if length:  # the vector depends on it, so that a wrong one is seen
        inputs.append(integers("length", batch))
        nodes += [
            helper.make_node("Cast", ["length"], ["long"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["long", "one"], ["column"]),
            helper.make_node("Div", ["column", "thousand"], ["share"]),
            helper.make_node("Add", ["raw", "share"], [out]),
            helper.make_node("MatMul", ["raw", "classes"], ["logits"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["raw"], [out]))
    constants = [weights("w", BINS, 16), weights("v", 32, WIDTH, seed=1)]
    outputs = [floats(out, batch, WIDTH)]
    if length:
        constants += [
            numpy_helper.from_array(np.array([1], np.int64), "one"),
            numpy_helper.from_array(np.array([1000.0], np.float32), "thousand"),
            weights("classes", WIDTH, 5, seed=2),
        ]
        outputs = [floats("logits", batch, 5), *outputs]
    return save(path, nodes, inputs, outputs, constants, **metadata)


def waveform_network(path: Path, *, samples=None, rank: int = 2, width=WIDTH, **metadata) -> Path:
    """|filters| of the samples, mean over time: of (batch, samples)."""
    axes = {1: (), 2: ("b",), 3: ("b", 1)}[rank]
    shape = (*axes, "n" if samples is None else samples)
    nodes = [
        helper.make_node("Reshape", ["wave", "signal"], ["line"]),
        helper.make_node("Conv", ["line", "filters"], ["filtered"], strides=[40]),
        helper.make_node("Abs", ["filtered"], ["loud"]),
        helper.make_node("ReduceMean", ["loud"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("MatMul", ["mean", "v"], ["vector"]),
    ]
    signal = {1: [1, 1, -1], 2: [0, 1, -1], 3: [0, 1, -1]}[rank]
    constants = [
        numpy_helper.from_array(np.array(signal, np.int64), "signal"),
        weights("filters", 32, 1, 160, seed=3),
        weights("v", 32, width, seed=4),
    ]
    if rank == 2:  # 0 copies the first axis; the second of (batch, 1, samples) is new
        nodes[0] = helper.make_node("Unsqueeze", ["wave", "one"], ["line"])
        constants[0] = numpy_helper.from_array(np.array([1], np.int64), "one")
    return save(
        path, nodes, [floats("wave", *shape)], [floats("vector", "b", width)], constants, **metadata
    )


def speech_detector(path: Path) -> Path:
    """Looks like Silero's: says how loud it is, the first samples most of all, and remembers."""
    nodes = [
        helper.make_node("Mul", ["input", "input"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["power"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["power", "gain"], ["high"]),
        helper.make_node("Slice", ["input", "zero", "one", "one", "one"], ["first"]),
        helper.make_node("ReduceMean", ["state"], ["before"], axes=[0, 2], keepdims=0),
        helper.make_node("Unsqueeze", ["before", "one"], ["column"]),
        helper.make_node("Sum", ["high", "first", "column"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["output"]),
        helper.make_node("Unsqueeze", ["first", "zero"], ["layer"]),
        helper.make_node("Mul", ["state", "half"], ["faded"]),
        helper.make_node("Add", ["faded", "layer"], ["stateN"]),
        helper.make_node("Identity", ["sr"], ["unused"]),
    ]
    inputs = [floats("input", "n", "s"), floats("state", 2, "n", 128), integers("sr")]
    outputs = [floats("output", "n", 1), floats("stateN", 2, "n", 128)]
    constants = [
        numpy_helper.from_array(np.array(1e3, np.float32), "gain"),
        numpy_helper.from_array(np.array(0.5, np.float32), "half"),
        numpy_helper.from_array(np.array([0], np.int64), "zero"),
        numpy_helper.from_array(np.array([1], np.int64), "one"),
    ]
    return save(path, nodes, inputs, outputs, constants)

"""Networks in ONNX files that anybody may have made: opened by onnxruntime, asked what they take.

Whatever is wrong with a file is one error that names it. A network that is open stays open in its
process, whoever asks for it: it runs on the thread that asks, so several threads or processes side
by side give the same numbers as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.tables import sha256

EXTRA = 'pip install "spklink[onnx]"'
BESIDE = (".data", "_data")  # endings, after the name of the model, of the weights of large ones
FLOAT, INTEGERS = "tensor(float)", ("tensor(int64)", "tensor(int32)")
_OPSET = re.compile(r"[Oo]pset (\d+)")


@dataclass(frozen=True)
class Tensor:
    """An input or an output: its name, its type, its shape with None where it is free."""

    name: str
    kind: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        sizes = ", ".join("any" if size is None else str(size) for size in self.shape)
        return f"{self.name} ({sizes}) {self.kind.removeprefix('tensor(').removesuffix(')')}"


@dataclass(frozen=True)
class Signature:
    """What a network takes and gives, and what its maker wrote into the file."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: dict[str, str]


class Network:
    """A network that is open."""

    def __init__(self, path: Path, session: Any) -> None:
        self.path, self._session = path, session
        self.signature = Signature(
            tuple(_tensor(one) for one in session.get_inputs()),
            tuple(_tensor(one) for one in session.get_outputs()),
            dict(session.get_modelmeta().custom_metadata_map),
        )

    def __call__(self, feeds: dict[str, NDArray[Any]], *outputs: str) -> list[NDArray[Any]]:
        """These outputs, of these inputs."""
        try:
            found: list[NDArray[Any]] = self._session.run(list(outputs), feeds)
        except Exception as error:  # onnxruntime has a class an error, all without a base
            shapes = ", ".join(f"{name} {list(one.shape)}" for name, one in feeds.items())
            raise SpklinkError(
                f"{self.path}: the network fails when it is given {shapes}: {_first_line(error)}"
            ) from None
        return found


def needed(module: str) -> ModuleType:
    """A module of the extra."""
    try:
        return import_module(module)
    except ImportError:
        name = module.replace("_", "-")
        raise SpklinkError(f"networks need {name}, which is not installed: {EXTRA}") from None


def network_hash(path: Path) -> str:
    """The hash of a network, weights that lie beside it included."""
    beside = [path.with_name(path.name + ending) for ending in BESIDE]
    try:
        return "+".join(sha256(one) for one in (path, *beside) if one == path or one.exists())
    except OSError as error:
        raise SpklinkError(f"{path}: {error.strerror or error}; give an .onnx file") from None


def open_network(path: Path, expected: str = "") -> Network:
    """The network of a file, which must be the expected one where a hash is given."""
    needed("onnxruntime")
    found = network_hash(path)
    if expected and found != expected:
        raise SpklinkError(f"{path}: the file changed while it was used; run again")
    return _opened(path, found)


@cache
def _opened(path: Path, found: str) -> Network:
    """One session a file and process; `found` tells it from what had the same name before."""
    runtime = needed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what matters is raised, and said by us
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above
        raise SpklinkError(f"{path}: {_why(error)}") from None
    return Network(path, session)


def _why(error: Exception) -> str:
    """What is wrong with a file that onnxruntime does not open."""
    text, kind = str(error), type(error).__name__
    opset = _OPSET.search(text)
    if opset is not None and ("guarantees" in text or "under development" in text):
        return (
            f"made for opset {opset[1]} of ONNX, which this onnxruntime does not know; install a "
            "newer onnxruntime, or export the network for an older opset"
        )
    if kind == "InvalidProtobuf" or "No graph was found" in text:
        return "not an ONNX file, or a damaged one"
    return f"onnxruntime cannot open it: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__


def _tensor(one: Any) -> Tensor:
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in one.shape)
    return Tensor(one.name, one.type, shape)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length one."""
    length = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(length, 1e-12), np.float32)

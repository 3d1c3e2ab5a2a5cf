"""Which recognizers there are; each is loaded when it is asked for.

A new one is a module of this folder with a function `make` that takes its options, and a line here.
Any other name is that of an .onnx file.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spklink.errors import SpklinkError

if TYPE_CHECKING:
    from spklink.recognizers.recognizer import Recognizer

RECOGNIZERS = {"gmm-ubm": "gmm_ubm"}  # name → module


def make_recognizer(name: str, **options: Any) -> Recognizer:
    """A recognizer by its name, or that of a network by its file; the options are its own."""
    if name in RECOGNIZERS:
        made: Recognizer = import_module(f"{__package__}.{RECOGNIZERS[name]}").make(**options)
        return made
    if not is_network(name):
        near = get_close_matches(name, RECOGNIZERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        there = ", ".join(RECOGNIZERS)
        raise SpklinkError(f"recognizer: {name!r} is not one of {there}, nor an .onnx file{hint}")
    if options.get("components") is not None:
        raise SpklinkError("--components: a network has no Gaussians; leave it out")
    network: Recognizer = import_module(f"{__package__}.network").make(
        name, speech=options.get("speech")
    )
    return network


def is_network(name: str) -> bool:
    """Whether a name is that of a network's file."""
    return name.lower().endswith(".onnx")

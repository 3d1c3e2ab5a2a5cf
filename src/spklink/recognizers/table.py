"""Which recognizers there are; each is loaded when it is asked for.

A new one is a module of this folder with a function `make` that takes its options, and a line here.
Any other name is that of an .onnx file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spklink.errors import SpklinkError

if TYPE_CHECKING:
    from spklink.recognizers.recognizer import Recognizer

ENERGY = "energy"
RECOGNIZERS = {"gmm-ubm": "gmm_ubm", "none": "none"}  # name → module


def make_recognizer(name: str, **options: Any) -> Recognizer:
    """A recognizer by its name, or that of a network by its file; the options are its own, and
    `speech`: what tells speech from pauses, where that is not its own energy detector."""
    options["speech"] = _detector(options.pop("speech", None))
    if name in RECOGNIZERS:
        if options["speech"] is None:
            del options["speech"]  # it need not know of it
        made = import_module(f"{__package__}.{RECOGNIZERS[name]}").make(**options)
    elif is_network(name):
        if options.get("components") is not None:
            raise SpklinkError("--components: a network has no Gaussians; leave it out")
        made = import_module(f"{__package__}.network").make(name, speech=options["speech"])
    else:
        there = ", ".join(RECOGNIZERS)
        raise SpklinkError(f"recognizer: {name!r} is not one of {there}, nor a file .onnx")
    if options.get("speech") is not None:
        from spklink.sound.speech_network import check_rate

        check_rate(made.front_end.detector, made.front_end.rate)
    found: Recognizer = made
    return found


def _detector(speech: str | None) -> Any:
    """The detector in a file; None: the recognizer's own."""
    if speech is None or speech == ENERGY:
        return None
    from spklink.sound.speech_network import speech_network

    return speech_network(speech)


def is_network(name: str) -> bool:
    """Whether a name is that of a network's file."""
    return name.lower().endswith(".onnx")

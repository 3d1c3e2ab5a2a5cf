"""Which recognizers there are; each is loaded when it is asked for.

A new one is a module of this folder with a function `make` that takes its options, and a line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spklink.errors import SpklinkError

if TYPE_CHECKING:
    from spklink.recognizers.recognizer import Recognizer

RECOGNIZERS = {"gmm-ubm": "gmm_ubm", "none": "none"}  # name → module


def make_recognizer(name: str, **options: Any) -> Recognizer:
    """A recognizer by its name; the options are its own."""
    if name not in RECOGNIZERS:
        raise SpklinkError(f"recognizer {name!r} is not one of {', '.join(RECOGNIZERS)}")
    made: Recognizer = import_module(f"{__package__}.{RECOGNIZERS[name]}").make(**options)
    return made

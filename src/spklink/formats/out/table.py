"""The formats that results can be written in; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

FORMATS = {  # name → what it is for
    "kaldi": "a data folder of Kaldi, a recording a side",
    "lhotse": "manifests of Lhotse: recordings and supervisions",
    "rttm": "RTTM, one file",
    "textgrid": "Praat, a TextGrid a conversation, a tier a person",
    "elan": "ELAN, an .eaf a conversation, a tier a person",
    "ctm": "CTM with speakers, one file",
    "nist": "tables in the manner of NIST's evaluations: key, enrolment, trials",
    "parquet": "one table of all segments",
    "stm": "STM, one file",
}


def names() -> tuple[str, ...]:
    return tuple(FORMATS)


def writer(name: str) -> Callable[..., Any]:
    """The function that writes a format into a folder."""
    return import_module(f"spklink.formats.out.{name}").write  # type: ignore[no-any-return]

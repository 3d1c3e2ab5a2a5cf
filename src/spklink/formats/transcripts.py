"""Turns as JSON: what WhisperX and AWS Transcribe write, with names in place of their labels.

WhisperX    {"segments": [{"start": 0.5, "end": 2.1, "speaker": "ann", …}, …]}
Transcribe  {"results": {"speaker_labels": {"segments": [
             {"start_time": "0.5", "end_time": "2.1", "speaker_label": "ann", …}, …]}}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spklink.errors import SpklinkError
from spklink.formats.turn import Turn, seconds, stem_of, unpacked
from spklink.json_files import json_in
from spklink.tables import Content

WHISPERX = {"segments": [{"start": float, "end": float, "speaker?": (str, None)}]}
TRANSCRIBE = {
    "results": {
        "speaker_labels": {
            "segments": [
                {"start_time": (str, float), "end_time": (str, float), "speaker_label": str}
            ]
        }
    }
}


def read(content: Content) -> Iterator[Turn | str]:
    """The turns; segments without a speaker are nobody's."""
    name, data = stem_of(content), unpacked(content)
    found = json_in(data, content.path)
    if isinstance(found, dict) and "segments" in found:
        found = json_in(data, content.path, WHISPERX)["segments"]
        keys = "start", "end", "speaker"
    elif isinstance(found, dict) and "results" in found:
        found = json_in(data, content.path, TRANSCRIBE)["results"]["speaker_labels"]["segments"]
        keys = "start_time", "end_time", "speaker_label"
    else:
        raise SpklinkError(
            f"{content.path}: neither `segments` (WhisperX) nor `results` (AWS Transcribe) in it"
        )
    for number, one in enumerate(found, start=1):
        if one.get(keys[2]):
            yield _turn(name, one, keys, number)


def _turn(name: str, one: dict[str, Any], keys: tuple[str, str, str], number: int) -> Turn:
    start, end = (seconds(str(one[key])) for key in keys[:2])
    return Turn(name, str(one[keys[2]]).strip(), start, end, f"segment {number}")

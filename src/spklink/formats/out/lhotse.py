"""Manifests of Lhotse: recordings.jsonl.gz and supervisions.jsonl.gz.

Channels count from 0. A recording of several files has a source a channel; diarized tracks are all
in channel 0. The probability is in `custom` of a supervision.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spklink.errors import SpklinkError
from spklink.formats.out.labelled import (
    Header,
    Labelled,
    Recording,
    jsonable,
    require_files,
    require_headers,
)


def write(labelled: Labelled, folder: Path) -> None:
    require_files(labelled, "lhotse")
    require_headers(labelled, "lhotse")
    every = map(_recording, labelled.recordings())
    _write(folder / "recordings.jsonl.gz", every)
    _write(folder / "supervisions.jsonl.gz", _supervisions(labelled))


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """The same rows give the same bytes: no date, no name."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _recording(one: Recording) -> dict[str, Any]:
    headers = [header for header in one.headers if header is not None]
    first = headers[0]
    if any(header.rate != first.rate for header in headers):
        raise SpklinkError(
            f"{one.files[0]} and the other files of conversation {one.id!r} differ in their rate, "
            "which Lhotse cannot say; resample them"
        )
    samples = min(header.samples for header in headers)  # what all files have
    return {
        "id": one.id,
        "sources": [
            {"type": "file", "channels": _channels(one, k, header), "source": file}
            for k, (file, header) in enumerate(zip(one.files, headers, strict=True))
        ],
        "sampling_rate": first.rate,
        "num_samples": samples,
        "duration": samples / first.rate,
        "channel_ids": sorted({c for k, h in enumerate(headers) for c in _channels(one, k, h)}),
    }


def _channels(one: Recording, file: int, header: Header) -> list[int]:
    return [file] if len(one.files) > 1 else list(range(header.channels))


def _supervisions(labelled: Labelled) -> Iterator[dict[str, Any]]:
    for one in labelled.recordings():
        last = _recording(one)["duration"]
        channels = [h.channels for h in one.headers if h is not None]
        for side in one.sides:
            every = list(range(channels[0])) if one.mixed and channels[0] > 1 else 0
            for number, (start, end) in enumerate(side.times.tolist(), start=1):
                begin, lasts = start / 1000, min(end / 1000, last) - start / 1000
                if lasts <= 0:
                    continue  # after the end of the shortest file
                yield {
                    "id": f"{one.id}-{side.track + 1}-{number:04d}",
                    "recording_id": one.id,
                    "start": begin,
                    "duration": round(lasts, 6),
                    "channel": every if one.mixed else side.track,
                    "speaker": side.speaker,
                    "custom": jsonable(side),
                }

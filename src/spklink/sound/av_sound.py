"""Sound that FFmpeg decodes, through PyAV: m4a, mp4, 3gp, webm, amr, wma and others, in blocks.

The first sound stream of a file is taken, at its own rate and with its own channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
LOCKED = (b"drms", b"enca")  # boxes of MP4 files whose sound is encrypted; each has a `sinf`
LOOKED = 1 << 22  # bytes at either end of a file in which they are looked for
LEAST = 0.98  # of the length that a container tells: it counts what coders put before and behind


class AvSound:
    """A sound file as `soundfile` opens one, as far as it is used here."""

    format, extra_info = "FFMPEG", ""

    def __init__(self, path: Path) -> None:
        """A ValueError says why there is no sound."""
        if _locked(path):
            raise ValueError("encrypted (DRM); no program but its own can play it")
        try:
            self._container = av.open(str(path), metadata_errors="ignore")
        except (av.FFmpegError, ValueError) as error:
            raise ValueError(_said(error)) from None
        streams = self._container.streams.audio
        if not streams:
            self.close()
            raise ValueError("no sound in it")
        self._stream = streams[0]
        self._stream.codec_context.thread_type = "NONE"  # the same blocks on any machine
        self.samplerate = int(self._stream.rate or 0)
        self.channels = int(self._stream.codec_context.layout.nb_channels)
        self.frames = self._promised()
        self._blocks = self._decoded()
        self._held: list[Samples] = []

    def _promised(self) -> int:
        """Samples that it has at least."""
        stream, seconds = self._stream, 0.0
        if stream.duration is not None and stream.time_base is not None:
            seconds = float(stream.duration * stream.time_base)
        elif self._container.duration is not None:
            seconds = self._container.duration / av.time_base
        return max(0, int((LEAST * seconds - 0.5) * self.samplerate)) if seconds else 1 << 62

    def _decoded(self) -> Iterator[Samples]:
        """(samples, channels) packets one after the other; a damaged one ends it."""
        resampler = av.AudioResampler(format="fltp")
        try:
            for frame in self._container.decode(self._stream):
                for part in resampler.resample(frame):
                    yield np.asarray(part.to_ndarray().T, np.float32)
        except av.FFmpegError:
            return

    def read(self, frames: int, dtype: str = "float32", *, always_2d: bool = True) -> Samples:
        """So many samples, fewer at the end."""
        waiting = sum(map(len, self._held))
        while waiting < frames and (block := next(self._blocks, None)) is not None:
            if block.shape[1] == self.channels:
                self._held.append(block)
                waiting += len(block)
        every = np.concatenate([np.zeros((0, self.channels), np.float32), *self._held])
        self._held = [every[frames:]]
        return np.array(every[:frames], np.float32, order="C")

    def close(self) -> None:
        self._container.close()

    def __enter__(self) -> AvSound:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _locked(path: Path) -> bool:
    """Whether an MP4 file says that its sound is encrypted."""
    with path.open("rb") as file:
        begin = file.read(LOOKED)
        file.seek(max(0, path.stat().st_size - LOOKED))
        end = file.read(LOOKED)
    if begin[4:8] != b"ftyp":
        return False
    return any(one in part and b"sinf" in part for one in LOCKED for part in (begin, end))


def _said(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return "damaged, or cut off before its end" if "Invalid data" in text else text

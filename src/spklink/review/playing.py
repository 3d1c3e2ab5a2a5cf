"""A recording as a WAV file that nobody has to write: every byte of it can be asked for at once.

Browsers play WAV of 16 bits, and ask for it in ranges of bytes. So the file is described (its rate,
its length), and of the range that is asked for the samples are decoded, from that place in the
recording on, in blocks: an hour at its end costs what an hour at its beginning does, and memory
does not grow with its length. It has two channels, left and right. Of the tracks that are to be
heard the first is more to the left, the last more to the right; one alone is in the middle.

Frames count from 0 at the rate of the WAV file. A file of another rate is resampled from a whole
second on, one second early, so that every place sounds the same however it was come to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import numpy as np
import soundfile as sf
import soxr
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.review import decoders
from spklink.review.gsm import opened_at
from spklink.sound.files import refusal

Samples = NDArray[np.float32]
HEADER = 44  # bytes
FRAME = 4  # bytes: left and right, 16 bits each
HIGHEST = 24_000  # Hz: all that tells voices apart, and half a day below the 4 GB that WAV can have
LONGEST = (1 << 32) - 1024  # bytes
BLOCK = 2.0  # seconds
EARLY = (
    0.25  # seconds that are decoded first, and not used: what is compressed needs what was before
)
ASIDE = 0.35  # how loud a track on the left is on the right


@dataclass(frozen=True)
class Part:
    """One file of a recording, as its header has it."""

    path: Path
    rate: int
    frames: int
    channels: int


@dataclass(frozen=True)
class Playable:
    """All that the WAV file depends on."""

    parts: tuple[Part, ...]  # one file, or a file a track
    tracks: int
    mixed: bool  # tracks are diarized: all of them are the same sound
    rate: int
    frames: int

    @property
    def seconds(self) -> float:
        return self.frames / self.rate

    @property
    def size(self) -> int:
        """Bytes of the WAV file."""
        return HEADER + FRAME * self.frames

    def bytes_from(self, first: int, after: int, heard: Sequence[int]) -> Iterator[bytes]:
        """Those from `first` up to below `after`, of these tracks."""
        head = self._header()[first:after]
        if head:
            yield head
        start = max(first - HEADER, 0)
        left = after - max(first, HEADER)
        skipped = start % FRAME
        if left <= 0:
            return
        for block in self._sound(start // FRAME, heard):
            data = block.tobytes()[skipped:][:left]
            skipped = 0
            left -= len(data)
            yield data
            if left <= 0:
                return

    def _header(self) -> bytes:
        data = FRAME * self.frames
        wave = struct.pack("<HHIIHH", 1, 2, self.rate, self.rate * FRAME, FRAME, 16)
        riff = struct.pack("<4sI4s", b"RIFF", HEADER - 8 + data, b"WAVE")
        return riff + struct.pack("<4sI", b"fmt ", 16) + wave + struct.pack("<4sI", b"data", data)

    def _sound(self, frame: int, heard: Sequence[int]) -> Iterator[NDArray[np.int16]]:
        """(frames, 2) blocks from a frame on, to the end; what cannot be decoded is silence."""
        gains = self._gains(heard)
        size = max(1, round(BLOCK * self.rate))
        with ExitStack() as opened:
            voices = [opened.enter_context(_Voice(part, self.rate, frame)) for part in self.parts]
            while frame < self.frames:
                count = min(size, self.frames - frame)
                tracks = np.hstack([voice.read(count) for voice in voices])
                mixed = np.clip(tracks @ gains, -1.0, 1.0)
                yield np.rint(32767.0 * mixed).astype("<i2")
                frame += count

    def _gains(self, heard: Sequence[int]) -> Samples:
        """(channels, 2) of all files side by side."""
        channels = sum(part.channels for part in self.parts)
        if self.mixed:
            return np.full((channels, 2), 1.0 / channels, np.float32)
        gains = np.zeros((channels, 2), np.float32)
        for place, track in enumerate(heard):
            right = place / (len(heard) - 1) if len(heard) > 1 else 0.5
            both = 1.0 - right, right
            gains[track] = [min(1.0, ASIDE + (1.0 - ASIDE) * 2.0 * share) for share in both]
        return gains


def playable(files: Sequence[Path], tracks: int, *, mixed: bool) -> Playable:
    """A recording, looked at; an error says in a few words why it cannot be played."""
    if not files:
        raise SpklinkError("the table names no recording")
    parts = tuple(_part(path) for path in files)
    channels = sum(part.channels for part in parts)
    if mixed and len(parts) != 1:
        raise SpklinkError(f"{len(parts)} files; tracks that are diarized are those of one")
    if not mixed and (channels != tracks or len(parts) not in (1, tracks)):
        found = f"{channels} channels" if channels > 1 else "one channel"
        raise SpklinkError(f"{found} where {tracks} are expected")
    rate = min(max(part.rate for part in parts), HIGHEST)
    seconds = max(part.frames / part.rate for part in parts)
    while FRAME * seconds * rate > LONGEST:
        rate //= 2
    return Playable(parts, tracks, mixed, rate, max(1, round(seconds * rate)))


def _part(path: Path) -> Part:
    if why := refusal(path):
        raise SpklinkError(why)
    try:
        with sf.SoundFile(str(path)) as sound:
            return Part(path, sound.samplerate, _length(sound), sound.channels)
    except (sf.SoundFileError, OSError, TypeError, ValueError, RuntimeError) as error:
        text = " ".join(getattr(error, "error_string", str(error)).split()).rstrip(".")
        raise SpklinkError(f"not a sound file that can be decoded ({text})") from None


def _length(sound: sf.SoundFile) -> int:
    """Frames; counted where the header does not tell."""
    if sound.frames < 1 << 62:
        return int(sound.frames)
    return sum(len(block) for block in sound.blocks(1 << 16, dtype="float32"))


class _Voice:
    """One file, read from a frame on at the rate of the WAV file."""

    def __init__(self, part: Part, rate: int, frame: int) -> None:
        self.part, self.rate = part, rate
        self.held = np.zeros((0, part.channels), np.float32)
        second = max(0, frame // rate - 1)
        self.begin = frame if part.rate == rate else second * part.rate
        self.skip = 0 if part.rate == rate else frame - second * rate
        self.ended = False
        self.sound: decoders.Decoder | None = None
        self.source: RawIOBase | None = None  # what a sound is read from that begins later

    def __enter__(self) -> _Voice:
        have, want = self.part.rate, self.rate
        self.resampler = (
            None
            if have == want
            else soxr.ResampleStream(have, want, self.part.channels, dtype="float32")
        )
        try:
            self._open()
        except (sf.SoundFileError, OSError):
            self._close()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        sound, self.sound = self.sound, None
        if self.source is not None:
            self.source.close()
        elif sound is not None:
            decoders.give_back(self.part.path, sound)

    def _open(self) -> None:
        """The file, at the frame to begin with; nothing where that is after its end."""
        if self.begin >= self.part.frames:
            return
        self.sound = sound = decoders.take(self.part.path)
        if sound.channels != self.part.channels:  # another file in its place
            return self._close()
        left = self.begin
        if sound.has_places:
            left = min(left, round(EARLY * self.part.rate))
            sound.seek(self.begin - left)
        elif sound.subtype == "GSM610" and (found := opened_at(self.part.path, left)) is not None:
            sound.close()
            self.source, at = found
            self.sound = sound = decoders.Decoder(self.source)
            left -= at
        while left > 0 and len(block := sound.read(min(left, 1 << 16), always_2d=True)):
            left -= len(block)  # from an earlier place, then; nothing of it is kept
        return None

    def read(self, count: int) -> Samples:
        """(count, channels); silence after the end."""
        while len(self.held) < count + self.skip and not self.ended:
            self.held = np.concatenate([self.held, self._more()])
        block = self.held[self.skip : self.skip + count]
        self.held, self.skip = self.held[self.skip + count :], 0
        if len(block) == count:
            return np.ascontiguousarray(block)
        rest = np.zeros((count - len(block), self.part.channels), np.float32)
        return np.concatenate([block, rest])

    def _more(self) -> Samples:
        block = np.zeros((0, self.part.channels), np.float32)
        if self.sound is not None:
            try:
                size = max(1, round(BLOCK * self.part.rate))
                block = self.sound.read(size, dtype="float32", always_2d=True)
            except sf.SoundFileError:
                self._close()
        self.ended = not len(block)
        block = np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0)
        if self.resampler is None:
            return block
        return np.asarray(self.resampler.resample_chunk(block, last=self.ended))

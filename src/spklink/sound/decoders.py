"""Sound files opened: by libsndfile, and what that cannot read by FFmpeg, through PyAV (an extra).

Either way a file is read from start to end, in blocks of float32. What cannot be read is named: the
extra that is missing, a lock (DRM), a kind of compression.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Protocol

import soundfile as sf

from spklink.sound.files import refusal

RATES = (4_000, 384_000)  # a damaged header can say 1 Hz, and one sample would become 8000
UNTOLD = 1 << 62  # samples of a file that does not say how long it is, or more
_LENGTH_FIELD = re.compile(r"(?:data|SSND|Data Size|riff)\s*: (\d+) \(should be (\d+)\)")
_UNKNOWN = 0x7FFFF000  # bytes; programs that stream write such a length, or more, as "to the end"
_NIST_COUNT = re.compile(rb"sample_count -i (\d+)")
HEAD = 4096  # bytes that tell what a file is
# How files begin that FFmpeg reads and libsndfile does not: (place, bytes, what it is).
FFMPEG = (
    (4, b"ftyp", "MP4 (m4a, mp4, 3gp)"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska (webm, mka)"),
    (0, b"#!AMR", "AMR"),
    (0, b"\x30\x26\xb2\x75", "Windows Media"),
    (0, b"\xff\xf1", "AAC"),
    (0, b"\xff\xf9", "AAC"),
    (0, b"FLV", "Flash video"),
    (0, b"\x00\x00\x01\xba", "MPEG video"),
)
EXTRA = 'pip install "spklink[av]"'


class Sound(Protocol):
    """An open sound file."""

    samplerate: int
    channels: int
    frames: int  # samples that it promises; UNTOLD where it does not tell
    format: str
    extra_info: str

    def read(self, frames: int, dtype: str, *, always_2d: bool) -> Any: ...
    def close(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> None: ...


class RefusedError(Exception):
    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


class _ForwardSound(sf.SoundFile):  # type: ignore[misc]
    """Read from start to end only.

    The parent seeks to where it already is after every block, and where a decoder has a memory
    (MP3, Opus) the samples would depend on the length of the blocks.
    """

    def seekable(self) -> bool:
        return False


def open_sound(path: Path, channels: int | None) -> Sound:
    """The open file, if it holds `channels` channels (None: any number) at a possible rate."""
    if why := refusal(path):
        raise RefusedError("unreadable", why)
    if path.suffix.lower() == ".raw":
        raise RefusedError("unreadable", "samples without a header; convert them to WAV")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise RefusedError("unreadable", sentence(str(error))) from error
    if not head:
        raise RefusedError("empty", "0 bytes")
    sound = _by_ffmpeg(path, head) or _by_libsndfile(path, head)
    try:
        _check_header(sound, channels)
    except RefusedError:
        sound.close()
        raise
    return sound


def _by_libsndfile(path: Path, head: bytes) -> Sound:
    if b"shorten" in head[:1024] and head.startswith(b"NIST_1A"):
        text = "a .sph compressed with shorten; unpack it: sph2pipe -f wav IN.sph OUT.wav"
        raise RefusedError("unreadable", text)
    try:
        found: Sound = _ForwardSound(str(path))
    except sf.LibsndfileError as error:
        raise RefusedError("unreadable", sentence(error.error_string)) from error
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise RefusedError("unreadable", sentence(str(error))) from error
    return found


def _by_ffmpeg(path: Path, head: bytes) -> Sound | None:
    """The open file where it is of a kind that only FFmpeg reads."""
    kind = next((what for at, mark, what in FFMPEG if head[at:].startswith(mark)), None)
    if kind is None:
        return None
    try:
        from spklink.sound.av_sound import AvSound
    except ImportError:
        raise RefusedError("unreadable", f"{kind} needs PyAV: {EXTRA}") from None
    try:
        return AvSound(path)
    except ValueError as error:
        raise RefusedError("unreadable", f"{kind}: {sentence(str(error))}") from None


def _check_header(sound: Sound, channels: int | None) -> None:
    if not RATES[0] <= sound.samplerate <= RATES[1]:
        raise RefusedError("unreadable", f"a sample rate of {sound.samplerate} Hz")
    if channels in (None, sound.channels):
        return
    if sound.channels == 1:
        expected = "two" if channels == 2 else f"{channels}"
        raise RefusedError("mono", f"one channel where {expected} are expected")
    raise RefusedError("channels", f"{sound.channels} channels where {channels} expected")


def sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".") or "no reason given"


def cut_short(path: Path, sound: Sound) -> str:
    """What is missing, for formats whose length libsndfile silently takes from the file's size."""
    log = sound.extra_info
    for match in _LENGTH_FIELD.finditer(log):
        promised, present = int(match[1]), int(match[2])
        if present < promised < _UNKNOWN:
            return f"{present} of the {promised} bytes that its header promises"
    if "lacks an end-of-stream" in log:
        return "the Ogg stream has no end"
    if sound.format == "NIST":
        with path.open("rb") as file:
            count = _NIST_COUNT.search(file.read(1024))
        if count and sound.frames < int(count[1]):
            return f"{sound.frames} of the {int(count[1])} samples that its header promises"
    if sound.frames == 0 and (size := path.stat().st_size) > 1024:
        return f"its header promises nothing, but it has {size} bytes; repair the header"
    return ""

"""Any sound file → the channels of a conversation, at one rate, in blocks, and what is wrong.

A recording of K tracks is one file of K channels or K mono files, one a channel. It is decoded (by
module `decoders`) and resampled by soxr as a stream: memory does not grow with its length. Blocks
are (samples, K), float32, full scale 1.0; channels count from 0. Of files of unequal length the
shorter are filled up with zeros; `Survey.lengths` says where each channel really ends. Where tracks
are diarized the recording is one file whose channels, if it has several, are mixed to one.

No file raises an error here, however damaged (only a wrong number of files does): what is wrong is
a `Problem`. A fatal one leaves its channel (or, where it names none, all) unusable; a remark does
not. The samples do not depend on the length of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, zip_longest
from pathlib import Path

import numba as nb
import numpy as np
import soundfile as sf
import soxr
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.sound.decoders import (
    UNTOLD,
    RefusedError,
    Sound,
    cut_short,
    open_sound,
    sentence,
)

Samples = NDArray[np.float32]
SHORTEST = 0.1  # seconds
CLIPPED = 0.001  # share of samples at full scale
FATAL = {
    "unreadable": "not a sound file that can be decoded",
    "empty": f"shorter than {SHORTEST} s",
    "silent": "nothing above the idle noise of a telephone line",
    "mono": "one channel where more are expected",
    "channels": "another number of channels than expected",
    "identical": "two channels, or more, carry the same sound",
    "invalid": "samples that are not numbers, or absurdly large ones",
    "steady": "none of the ups and downs of speech: noise, a tone, a hum",
    "changed": "written to, or gone, while it was read",
    "twice": "the same sound in two rows of the table",
    "network": "a network that answers no numbers",
    "segments": "diarized segments that begin after the end of the recording",
}
REMARKS = {
    "truncated": "shorter than its header promises, or damaged from some point on",
    "clipped": f"more than {CLIPPED:.1%} of the samples at full scale",
    "lengths": "the files of a recording differ in length by more than a second",
    "endless": "never a pause: music or noise, perhaps, rather than one side of a conversation",
    "late": "diarized segments that end more than a second after the recording",
}
IDLE = 16 / 32768  # peak to peak; the smallest steps of mu-law and A-law around zero
FULL_SCALE = 0.98  # the largest value of mu-law is 32124 / 32768
ABSURD = 1e6  # above this the squares of float32 features would overflow


@dataclass(frozen=True)
class Problem:
    """Something wrong with a recording, or with one channel of it."""

    kind: str  # a key of FATAL or REMARKS
    text: str
    channel: int | None = None  # None: the whole recording

    @property
    def fatal(self) -> bool:
        """No features can be had."""
        return self.kind in FATAL

    def __str__(self) -> str:
        where = "" if self.channel is None else f"channel {self.channel + 1}: "
        return f"{where}{self.kind}: {self.text}"


@dataclass(frozen=True)
class Probe:
    """What the headers say."""

    seconds: float  # of the longer channel; 0 where a header does not tell
    problems: list[Problem]


@dataclass
class Survey:
    """What was heard, channel by channel, while the blocks went by."""

    tracks: int
    found: list[Problem] = field(default_factory=list)
    mixed: bool = False  # all channels of the file are one track

    def __post_init__(self) -> None:
        self.lengths = [0] * self.tracks  # samples delivered
        self.seconds = [0.0] * self.tracks
        self.low = np.full(self.tracks, np.inf)
        self.high = np.full(self.tracks, -np.inf)
        self.counts = np.zeros((self.tracks, 3), np.int64)
        self.apart = np.zeros((self.tracks, self.tracks))  # largest difference of channels a < b

    def note(self, kind: str, text: str, channel: int | None = None) -> None:
        """Add what opening or decoding found."""
        self.found.append(Problem(kind, text, channel))

    def problems(self) -> list[Problem]:
        """All problems; complete once the last block has been taken."""
        found = list(self.found)
        dead = bad_channels(found, self.tracks)
        for channel in range(self.tracks):
            if not dead[channel]:
                found += self._of_channel(channel)
        found += self._alike(good_channels(found, self.tracks))
        return found + self._unequal(good_channels(found, self.tracks))

    def _alike(self, good: list[int]) -> list[Problem]:
        """Who is on a track is an empty question where another carries the same sound."""
        pairs = [(a, b) for a, b in combinations(good, 2) if self.apart[a, b] <= IDLE]
        if pairs and len(pairs) == math.comb(self.tracks, 2):
            every = "both" if self.tracks == 2 else "all"
            return [Problem("identical", f"{every} channels carry the same sound")]
        twin = {b: a for a, b in reversed(pairs)} | dict(reversed(pairs))
        return [
            Problem("identical", f"the same sound as on channel {twin[k] + 1}", k)
            for k in sorted(twin)
        ]

    def _unequal(self, good: list[int]) -> list[Problem]:
        seconds = [self.seconds[channel] for channel in good] or [0.0]
        apart = max(seconds) - min(seconds)
        number = "two" if self.tracks == 2 else f"{self.tracks}"
        text = f"the {number} files differ by {apart:.1f} s"
        return [Problem("lengths", text)] if apart > 1 else []

    def _of_channel(self, channel: int) -> list[Problem]:
        total, loud, invalid = (int(n) for n in self.counts[channel])
        if invalid:
            return [Problem("invalid", f"{invalid} of {total} samples are no sound", channel)]
        if self.seconds[channel] < SHORTEST:
            return [Problem("empty", f"{self.seconds[channel]:.3f} s of sound", channel)]
        if self.high[channel] - self.low[channel] <= IDLE:
            return [Problem("silent", "nothing above idle noise", channel)]
        if loud > CLIPPED * total:
            return [Problem("clipped", f"{loud / total:.1%} of the samples at full scale", channel)]
        return []


def bad_channels(problems: Iterable[Problem], tracks: int) -> tuple[bool, ...]:
    """Which channels have a fatal problem."""
    hit = {problem.channel for problem in problems if problem.fatal}
    return tuple(None in hit or channel in hit for channel in range(tracks))


def good_channels(problems: Iterable[Problem], tracks: int) -> list[int]:
    """Those without one."""
    return [k for k, bad in enumerate(bad_channels(problems, tracks)) if not bad]


def probe(files: tuple[Path, ...], tracks: int, *, mixed: bool = False) -> Probe:
    """Open the files of a recording, without decoding them; `mixed`: all channels of its file, as
    many as there are, are heard as one."""
    survey, seconds = Survey(tracks), 0.0
    for channel, path in _places(files, 1 if mixed else tracks):
        try:
            with open_sound(path, None if mixed else tracks if channel is None else 1) as sound:
                known = sound.frames < UNTOLD
                seconds = max(seconds, sound.frames / sound.samplerate if known else 0.0)
                if (length := _if_too_short(sound)) is not None:
                    survey.note("empty", f"{length:.3f} s of sound", channel)
        except RefusedError as error:
            survey.note(error.kind, error.text, channel)
    return Probe(seconds, survey.found)


def _if_too_short(sound: Sound) -> float | None:
    """Seconds of sound where there are fewer than SHORTEST. The header of some files promises less
    than there is, so that up to a second of a file that seems to be short is decoded."""
    if sound.frames > sound.samplerate:
        return None
    try:
        samples = len(sound.read(sound.samplerate, dtype="float32", always_2d=True))
    except sf.SoundFileError:
        samples = 0
    seconds = samples / sound.samplerate
    return seconds if seconds < SHORTEST else None


def channels_of(path: Path) -> int:
    """How many channels a file has; 1 where it cannot be opened: listening to it will say why."""
    try:
        with open_sound(path, None) as sound:
            return int(sound.channels)
    except RefusedError:
        return 1


def channel_blocks(
    files: tuple[Path, ...],
    tracks: int,
    rate: int = 8000,
    block_seconds: float = 10.0,
    survey: Survey | None = None,
) -> Iterator[Samples]:
    """(samples, tracks) blocks of a recording; `survey` gathers what is wrong with it."""
    survey = Survey(tracks) if survey is None else survey
    size = max(1, round(block_seconds * rate))
    places = _places(files, tracks)
    streams = [
        _even(_decoded(path, channel, rate, block_seconds, survey), size)
        for channel, path in places
    ]
    for parts in zip_longest(*streams):
        block = parts[0] if places[0][0] is None else _side_by_side(parts)
        note_differences(block, survey)
        yield block


def _places(files: tuple[Path, ...], tracks: int) -> list[tuple[int | None, Path]]:
    """Each file with the channel it carries; None for all."""
    if len(files) not in (1, tracks):
        named = ", ".join(map(str, files)) or "a recording without audio"
        raise SpklinkError(f"{named}: {len(files)} files; give {_wanted(tracks)}")
    return [(None if len(files) == 1 else k, Path(path)) for k, path in enumerate(files)]


def _wanted(tracks: int) -> str:
    if tracks == 2:
        return "one stereo file or two mono files"
    return f"one file of {tracks} channels or {tracks} mono files" if tracks > 2 else "one file"


def _side_by_side(parts: tuple[Samples | None, ...]) -> Samples:
    block = np.zeros((max(len(part) for part in parts if part is not None), len(parts)), np.float32)
    for channel, part in enumerate(parts):
        if part is not None:
            block[: len(part), channel] = part[:, 0]
    return block


def _even(blocks: Iterable[Samples], size: int) -> Iterator[Samples]:
    """The same samples in blocks of one size, the last one shorter."""
    held: list[Samples] = []
    waiting = 0
    for block in blocks:
        while waiting + len(block) >= size:
            cut = size - waiting
            yield np.concatenate([*held, block[:cut]]) if held else block[:cut]
            held, waiting, block = [], 0, block[cut:]
        if len(block):
            held.append(block)
            waiting += len(block)
    if held:
        yield np.concatenate(held)


def _decoded(
    path: Path, channel: int | None, rate: int, block_seconds: float, survey: Survey
) -> Iterator[Samples]:
    """(samples, channels of this file) at the wanted rate, surveyed."""
    channels = list(range(survey.tracks)) if channel is None else [channel]
    try:
        sound = open_sound(path, None if survey.mixed else len(channels))
    except RefusedError as error:
        survey.note(error.kind, error.text, channel)
        return
    with sound:
        if missing := cut_short(path, sound):
            survey.note("truncated", missing, channel)
        heard = _surveyed(sound, channel, channels, block_seconds, survey)
        for block in _resampled(heard, sound.samplerate, rate, len(channels)):
            for k in channels:
                survey.lengths[k] += len(block)
            yield block


def _surveyed(
    sound: Sound, channel: int | None, channels: list[int], seconds: float, survey: Survey
) -> Iterator[Samples]:
    size, taken, promised = max(1, round(seconds * sound.samplerate)), 0, sound.frames
    stop = ""
    while True:
        try:
            block = sound.read(size, dtype="float32", always_2d=True)
        except sf.SoundFileError as error:
            stop = f" ({sentence(getattr(error, 'error_string', str(error)))})"
            break
        if not len(block):
            break
        if survey.mixed and block.shape[1] > 1:
            block = block.mean(axis=1, keepdims=True)
        inspect(block, channels, survey)
        taken += len(block)
        for k in channels:
            survey.seconds[k] = taken / sound.samplerate
        yield block
    if stop or taken < promised < UNTOLD:
        have, want = taken / sound.samplerate, promised / sound.samplerate
        survey.note("truncated", f"decoded {have:.1f} s of {want:.1f} s{stop}", channel)


def _resampled(blocks: Iterable[Samples], have: int, want: int, channels: int) -> Iterator[Samples]:
    if have == want:
        yield from blocks
        return
    stream = soxr.ResampleStream(have, want, channels, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros((0, channels), np.float32), last=True)


def inspect(block: Samples, channels: list[int], survey: Survey) -> None:
    """Note what is odd about the samples of some channels."""
    for column, k in enumerate(channels):
        _inspect(block, column, survey.counts[k], survey.low[k : k + 1], survey.high[k : k + 1])


def note_differences(block: Samples, survey: Survey) -> None:
    """Note how far channels are apart."""
    _note_differences(block, survey.apart)


@nb.njit(cache=True, nogil=True)
def _inspect(block, column, counts, low, high):  # type: ignore[no-untyped-def]
    """Extremes, samples at full scale and impossible samples; the last are put to zero."""
    least, most, loud, invalid = np.float32(np.inf), np.float32(-np.inf), 0, 0
    for t in range(len(block)):
        x = block[t, column]
        if not abs(x) <= ABSURD:  # also true of NaN
            block[t, column] = x = np.float32(0.0)
            invalid += 1
        least, most = min(least, x), max(most, x)
        loud += abs(x) >= FULL_SCALE
    counts[0] += len(block)
    counts[1] += loud
    counts[2] += invalid
    low[0], high[0] = min(low[0], least), max(high[0], most)


@nb.njit(cache=True, nogil=True)
def _note_differences(block, apart):  # type: ignore[no-untyped-def]
    """The largest difference between every two channels so far."""
    for a in range(block.shape[1]):
        for b in range(a + 1, block.shape[1]):
            most = np.float32(0.0)
            for t in range(len(block)):
                most = max(most, abs(block[t, a] - block[t, b]))
            apart[a, b] = max(apart[a, b], most)

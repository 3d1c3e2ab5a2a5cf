"""A data folder of Kaldi: wav.scp, segments, utt2spk, spk2utt, reco2file_and_channel, utt2prob.

A recording is one side, called conversation-A, conversation-B, …; diarized tracks share one. Where
it is not a WAV file of its own, sox makes it. Utterances are speaker-recording-start-end, times in
milliseconds, so that they sort as Kaldi wants it: by bytes, and by speaker at the same time.
utt2prob has the probability of each, reco2dur the seconds of recordings that could be opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from shlex import quote

from spklink.errors import SpklinkError
from spklink.formats.out.labelled import (
    Header,
    Labelled,
    LabelledSide,
    Recording,
    is_elsewhere,
    letter,
    refuse_odd_path,
    require_files,
    seconds,
    write_lines,
)
from spklink.tables import probability_text

PLAIN = re.compile(r"[\w./+=,@~-]+")  # a path that Kaldi takes for nothing but a path


@dataclass(frozen=True)
class _Told:
    """One side as Kaldi is told of it."""

    prefix: str  # of its utterances
    recording: str
    conversation: str
    channel: str
    speaker: str
    source: str  # for wav.scp
    duration: float | None
    side: LabelledSide


def write(labelled: Labelled, folder: Path) -> None:
    require_files(labelled, "kaldi")
    told = _told(labelled, labelled.names.word)
    if not _sorts(told):
        told = _told(labelled, labelled.names.sorting)
    write_lines(folder / "segments", _segments(told))
    write_lines(folder / "utt2spk", (f"{utt} {one.speaker}" for one, utt, _ in _utterances(told)))
    write_lines(folder / "utt2prob", _probabilities(told))
    write_lines(folder / "spk2utt", _by_speaker(told))
    recordings = {one.recording: one for one in told}
    every = [recordings[name] for name in sorted(recordings)]
    write_lines(folder / "wav.scp", (f"{one.recording} {one.source}" for one in every))
    places = (f"{one.recording} {one.conversation} {one.channel}" for one in every)
    write_lines(folder / "reco2file_and_channel", places)
    if all(one.duration is not None for one in every):
        lasts = (f"{one.recording} {one.duration:.3f}" for one in every)
        write_lines(folder / "reco2dur", lasts)


def _sorts(told: list[_Told]) -> bool:
    """Whether utterances sort side by side, and as their speakers do."""
    pairs = list(pairwise(told))
    apart = not any(two.prefix.startswith(one.prefix) for one, two in pairs)
    return apart and all(one.speaker <= two.speaker for one, two in pairs)


def _told(labelled: Labelled, written: Callable[[str, str], str]) -> list[_Told]:
    """All sides, in the order of their utterances."""
    found = []
    for one in labelled.recordings():
        name = written("conversation", one.id)
        for side in one.sides:
            channel = "A" if one.mixed else letter(side.track)
            who = written("speaker", side.speaker)
            recording = name if one.mixed else f"{name}-{channel}"
            track = f"-{side.track + 1}" if one.mixed else ""
            found.append(
                _Told(
                    f"{who}-{recording}{track}-",
                    recording,
                    name,
                    channel,
                    who,
                    _source(one, side.track),
                    _duration(one, side.track),
                    side,
                )
            )
    return sorted(found, key=attrgetter("prefix"))


def _source(one: Recording, track: int) -> str:
    """Where the sound of one side comes from."""
    file = track if len(one.files) > 1 else 0
    path, header = one.files[file], one.headers[file]
    refuse_odd_path(path)
    if is_elsewhere(path):
        raise SpklinkError(f"{path}: Kaldi reads files of this machine; copy it, and link again")
    remix = _remix(one, track, header)
    if not remix and path.lower().endswith(".wav"):
        return path if PLAIN.fullmatch(path) else f"cat {quote(path)} |"
    return f"sox {quote(path)} -t wav -{remix} |"


def _remix(one: Recording, track: int, header: Header | None) -> str:
    if one.mixed:
        return " remix -" if header is not None and header.channels > 1 else ""
    several = one.tracks > 1 if header is None else header.channels > 1
    return f" remix {track + 1}" if len(one.files) == 1 and several else ""


def _duration(one: Recording, track: int) -> float | None:
    header = one.headers[track if len(one.files) > 1 else 0]
    return None if header is None else header.seconds


def _utterances(told: list[_Told]) -> Iterator[tuple[_Told, str, tuple[int, int]]]:
    latest = max((int(one.side.times.max(initial=0)) for one in told), default=0)
    width = max(7, len(str(latest)))
    for one in told:
        for start, end in one.side.times.tolist():
            yield one, f"{one.prefix}{start:0{width}d}-{end:0{width}d}", (start, end)


def _segments(told: list[_Told]) -> Iterator[str]:
    for one, utterance, (start, end) in _utterances(told):
        yield f"{utterance} {one.recording} {seconds(start)} {seconds(end)}"


def _probabilities(told: list[_Told]) -> Iterator[str]:
    for one, utterance, _ in _utterances(told):
        yield f"{utterance} {probability_text(one.side.probability)}"


def _by_speaker(told: list[_Told]) -> Iterator[str]:
    spoken = ((one.speaker, utterance) for one, utterance, _ in _utterances(told))
    for speaker, every in groupby(spoken, lambda pair: pair[0]):
        yield " ".join([speaker, *(utterance for _, utterance in every)])

"""Kaldi data folders.

`wav.scp` names recordings, `utt2spk` who says an utterance, `segments` where in a recording that
is, `reco2file_and_channel` which recordings are channels of one file. A command in wav.scp is never
run: of sph2pipe and sox only the file and the channel are read out of it, all else is refused.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from spklink.corpora.corpus import Corpus, Stretch, diarized, gathered
from spklink.corpora.table import refuse_component
from spklink.errors import Problems, SpklinkError, problems_in

CHANNELS = {"A": 1, "B": 2, "1": 1, "2": 2}
SIDE = re.compile(r"(.+)[-_]([ABab12])$")


def read(folder: Path, component: str | None) -> Corpus:
    refuse_component(component, "kaldi")
    wav = folder / "wav.scp"
    if not wav.is_file():
        raise SpklinkError(f"{folder}: no wav.scp; is it a Kaldi data folder?")
    sources = _sources(wav)
    people = dict(_pairs(folder / "utt2spk"))
    if not people:
        raise SpklinkError(f"{folder / 'utt2spk'}: is not there, or empty; nobody is named")
    places = _places(folder, sources)
    audio: dict[str, dict[int, str]] = {}
    for recording, (call, channel) in places.items():
        audio.setdefault(call, {})[channel or 1] = sources[recording][0]
    said = _stretches(folder, people, places)
    files = {call: _files(by_channel) for call, by_channel in audio.items()}
    sexes = {"m": "male", "f": "female"}
    more = {"speakers": [(who, sexes.get(s, s)) for who, s in _pairs(folder / "spk2gender")]}
    mono = all(channel is None for _, channel in places.values())
    return (diarized if mono else gathered)(files, said, **more)


def _files(by_channel: dict[int, str]) -> tuple[str, ...]:
    """One file of all channels, or a file a channel."""
    return tuple(dict.fromkeys(by_channel[k] for k in sorted(by_channel)))


def _pairs(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        return []
    lines = (line.split(maxsplit=1) for line in path.read_text("utf-8").splitlines())
    return [(line[0], line[1].strip()) for line in lines if len(line) == 2]


def _sources(path: Path) -> dict[str, tuple[str, int | None]]:
    """The file of every recording, and its channel where a command says it."""
    problems, found = Problems(), {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        name, _, what = line.strip().partition(" ")
        source = _source(what.strip())
        if source is None:
            problems.append(
                f"row {number}: a command that is not run here: {what.strip()[:60]!r}; write its "
                "sound to a file and name that"
            )
        else:
            file = source[0] if "://" in source[0] else str(path.parent / source[0])
            found[name] = file, source[1]
    if problems:
        raise problems_in(path, problems)
    return found


def _source(text: str) -> tuple[str, int | None] | None:
    """A file, or what a pipe of sph2pipe or sox would read; None where it is another command."""
    if not text.endswith("|"):
        return (text, None) if text and not text.startswith("|") else None
    first = text[:-1].split("|")[0]
    try:
        words = shlex.split(first)
    except ValueError:
        return None
    program = Path(words[0]).name if words else ""
    if program == "sph2pipe":
        at = words.index("-c") + 1 if "-c" in words[:-1] else -1
        channel = CHANNELS.get(words[at]) if at > 0 else None
        files = [word for word in words[1:] if word.lower().endswith((".sph", ".wav"))]
        return (files[0], channel) if files else None
    if program in ("sox", "cat", "flac") and text.count("|") == 1:
        files = [w for w in words[1:] if Path(w).suffix and not w.startswith("-")]
        taken = re.search(r"\bremix\s+([12])\b", first)
        return (files[0], CHANNELS[taken[1]] if taken else None) if files else None
    return None


def _places(
    folder: Path, sources: dict[str, tuple[str, int | None]]
) -> dict[str, tuple[str, int | None]]:
    """The conversation and the channel of every recording; None where it is a whole one."""
    said = {name: what.split() for name, what in _pairs(folder / "reco2file_and_channel")}
    shared: dict[str, int] = {}
    for name, _ in sources.items():
        if side := SIDE.match(name):
            shared[side[1]] = shared.get(side[1], 0) + 1
    found: dict[str, tuple[str, int | None]] = {}
    for name, (_, channel) in sources.items():
        side = SIDE.match(name)
        if len(said.get(name, [])) == 2 and _several(said, said[name][0]):
            found[name] = said[name][0], CHANNELS.get(said[name][1].upper())
        elif side and (shared[side[1]] == 2 or channel is not None):
            found[name] = side[1], channel or CHANNELS[side[2].upper()]
        else:
            found[name] = name, channel
    return found


def _several(said: dict[str, list[str]], file: str) -> bool:
    """Whether more than one channel of a file is there: mono recordings are all channel A."""
    return len({tuple(one) for one in said.values() if one[:1] == [file]}) > 1


def _stretches(
    folder: Path, people: dict[str, str], places: dict[str, tuple[str, int | None]]
) -> list[Stretch]:
    parts = [(name, what.split()) for name, what in _pairs(folder / "segments")]
    found, problems = [], Problems()
    for name, fields in parts or [(name, [name]) for name in people]:
        recording = fields[0]
        if recording not in places or name not in people:
            continue
        call, channel = places[recording]
        try:
            start, end = (float(text) for text in fields[1:3]) if len(fields) > 2 else (None, None)
        except ValueError:
            problems.append(f"{name}: {' '.join(fields[1:])!r} is no start and end in seconds")
            continue
        if end is not None and end < 0.0:
            start = end = None  # to the end of the recording, wherever that is
        found.append(Stretch(call, people[name], channel, start, end))
    if problems:
        raise problems_in(folder / "segments", problems)
    return found

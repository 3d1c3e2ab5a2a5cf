"""What a corpus says, whoever published it: recordings, who takes part, who speaks when.

A reader gathers recordings and stretches of speech (`Stretch`); from these come our tables. Where
the corpus says on which channel somebody is, that is a claim to be checked, never evidence. In a
recording of one channel everybody's stretches are a diarized track. Channels count from 1.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spklink.options import relative
from spklink.tables import SEPARATOR, csv_bytes, write_bytes

SOUNDS = (".wav", ".flac", ".sph", ".wv1", ".mp3", ".ogg", ".opus", ".m4a")
COLUMNS = {
    "conversations": ("conversation", "audio", "participants"),
    "claimed": ("conversation", "channel", "speaker"),
    "turns": ("conversation", "speaker", "start", "end"),
    "tracks": ("conversation", "track", "start", "end"),
    "speakers": ("speaker", "sex"),
}


@dataclass(frozen=True)
class Call:
    """One conversation."""

    id: str
    audio: tuple[str, ...]  # files, or addresses
    participants: tuple[str, ...]  # as in a list of ours: `?` is somebody unknown
    more: tuple[tuple[str, str], ...] = ()  # further columns


@dataclass(frozen=True)
class Stretch:
    """Somebody speaks, or is at least said to be there."""

    conversation: str
    speaker: str
    channel: int | None = None
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Corpus:
    """Our tables of a corpus."""

    calls: list[Call]
    claimed: list[tuple[str, int, str]] = field(default_factory=list)
    turns: list[tuple[str, str, float, float]] = field(default_factory=list)
    tracks: list[tuple[str, int, float, float]] = field(default_factory=list)
    speakers: list[tuple[str, str]] = field(default_factory=list)
    background: Path | None = None  # other speech of the corpus, to train on
    notes: list[str] = field(default_factory=list)

    def tables(self, folder: Path) -> dict[str, bytes]:
        """The content of every table that has rows; files as seen from a folder."""
        further = list(dict.fromkeys(name for call in self.calls for name, _ in call.more))
        columns = COLUMNS | {"conversations": (*COLUMNS["conversations"], *further)}
        rows: dict[str, Sequence[Sequence[Any]]] = {
            "conversations": [_row(call, folder, further) for call in self.calls],
            "claimed": self.claimed,
            "turns": self.turns,
            "tracks": self.tracks,
            "speakers": self.speakers,
        }
        return {name: csv_bytes(columns[name], some) for name, some in rows.items() if some}

    def paths(self, conversations: Path) -> dict[str, Path]:
        """Where these tables go: beside that of the conversations."""
        beside = {name: conversations.parent / f"{name}.csv" for name in COLUMNS}
        there = self.tables(conversations.parent)
        return {name: beside[name] for name in there} | {"conversations": conversations}

    def write(self, conversations: Path) -> dict[str, Path]:
        """The tables, by name."""
        conversations.parent.mkdir(parents=True, exist_ok=True)
        paths, data = self.paths(conversations), self.tables(conversations.parent)
        for name, path in paths.items():
            write_bytes(path, data[name])
        return paths


def _row(call: Call, folder: Path, further: list[str]) -> list[str]:
    files = SEPARATOR.join(_seen_from(file, folder) for file in call.audio)
    more = dict(call.more)
    cells = [more.get(name, "") for name in further]
    return [call.id, files, SEPARATOR.join(call.participants), *cells]


def _seen_from(file: str, folder: Path) -> str:
    return file if "://" in file else relative(Path(file), folder)


def gathered(
    audio: Mapping[str, tuple[str, ...]], stretches: Iterable[Stretch], **more: Any
) -> Corpus:
    """The tables of recordings by conversation and of what is said in them. Conversations without
    a recording, or without a speaker, are left out and counted in a note."""
    by_call: dict[str, list[Stretch]] = {}
    for one in stretches:
        by_call.setdefault(one.conversation, []).append(one)
    found = Corpus([], notes=list(more.pop("notes", [])), **more)
    for name, files in audio.items():
        said = by_call.get(name, [])
        if said:
            _add(found, name, files, said)
    silent = len(audio.keys() - by_call.keys())
    lost = len(by_call.keys() - audio.keys())
    if silent:
        found.notes.append(f"{silent} recordings left out: nobody is named in them")
    if lost:
        found.notes.append(f"{lost} conversations left out: their recordings are not there")
    return found


def _add(found: Corpus, name: str, files: tuple[str, ...], said: list[Stretch]) -> None:
    people = list(dict.fromkeys(one.speaker for one in said))
    channels: dict[int, list[str]] = {}
    for one in said:
        if one.channel is not None:
            channels.setdefault(one.channel, []).append(one.speaker)
    alone = {k: some[0] for k, some in channels.items() if len(set(some)) == 1}
    tracks = max([2, len(files), *channels])
    certain = set(alone.values()) if channels else _most(people, said, tracks)
    listed = [who if who in certain else f"?{who}" for who in people]
    listed += ["?"] * (tracks - len(listed))
    found.calls.append(Call(name, files, tuple(listed)))
    found.claimed.extend((name, k, alone[k]) for k in sorted(alone))
    found.turns.extend(_turns(name, said))


def _most(people: list[str], said: list[Stretch], tracks: int) -> set[str]:
    """As many people as there are tracks: of more those who speak most."""
    seconds = dict.fromkeys(people, 0.0)
    for one in said:
        seconds[one.speaker] += (one.end or 0.0) - (one.start or 0.0)
    return set(sorted(people, key=lambda who: -seconds[who])[:tracks])


def _turns(name: str, said: list[Stretch]) -> Iterator[tuple[str, str, float, float]]:
    """Once each, in order of time."""
    timed = {
        (one.start, one.end, one.speaker)
        for one in said
        if one.start is not None and one.end is not None and one.end > one.start >= 0.0
    }
    for start, end, who in sorted(timed):
        yield name, who, start, end


def diarized(
    audio: Mapping[str, tuple[str, ...]], stretches: Iterable[Stretch], **more: Any
) -> Corpus:
    """The same of recordings of one channel: everybody is a track of their own."""
    plain = gathered(audio, [_unplaced(one) for one in stretches], **more)
    tracks, claimed, calls = [], [], []
    turns: dict[str, list[tuple[str, float, float]]] = {}
    for name, who, start, end in plain.turns:
        turns.setdefault(name, []).append((who, start, end))
    for call in plain.calls:
        people = list(dict.fromkeys(who for who, _, _ in turns.get(call.id, [])))
        number = {who: k for k, who in enumerate(people, start=1)}
        if not people:
            continue
        calls.append(Call(call.id, call.audio, tuple(people)))
        tracks += [(call.id, number[who], start, end) for who, start, end in turns[call.id]]
        claimed += [(call.id, k, who) for who, k in number.items()]
    return Corpus(calls, claimed, [], tracks, plain.speakers, plain.background, plain.notes)


def _unplaced(one: Stretch) -> Stretch:
    return Stretch(one.conversation, one.speaker, None, one.start, one.end)


# --- what readers share ---------------------------------------------------------------------------


def found_below(folder: Path, endings: Iterable[str] = SOUNDS) -> dict[str, Path]:
    """Files below a folder by their names without the ending, in small letters; of several the
    first by path."""
    wanted = tuple(endings)
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in wanted and path.is_file():
            found.setdefault(path.stem.lower(), path)
    return found


def one_below(folder: Path, *parts: str) -> Path | None:
    """A path below a folder, whatever the case of its letters."""
    at = folder
    for part in parts:
        inside = at.iterdir() if at.is_dir() else ()
        same = sorted(path for path in inside if path.name.lower() == part.lower())
        if not same:
            return None
        at = same[0]
    return at


def old_text(path: Path) -> str:
    """Text of a corpus of the nineties: UTF-8 or ISO-8859-1, with SGML entities."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    return html.unescape(text)

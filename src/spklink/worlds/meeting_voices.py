"""Meetings of artificial voices, for the demo: several people at one table, or on one line.

The voices and their days are those of `voices`. Everybody has a channel, on which the others are
faintly heard; the same meeting is also written as one channel, all voices mixed, with a table of
who speaks when, as a diarization would give it. One list is wrong (it names somebody who is not
there), and one has somebody unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import COLUMNS
from spklink.errors import SpklinkError
from spklink.tables import replacing, write_csv
from spklink.worlds.files import write_key, write_table
from spklink.worlds.meetings import Plan, Session, as_meetings, draw_sessions
from spklink.worlds.voices import RATE, Voice, draw_session, make_voices, receive, send, speak

Rng = np.random.Generator
Turn = tuple[int, float, float]  # (track, begin, length)
DEMO = Plan(sessions=32, people=10, tracks=(3, 4))
WRONG, UNKNOWN = 4, 9  # meetings whose list is wrong, and has somebody unknown
SECONDS = (45.0, 60.0)


def meeting(voices: list[Voice], rng: Rng, seconds: float) -> tuple[NDArray[np.int16], list[Turn]]:
    """(samples, tracks) one voice a channel, and their turns."""
    days = [draw_session(rng) for _ in voices]
    turns = list(take_turns(len(voices), seconds, rng))
    if len({track for track, _, _ in turns}) < len(voices):
        raise SpklinkError(f"a meeting of {seconds:g} s: too short for {len(voices)} to speak")
    speech = np.zeros((len(voices), round(seconds * RATE)))
    for track, begin, length in turns:
        said = speak(voices[track], days[track], length, rng)
        part = speech[track, round(begin * RATE) :][: len(said)]
        part += said[: len(part)]
    sent = [send(own, day) for own, day in zip(speech, days, strict=True)]
    others = sum(sent) - np.stack(sent)
    heard = [
        receive(own, rest, day, rng) for own, rest, day in zip(sent, others, days, strict=True)
    ]
    return np.rint(np.stack(heard, axis=1) * 32767.0).astype(np.int16), turns


def take_turns(people: int, seconds: float, rng: Rng) -> Iterator[Turn]:
    """One speaks after the other, never twice in a row, everybody before anybody a second time."""
    waiting: list[int] = []
    last, begin = -1, rng.uniform(0.3, 1.0)
    while begin < seconds - 0.6:
        if not waiting:
            waiting = rng.permutation(people).tolist()
            if waiting[0] == last:
                waiting.append(waiting.pop(0))
        last = waiting.pop(0)
        length = min(rng.gamma(4.0, 0.7) + 1.0, seconds - 0.1 - begin)
        yield last, begin, length
        begin += length + rng.uniform(0.0, 0.5)


def demo_sessions(rng: Rng) -> list[Session]:
    """Who is at which meeting; all lists but two are right."""
    sessions = draw_sessions(DEMO, rng)
    wrong, unknown = sessions[WRONG], sessions[UNKNOWN]
    absent = next(k for k in range(DEMO.people) if k not in wrong.present)
    sessions[WRONG] = Session(wrong.present, [(absent, False), *wrong.entries[1:]], 0)
    sessions[UNKNOWN] = Session(unknown.present, unknown.entries[1:], 1)
    return sessions


def write_meetings(folder: str | PathLike[str], *, seed: int = 0) -> list[Path]:
    """conversations.csv, key.csv and audio/*.wav, a channel a person; mixed.csv, tracks.csv and
    mixed/*.wav, the same with all voices on one channel. The paths written."""
    folder = Path(folder)
    for name in ("audio", "mixed"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    sessions = demo_sessions(rng)
    table, on_side = as_meetings(sessions, DEMO.people)
    voices = make_voices(DEMO.people, rng)
    rows: list[tuple[str, str, str, str]] = []
    for name, session, child in zip(table.ids, sessions, rng.spawn(len(table)), strict=True):
        there = [voices[person] for person in session.present]
        samples, turns = meeting(there, child, child.uniform(*SECONDS))
        _write(folder / "audio" / f"{name}.wav", samples)
        _write(folder / "mixed" / f"{name}.wav", _mixed(samples))
        rows += [(name, str(k + 1), f"{a:.2f}", f"{a + b:.2f}") for k, a, b in turns]
    tracks = folder / "tracks.csv"
    write_csv(tracks, COLUMNS, rows)
    return [
        write_table(folder, table, [f"audio/{name}.wav" for name in table.ids]),
        write_table(folder, table, [f"mixed/{name}.wav" for name in table.ids], "mixed.csv"),
        tracks,
        write_key(folder, table, on_side),
    ]


def _mixed(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    """All channels as one, as loud as it can be."""
    together = samples.astype(np.float64).sum(axis=1)
    louder = 0.9 * 32767.0 / float(np.abs(together).max())
    return np.asarray(np.rint(together * louder), np.int16)


def _write(path: Path, samples: NDArray[np.int16]) -> None:
    import soundfile

    with replacing(path) as file:
        soundfile.write(file, samples, RATE, subtype="PCM_16", format="WAV")

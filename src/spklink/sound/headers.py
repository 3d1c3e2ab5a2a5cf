"""What the headers of sound files say: how long they are, and why they cannot be used.

Of a table with very many conversations only some recordings are opened, spread over the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spklink.database.conversations import Conversations
from spklink.formats.out.labelled import Header, is_elsewhere
from spklink.sound.audio import Probe, Problem, probe
from spklink.sound.decoders import UNTOLD, RefusedError, open_sound
from spklink.sound.places import located, refusal
from spklink.sound.presence import Reasons, not_there

MAX_OPENED = 20_000  # conversations whose recordings are opened
UNREADABLE = "unreadable"  # kind of problem of what is no file, or no sound


@dataclass(frozen=True)
class Opened:
    """What opening the recordings of a table told."""

    bad: Reasons  # why files cannot be used, with their numbers among all files of the table
    seconds: list[float]  # lengths of recordings, one per conversation whose headers tell it
    count: int  # conversations whose recordings were opened
    of: int  # conversations with recordings

    @property
    def hours(self) -> float | None:
        """Of all recordings, those of several files counted once; None where no header tells."""
        return self.of * float(np.mean(self.seconds)) / 3600.0 if self.seconds else None


def open_recordings(table: Conversations, tell: Callable[[int, int], None] | None = None) -> Opened:
    """Open the recordings of all conversations or, of more than MAX_OPENED, of as many of those
    that are there. `tell` hears how many are done, of how many."""
    calls, bad, seconds = np.flatnonzero(table.audio.counts), defaultdict(list), []
    missing = not_there(table.path.parent, table.audio.names) if len(calls) > MAX_OPENED else {}
    there = np.ones(len(table), np.bool_)
    for why, which in missing.items():
        bad[f"{UNREADABLE}: {why}"] = which
        there[np.searchsorted(table.audio.start, which, "right") - 1] = False
    some = calls[there[calls]]
    some = some[:: max(1, -(-len(some) // MAX_OPENED))]
    for done, m in enumerate(some.tolist(), 1):
        found = probe_recording(table, m)
        for problem in found.problems:
            file = int(table.audio.start[m]) + (problem.channel or 0)
            bad[f"{problem.kind}: {problem.text}"].append(file)
        if found.seconds > 0.0:
            seconds.append(found.seconds)
        if tell is not None:
            tell(done, len(some))
    first = sorted((sorted(which), why) for why, which in bad.items())
    return Opened({why: which for which, why in first}, seconds, len(some), len(calls))


def probe_recording(table: Conversations, m: int) -> Probe:
    """What the headers of conversation m say; a recording elsewhere is only looked for."""
    places = [located(table.path.parent, name) for name in table.audio[m]]
    files = tuple(place for place in places if isinstance(place, Path))
    if len(files) == len(places):
        mixed = bool(table.diarized and table.diarized[m].turns)
        return probe(files, int(table.sides.counts[m]), mixed=mixed)
    reasons = [refusal(place) for place in places]
    return Probe(0.0, [Problem(UNREADABLE, why, k) for k, why in enumerate(reasons) if why])


def header_of(file: str) -> Header | None:
    """Length, rate and channels; None where it cannot be opened here, or does not tell."""
    if is_elsewhere(file):
        return None
    try:
        with open_sound(Path(file), None) as sound:
            known = 0 < sound.frames < UNTOLD
            return Header(sound.frames, sound.samplerate, sound.channels) if known else None
    except RefusedError:
        return None

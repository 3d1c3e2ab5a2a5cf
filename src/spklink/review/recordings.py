"""The recordings of a results folder, asked for by the number of their conversation alone.

No path ever comes from a request. What is wrong with a recording is a sentence for the page, never
an error: a call whose file is gone can still be decided upon by whoever knows.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from spklink.cache import Store
from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.formats.turns import read_turns
from spklink.review.decoders import learn
from spklink.review.outline import Outline, outline
from spklink.review.playing import Playable, playable
from spklink.sound.files import Stamp, stamp

OPENED = 256  # recordings whose headers are remembered


class Recordings:
    """May be used from several threads."""

    def __init__(self, table: Conversations, cache: Path, turns: Path | None = None) -> None:
        self.table = table
        self.store = Store(cache)
        self.told = _turns(turns)
        self._drawing = Lock()  # one at a time: each takes all of a core, and people ask for one
        self._looked_at = lru_cache(OPENED)(self._look_at)

    def files(self, m: int) -> tuple[Path, ...]:
        home = self.table.path.parent
        return tuple(home / name for name in self.table.audio[m])

    def playable(self, m: int) -> Playable:
        """The WAV file of a conversation; an error says why there is none."""
        return self._looked_at(m, tuple(stamp(path) for path in self.files(m)))

    def _look_at(self, m: int, same: tuple[Stamp, ...]) -> Playable:
        files, mixed = self.files(m), bool(self.table.diarized)
        if any(one is None for one in same):
            gone = next(path for path, one in zip(files, same, strict=True) if one is None)
            raise SpklinkError(f"{gone.name}: no such file")
        return playable(files, int(self.table.sides.counts[m]), mixed=mixed)

    def why_not(self, m: int) -> str:
        """Why a recording cannot be played; "" where it can."""
        try:
            self.playable(m)
        except (SpklinkError, OSError) as error:
            return str(error)
        return ""

    def outline(self, m: int) -> Outline:
        turns = self.table.diarized[m].turns if self.table.diarized else None
        with self._drawing:
            return outline(self.store, self.files(m), int(self.table.sides.counts[m]), turns)

    def drawing(self, m: int) -> dict[str, Any]:
        """What the page draws of it."""
        try:
            sound = self.playable(m)
            for part in sound.parts:
                Thread(target=learn, args=(part.path,), daemon=True).start()
            found = self.outline(m)
        except (SpklinkError, OSError) as error:
            return {"problem": str(error)}
        return {
            "seconds": sound.seconds,
            "levels": found.levels.tolist(),
            "speech": [stretches.round(2).tolist() for stretches in found.speech],
            "turns": [
                [one, start, end] for one, start, end in self.told.get(self.table.ids[m], [])
            ],
            "problems": found.problems,
        }


def _turns(path: Path | None) -> dict[str, list[tuple[str, float, float]]]:
    """Who has the turn when, by conversation, where the transcripts of the run are still there."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    if path is None:
        return found
    try:
        files = read_turns(path).files
    except (SpklinkError, OSError):
        return found
    for turn in (turn for one in files for turn in one.turns):
        found.setdefault(turn.conversation, []).append((turn.speaker, turn.start, turn.end))
    return found

"""Sides that nobody listened to: what somebody else says about them, in the form of what was heard.

So everything after listening goes one way. In the place of the sound stands a hash that tells a
side from all others (of its vector, or of its name where only scores are given): sides are drawn
and added up in the order of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store
from spklink.database.conversations import Conversations
from spklink.sound.heard import Heard
from spklink.sound.listening import Sound
from spklink.sound.speech_table import SpeechTable

Floats = NDArray[np.float64]
LITTLE = "too little speech"


def given_sound(
    conversations: Conversations,
    hashes: Sequence[str],
    *,
    seconds: Floats | None,
    marks: Sequence[str],
    problems: Mapping[int, str],
) -> Sound:
    """What is known of all sides; `problems` by side, `seconds` None where nobody says."""
    sides, heard = conversations.sides, []
    spoken = [float("nan")] * len(sides) if seconds is None else seconds.tolist()
    start = sides.start.tolist()
    odd = set(sides.conversation[list(problems)].tolist())
    for m, (begin, end) in enumerate(pairwise(start)):
        own = tuple(hashes[begin:end])
        heard.append(
            Heard(
                key=_key(own),
                frames=tuple([int(bool(one)) for one in own]),
                speech_seconds=tuple(spoken[begin:end]),
                problems=_told(range(begin, end), marks, problems) if m in odd else (),
                sha256=("",) * len(own),
                sounds=own,
            )
        )
    return Sound(heard, list(marks), Store(Path()), sides)


def _told(
    own: range, marks: Sequence[str], problems: Mapping[int, str]
) -> tuple[tuple[int | None, bool, str], ...]:
    """What is odd about the sides of a conversation."""
    return tuple(
        (k, bool(marks[side]), problems[side]) for k, side in enumerate(own) if side in problems
    )


def _key(hashes: Sequence[str]) -> str:
    """A name for what is known of a conversation."""
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:32]


def marked(
    sides: int, own: Mapping[int, str], speech: SpeechTable | None, least: float
) -> tuple[Floats | None, list[str]]:
    """Seconds and marks of all sides: what is wrong with a side itself, then what a table says of
    it, then too little speech."""
    marks = [own.get(side, "") for side in range(sides)]
    if speech is None:
        return None, marks
    for side, mark in enumerate(speech.marks):
        if not marks[side]:
            little = bool(speech.seconds[side] < least)
            marks[side] = mark or (LITTLE if little else "")
    return speech.seconds, marks

"""Sides that nobody listened to: what somebody else says about them, in the form of what was heard.

So everything after listening goes one way. In the place of the sound stands a hash that tells a
side from all others (of its vector, or of its name where only scores are given): sides are drawn
and added up in the order of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of
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
    spoken = np.full(len(sides), np.nan) if seconds is None else seconds
    for m in range(len(conversations)):
        own = range(*sides.of(m).indices(len(sides)))
        heard.append(
            Heard(
                key=key_of([hashes[side] for side in own]),
                frames=tuple(int(bool(hashes[side])) for side in own),
                speech_seconds=tuple(float(spoken[side]) for side in own),
                problems=tuple(
                    (k, bool(marks[side]), problems[side])
                    for k, side in enumerate(own)
                    if side in problems
                ),
                sha256=("",) * len(own),
                sounds=tuple(hashes[side] for side in own),
            )
        )
    return Sound(heard, list(marks), Store(Path()), sides)


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

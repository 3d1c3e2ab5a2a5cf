"""Which frames of a recording are a diarized track's own.

A frame is a track's own where it lies wholly within segments of that track and touches none of any
other: where two people speak at once neither can be heard alone, so such frames are left out of
both. Which of its own frames are speech the detector tells, as it does everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.sound.audio import Problem
from spklink.sound.speech import Detector, Framing, speech_frames

Mask = NDArray[np.bool_]
LATE = 1.0  # seconds that a segment may end after the sound without a remark


def own_frames(turns: Turns, tracks: int, framing: Framing, count: int) -> list[Mask]:
    """(tracks, frames) which of the first `count` frames are each track's own."""
    within, touched = np.zeros((2, tracks, count), np.bool_)
    for track, start, end in _joined(turns):
        first, after = round(start * framing.rate), round(end * framing.rate)
        whole = slice(_up(first, framing.step), (after - framing.window) // framing.step + 1)
        within[track, whole.start : max(whole.stop, 0)] = True
        before = (first - framing.window) // framing.step + 1
        touched[track, max(before, 0) : _up(after, framing.step)] = True
    at_once = touched.sum(axis=0, dtype=np.int32)
    return [within[k] & (at_once == touched[k]) for k in range(tracks)]


def _up(samples: int, step: int) -> int:
    return -(-samples // step)


def _joined(turns: Turns) -> Turns:
    """The same turns, those of one track that meet or overlap as one."""
    joined: list[tuple[int, float, float]] = []
    for track, start, end in sorted(turns):
        if joined and joined[-1][0] == track and start <= joined[-1][2]:
            start, end = joined[-1][1], max(end, joined.pop()[2])
        joined.append((track, start, end))
    return tuple(joined)


def speech_within(energy: NDArray[np.float32], detector: Detector, own: Mask) -> Mask:
    """(frames,) those of a track's own frames that are speech; how loud that is they say alone."""
    kept = np.zeros(len(energy), np.bool_)
    kept[own] = speech_frames(energy[own], detector)
    return kept


def outside(turns: Turns, seconds: float, problems: list[Problem]) -> list[Problem]:
    """Segments that a recording of so many seconds does not have. Where its end is missing they
    may well be right."""
    if seconds == 0.0:
        return []
    late = [start for _, start, _ in turns if start >= seconds]
    if late and not any(problem.kind == "truncated" for problem in problems):
        text = f"{len(late)} of {len(turns)} segments begin after its end at {seconds:.1f} s"
        return [Problem("segments", f"{text} (at {min(late):.1f} s); are they of this recording?")]
    latest = max((end for _, _, end in turns), default=0.0)
    if latest > seconds + LATE:
        return [Problem("late", f"segments up to {latest:.1f} s, sound up to {seconds:.1f} s")]
    return []

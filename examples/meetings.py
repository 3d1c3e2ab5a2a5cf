"""Sessions of four people out of real calls of two: two calls side by side, a mono file a track.

One name in ten is left out of the lists, and as many names of people who are not there are added.
A list that lost a name is open (`*`): it says itself that others may be there. One with more names
than tracks says of everybody that he is possible (`?name`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import soundfile as sf

from spoiled import Call, Spoiled, people_of

CHANGED = 0.1


def meetings(calls: list[Call], folder: Path, rng: np.random.Generator) -> Spoiled:
    """Pairs of calls without a common speaker, with lists that are not quite right."""
    folder.mkdir(parents=True, exist_ok=True)
    sessions = [_session(one, two, folder, rng) for one, two in _pairs(calls, rng)]
    everybody = people_of(sessions)
    lists = []
    for session in sessions:
        left = [who for who in sorted(session.truth) if rng.random() >= CHANGED]
        others = [who for who in everybody if who not in session.truth]
        more = rng.binomial(len(session.truth), CHANGED)
        added = rng.choice(others, min(more, len(others)), replace=False).tolist()
        open_ = ["*"] if len(left) < len(session.truth) else []
        named = sorted([*left, *added])
        if len(named) > len(session.truth):  # somebody is absent: anybody may be
            named = [f"?{who}" for who in named]
        lists.append(named + open_)
    return Spoiled(sessions, lists)


def _pairs(calls: list[Call], rng: np.random.Generator) -> list[tuple[Call, Call]]:
    left, found = [calls[k] for k in rng.permutation(len(calls))], []
    while left:
        one = left.pop()
        for k, two in enumerate(left):
            if not set(one.truth) & set(two.truth):
                found.append((one, left.pop(k)))
                break
    return found


def _session(one: Call, two: Call, folder: Path, rng: np.random.Generator) -> Call:
    """The four tracks in random order."""
    tracks = [(call, k) for call in (one, two) for k in (0, 1)]
    order = rng.permutation(4).tolist()
    files = ";".join(str(_mono(*tracks[k], folder)) for k in order)
    who = tuple(tracks[k][0].truth[tracks[k][1]] for k in order)
    return replace(one, name=f"{one.name}+{two.name}", audio=files, truth=who)


def _mono(call: Call, channel: int, folder: Path) -> Path:
    """One channel of a call as a file of its own, written once."""
    path = folder / f"{call.name}-{channel + 1}.flac"
    if not path.exists():
        samples, rate = sf.read(call.audio, dtype="int16", always_2d=True)
        sf.write(path, samples[:, channel], rate)
    return path

"""Conversations as levels and turns, with their truth."""

from __future__ import annotations

import numpy as np

from spklink.sound.levels import Level, kept_level

LOUD, QUIET = 60.0, 25.0  # dB
Rows = list[tuple[int, float, float]]


def made_turns(rng: np.random.Generator, people: int, seconds: float) -> Rows:
    """Turns of people who take them one after the other."""
    rows, now, who = [], 0.5, 0
    while now < seconds - 1.0:
        lasts = float(rng.gamma(2.0, 1.0)) + 0.3
        rows.append((who, now, min(now + lasts, seconds)))
        now += lasts + float(rng.exponential(0.4))
        who = int(rng.choice([p for p in range(people) if p != who]))
    return rows


def made_levels(
    rng: np.random.Generator, turns: Rows, place: list[int], tracks: int, seconds: float
) -> list[Level]:
    """Tracks that are loud while their person has the turn; place: the track of each person."""
    frames = int(seconds * 100)
    found = []
    for track in range(tracks):
        loud = np.zeros(frames, np.bool_)
        for who, start, end in turns:
            if place[who] == track:
                loud[int(start * 100) : int(end * 100)] = True
        loud &= np.repeat(rng.random(frames // 20 + 1) > 0.15, 20)[:frames]  # pauses
        level = np.where(loud, LOUD, QUIET) + rng.normal(0.0, 6.0, frames)
        found.append(kept_level(level))
    return found

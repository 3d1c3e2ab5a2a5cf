"""Meetings: how many tracks and presences are wrong, whether the probabilities hold, what it takes.

python benchmarks/meetings.py            both tables (half an hour)
python benchmarks/meetings.py quality    200 and 2,000 sessions of 3-6 tracks, 200 of 8; EER 7 %
python benchmarks/meetings.py growth     time against tracks and sessions
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from timing import seconds, show, use_one_core

use_one_core()

import numpy as np
from numpy.typing import NDArray

from spklink.database.cliques import find_cliques
from spklink.posterior.answer import STRANGER, Answer, answer_of_states, seat
from spklink.posterior.likelihood import Weight
from spklink.posterior.list_errors import given_rate
from spklink.posterior.posterior import Options
from spklink.posterior.states.seats import build_seats
from spklink.posterior.states.solve import solve_seats
from spklink.runs.stages import peak_memory
from spklink.worlds.simulate import Simulation, simulate

EER, RATE = 7.0, 0.02
WRONG = {"missing": 0.1, "absent": 0.1, "placeholders": 0.05}


@dataclass(frozen=True)
class Quality:
    """Errors of tracks and of presences, beside what the probabilities expect."""

    tracks: int
    wrong: int
    expected: float
    settled: int
    settled_wrong: int
    listed: int
    presence_wrong: int
    presence_expected: float


def truth_of(made: Simulation) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Who is on every side (STRANGER: nobody listed), and which listed people are there."""
    table = made.conversations
    side_person = made.speakers * len(table) + table.sides.conversation
    entry_person = table.people.astype(np.int64) * len(table) + table.listing.conversation
    on_side = np.where(np.isin(side_person, entry_person), made.speakers, STRANGER)
    return on_side, np.isin(entry_person, side_person)


def measure(made: Simulation, found: Answer) -> Quality:
    on_side, there = truth_of(made)
    wrong, presence = found.speaker() != on_side, found.presence.chance
    settled = found.settled()
    return Quality(
        tracks=len(wrong),
        wrong=int(wrong.sum()),
        expected=float((1.0 - found.confidence.chance).sum()),
        settled=int(settled.sum()),
        settled_wrong=int((settled & wrong).sum()),
        listed=len(there),
        presence_wrong=int(((presence > 0.5) != there).sum()),
        presence_expected=float(np.minimum(presence, 1.0 - presence).sum()),
    )


def solved(made: Simulation, rate: float | None) -> tuple[Answer, float]:
    begin = time.process_time()
    cliques = find_cliques(made.conversations)
    found = seat(
        *(made.conversations, cliques, made.links, made.llr),
        weight=Weight(),
        rate=rate,
        options=Options(seed=0),
    )
    return found, time.process_time() - begin


def quality() -> None:
    """One row a database, with the rate of list errors estimated."""
    rows = []
    for sessions, people, tracks, shares in (
        (200, 30, "3-6", {}),
        (200, 30, "3-6", WRONG),
        (200, 60, "8", {}),
        (200, 60, "8", WRONG),
        (2000, 300, "3-6", {}),
        (2000, 300, "3-6", WRONG),
    ):
        rows.append(_row(sessions, people, tracks, shares))
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    columns = ["sessions", "people", "tracks", "lists", "tracks wrong (expected)"]
    columns += ["settled (wrong)", "presence wrong (expected)", "list errors", "method"]
    show("Simulated meetings, EER 7 %", [*columns, "CPU time", "memory"], rows)


def _row(sessions: int, people: int, tracks: str, shares: dict[str, float]) -> tuple[Any, ...]:
    made = simulate(
        shape="meetings",
        conversations=sessions,
        people=people,
        tracks=tracks,
        eer=EER,
        seed=1,
        **shares,
    )
    found, took = solved(made, None)
    one = measure(made, found)
    return (
        sessions,
        people,
        tracks,
        "10 % missing, 10 % absent, 5 % ?" if shares else "right",
        f"{one.wrong} of {one.tracks} ({one.expected:.1f})",
        f"{one.settled} ({one.settled_wrong})",
        f"{one.presence_wrong} of {one.listed} ({one.presence_expected:.1f})",
        f"{found.rate.value:.4f} ({found.rate.low:.4f}-{found.rate.high:.4f})",
        ", ".join(sorted(set(found.beliefs.method))),
        seconds(took),
        f"{peak_memory() / 2**20:.0f} MB",
    )


def growth() -> None:
    """Time of one solution with a given rate; people grow with the sessions."""
    rows = []
    for tracks in (2, 3, 4, 6, 8):
        for sessions in (100, 400, 1600):
            people = max(20, sessions * tracks // 30)
            made = simulate(
                shape="meetings",
                conversations=sessions,
                people=people,
                tracks=str(tracks),
                eer=EER,
                seed=1,
                **WRONG,
            )
            seats = build_seats(made.conversations, made.links, made.llr, rate=RATE)
            begin = time.process_time()
            found = solve_seats(seats)
            took = time.process_time() - begin
            cliques = find_cliques(made.conversations)
            table, rate = made.conversations, given_rate(RATE)
            right = partial(seat, table, cliques, made.links, made.llr, weight=Weight(), rate=0.0)
            own = answer_of_states(table, cliques, rate, seats, found, right)
            one = measure(made, own)
            methods = ", ".join(sorted(set(found.method)))
            share = f"{100.0 * one.wrong / one.tracks:.2f} %"
            rows.append((tracks, sessions, people, methods, share, seconds(took)))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    columns = ["tracks", "sessions", "people", "method", "tracks wrong", "CPU time"]
    show("Time against tracks and sessions", columns, rows)


def warm_up() -> None:
    """Compile everything before anything is timed."""
    made = simulate(shape="meetings", conversations=40, people=12, tracks="3-5", seed=0, **WRONG)
    solved(made, RATE)


def main() -> None:
    warm_up()
    for name in sys.argv[1:] or ("quality", "growth"):
        {"quality": quality, "growth": growth}[name]()


if __name__ == "__main__":
    main()

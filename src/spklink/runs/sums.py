"""Voices of frequent people in a run: how far what they say may be off, told with the answer, kept
in the results folder (sums.npz) and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from spklink.calibration.certificate import (
    Before,
    InFull,
    certify,
    certify_seats,
    nothing_proved,
)
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.settling import listed_pieces
from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.npz_files import open_arrays
from spklink.posterior.posterior import Options
from spklink.posterior.summed import Slack
from spklink.runs.evidence import Evidence
from spklink.runs.result import Result
from spklink.whole_files import write_npz

NAME = "sums.npz"


def with_slack(
    result: Result, voices: FrequentVoices | None, how: Options, before: Before | None = None
) -> Result:
    """A result whose figures promise no more than its sums allow. `before` knows parts of earlier
    proofs."""
    if voices is None or result.calibrated is None:
        return result
    evidence, found = result.evidence, result.calibrated
    table, seconds = evidence.conversations, how.budget.seconds
    nothing = nothing_proved(voices)
    if not np.array_equal(table.listing.start, voices.table.listing.start):
        return _promised(result, nothing, nothing)  # names were added to the lists
    voices = replace(voices, table=table)
    by = voices, found.calibration, found.weight
    slack = seat_slack = nothing
    known, answer = InFull(before), result.answer
    if not answer.binary:
        seat_slack = certify_seats(*by, answer, seconds, known)
    if table.plain:
        piece = listed_pieces(table, evidence.links).label.astype(np.int64)
        slack = certify(*by, answer.given(lists_right=True), piece, seconds, known)
    return _promised(result, slack, seat_slack)


def _promised(result: Result, slack: Slack, seat_slack: Slack) -> Result:
    evidence = replace(result.evidence, slack=slack, seat_slack=seat_slack)
    answer = evidence.promised(result.answer)
    if evidence.conversations.plain and not answer.binary:
        right = evidence.promised(result.answer.given(lists_right=True))
        answer = replace(answer, make_right=lambda: right)
    return replace(result, evidence=evidence, answer=answer)


def write_sums(evidence: Evidence, folder: Path) -> None:
    """sums.npz, where voices were summed."""
    slack, seats, sums = evidence.slack, evidence.seat_slack, evidence.conversations.sums
    if slack is None or seats is None:
        return
    found = {"seats": sums, "most": np.array([slack.most], np.int64)}
    found |= {"shift": slack.shift, "tail": slack.tail}
    write_npz(folder / NAME, found | {"shift_in_full": seats.shift, "tail_in_full": seats.tail})


def read_sums(path: Path, table: Conversations) -> tuple[Conversations, Slack, Slack]:
    """The table of a results folder with what frequent voices say, and how far that may be off: of
    bits, and of the answer in full."""
    tracks, each = table.sides.counts[table.listing.conversation], len(table)
    sizes = {"seats": int(tracks.sum()), "most": 1, "shift": each, "tail": each}
    sizes |= {"shift_in_full": each, "tail_in_full": each}
    with open_arrays(path) as arrays:
        found = {name: arrays.whole(name) for name in sizes}
    for name, size in sizes.items():
        if len(found[name]) != size or np.isnan(found[name]).any():
            raise SpklinkError(f"{path}: {name} does not fit the table; make the results anew")
    values = {name: one.astype(np.float64) for name, one in found.items()}
    most = int(found["most"][0])
    slack = Slack(values["shift"], values["tail"], most)
    in_full = Slack(values["shift_in_full"], values["tail_in_full"], most)
    return replace(table, sums=values["seats"]), slack, in_full

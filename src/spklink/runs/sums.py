"""Voices of frequent people in a run: how far what they say may be off, told with the answer, kept
in the results folder (sums.npz) and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from spklink.calibration.certificate import Before, certify
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.settling import listed_pieces
from spklink.database.conversations import Conversations
from spklink.errors import SpklinkError
from spklink.npz_files import open_arrays
from spklink.posterior.posterior import Options
from spklink.posterior.summed import Slack, unknown_slack
from spklink.runs.evidence import Evidence
from spklink.runs.result import Result
from spklink.whole_files import write_npz

NAME = "sums.npz"


def with_slack(
    result: Result, voices: FrequentVoices | None, how: Options, before: Before | None = None
) -> Result:
    """A result whose figures promise no more than its sums allow. What is proved is proved of
    bits; figures of the answer in full are estimates, as wide as those. `before` knows parts of
    earlier proofs."""
    if voices is None or result.calibrated is None:
        return result
    evidence, found = result.evidence, result.calibrated
    table = evidence.conversations
    if result.solution is not None:
        piece = listed_pieces(table, evidence.links).label.astype(np.int64)
        slack = certify(
            replace(voices, table=table),
            found.calibration,
            found.weight,
            result.solution,
            piece,
            how.budget.seconds,
            before,
        )
    else:
        calls = table.listing.conversation_of(voices.frequent.entry)
        assert voices.frequent.most is not None
        slack = unknown_slack(np.bincount(calls, minlength=len(table)) > 0, voices.frequent.most)
    evidence = replace(evidence, slack=slack)
    result = replace(result, evidence=evidence)
    if result.solution is not None:
        result = replace(result, solution=evidence.promised(result.solution))
    if result.seating is not None:
        result = replace(result, seating=evidence.promised_seats(result.seating))
    return result


def write_sums(evidence: Evidence, folder: Path) -> None:
    """sums.npz, where voices were summed."""
    slack, sums = evidence.slack, evidence.conversations.sums
    if slack is None:
        return
    most = np.array([slack.most], np.int64)
    write_npz(
        folder / NAME, {"seats": sums, "shift": slack.shift, "tail": slack.tail, "most": most}
    )


def read_sums(path: Path, table: Conversations) -> tuple[Conversations, Slack]:
    """The table of a results folder with what frequent voices say, and how far that may be off."""
    with open_arrays(path) as arrays:
        seats, shift, tail, most = (
            arrays.whole(name) for name in ("seats", "shift", "tail", "most")
        )
    tracks = table.sides.counts[table.listing.conversation]
    sizes = {"seats": int(tracks.sum()), "shift": len(table), "tail": len(table), "most": 1}
    for name, found in zip(sizes, (seats, shift, tail, most), strict=True):
        if len(found) != sizes[name] or np.isnan(found).any():
            raise SpklinkError(f"{path}: {name} does not fit the table; make the results anew")
    slack = Slack(shift.astype(np.float64), tail.astype(np.float64), int(most[0]))
    return replace(table, sums=seats.astype(np.float64)), slack

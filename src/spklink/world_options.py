"""Options of commands that count, make or measure databases: entropy, simulate, paper."""

from __future__ import annotations

from typing import Annotated, TypedDict

from spklink.options import Option
from spklink.shared_options import Eer, Seed, World

MOST_SIMULATED = 10**6  # conversations or databases: more take days, and more memory than there is
MOST_COUNTED = 10**9  # conversations whose entropies are computed: floats tell no more apart


class EntropyOptions(TypedDict, total=False):
    conversations: Annotated[
        int | None, Option("Number of two-sided conversations.", None, most=MOST_COUNTED)
    ]
    speakers: Annotated[int | None, Option("Number of speakers.", None, most=2 * MOST_COUNTED)]


class SimulateOptions(TypedDict, total=False):
    shape: Annotated[
        str,
        Option(
            "Who talks to whom.", "cgn", choices=("cgn", "pairs", "star", "network", "meetings")
        ),
    ]
    conversations: Annotated[
        int | None,
        Option("Number of them, else 348 (cgn), 696 (pairs), 100.", None, most=MOST_SIMULATED),
    ]
    people: Annotated[
        int | None, Option("People of all meetings, else 30.", None, least=2, most=MOST_SIMULATED)
    ]
    tracks: Annotated[
        str | None, Option("Tracks a meeting, fewest and most (3-6), or one number.", None)
    ]
    missing: Annotated[float, Option("Share of the people at meetings who are not listed.", 0.0)]
    absent: Annotated[float, Option("Share of names for which one more is listed, not there.", 0.0)]
    placeholders: Annotated[float, Option("Share of the people at meetings listed as ?.", 0.0)]
    split: Annotated[float, Option("Share of the people at meetings who are on two tracks.", 0.0)]
    world: World
    eer: Eer
    seed: Seed
    npz: Annotated[bool, Option("Write scores.npz, not scores.csv.", False)]


class PaperOptions(TypedDict, total=False):
    databases: Annotated[
        int, Option("Simulated databases, one a seed.", 300, least=1, most=MOST_SIMULATED)
    ]
    world: World
    eer: Eer
    seed: Seed

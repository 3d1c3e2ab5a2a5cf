"""The options of commands about what people hear and decide; `settings` lists all commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from spklink.options import Option
from spklink.shared_options import ORDERS, Claimed, Order, Seed, Workers

FEWEST, PAPER, UNCERTAIN, RANDOM = ORDERS
MOST_ASKED = 10**6

Reviewed = Annotated[
    Path,
    Option("Folder written by link or assign, or an exported log.", file=True, argument="OUT"),
]
Certainty = Annotated[
    float, Option("Probability from which a conversation needs no listening.", 0.99)
]


class QueueOptions(TypedDict, total=False):
    order: Order
    count: Annotated[int, Option("So many of them.", 20, least=1, most=MOST_ASKED)]
    certainty: Certainty
    seed: Seed
    workers: Workers


class DecisionsOptions(TypedDict, total=False):
    out: Annotated[
        Path | None,
        Option(
            "Folder for what is handed over: known.csv, assignments.csv, changes.csv, log.jsonl.",
            None,
            file=True,
            flags=("--out", "-o"),
        ),
    ]
    claimed: Claimed
    workers: Workers

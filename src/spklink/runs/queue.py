"""What to listen to next, in which order, and the question that a listen answers.

order       what comes first
fewest      what settles most with fewest listens: in each clique what it is best to hear first,
            the cliques with most conversations settled a listen before others
paper       cliques, the largest first, the one with the biggest log error before others
uncertain   the conversation of the least certain answer
random      any

Ahead of all of them are conversations about which reviewers disagree; behind, those that are
certain but contradict a claim, a list or another cue, and last those that somebody heard and could
not tell. In the order of fewest listens whatever is not best in its clique stands behind what is:
once that was heard it may be settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.posterior.posterior import SETTLED
from spklink.review_options import FEWEST, PAPER, RANDOM, UNCERTAIN
from spklink.runs.part import Part
from spklink.runs.plan import Plan, figures, plan

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
UNKNOWN = 1e9  # listens where they are not known
# Why a conversation is asked about.
DISAGREE, MISFIT, CLAIM, CONFLICT = "disagreement", "misfit", "claim", "conflict"
UNRESOLVABLE, OPEN, UNSURE, CHANGED = "unresolvable", "open", "unsure", "changed"


@dataclass(frozen=True)
class Question:
    """Something about a conversation that only listening settles."""

    kind: str
    reason: str  # in plain words
    question: str
    doubt: float = 0.0  # how probable it is that something is wrong


Asking = Mapping[int, Iterable[Question]]  # by conversation
Keys = list[NDArray[Any]]  # what the queue is sorted by, what goes first before the rest


@dataclass(frozen=True)
class Asked:
    """One entry of the queue."""

    m: int
    conversation: str
    kind: str
    reason: str
    question: str
    probability: float  # of what is said of it now
    bits: float  # that hearing it is expected to tell
    settles: float  # conversations that it is expected to make certain enough, itself among them
    clique: int  # its number, from 0
    listens: tuple[float, float]  # expected until its clique is certain enough: low and high end

    def as_json(self) -> dict[str, object]:
        return {
            "conversation": self.conversation,
            "kind": self.kind,
            "reason": self.reason,
            "question": self.question,
            "probability": self.probability,
            "bits": self.bits,
            "settles": self.settles,
            "clique": self.clique + 1,
            "listens": list(self.listens),
        }


@dataclass
class Board:
    """What is known about all conversations (M,) and cliques (K,), changed clique by clique."""

    label: NDArray[np.int32]
    size: Ints  # (K,)
    certainty: float = SETTLED
    chance: Floats = field(init=False)
    low: Floats = field(init=False)
    high: Floats = field(init=False)
    bits: Floats = field(init=False)
    settles: Floats = field(init=False)
    first: Floats = field(init=False)
    open: Mask = field(init=False)
    leads: Mask = field(init=False)  # the one to hear first in its clique
    listens: Floats = field(init=False)  # (2, K) low and high end
    entropy: Floats = field(init=False)  # (2, K) bits, low and high end
    exact: Mask = field(init=False)  # (K,) whether these are

    def __post_init__(self) -> None:
        calls, cliques = len(self.label), len(self.size)
        self.chance, self.low, self.high = np.ones((3, calls))
        self.bits, self.settles, self.first = np.zeros((3, calls))
        self.open, self.leads = np.zeros((2, calls), np.bool_)
        self.listens, self.entropy = np.zeros((2, 2, cliques))
        self.exact = np.ones(cliques, np.bool_)

    def take(self, cliques: Ints, part: Part) -> None:
        """What some cliques, which are the part, are like now."""
        found, calls = plan(part, self.certainty), part.calls
        self.chance[calls], self.low[calls], self.high[calls] = figures(part)
        self.bits[calls], self.settles[calls] = found.bits, found.settles
        self.first[calls], self.open[calls] = found.first, found.open
        self.listens[:, cliques], self.entropy[:, cliques] = found.listens, found.entropy
        self.exact[cliques] = found.exact
        self.leads[calls] = False
        self.leads[calls[_leading(found, part.label)]] = True

    def set_aside(self, calls: Ints) -> None:
        """Conversations of which nothing is asked."""
        self.open[calls], self.leads[calls] = False, False
        self.bits[calls], self.settles[calls] = 0.0, 0.0


def _leading(found: Plan, label: NDArray[np.int32]) -> Ints:
    """What to hear first in each clique: fewest listens, then most settled, then most told. Heard
    first, it saves its piece what listening to something else there would cost."""
    first = np.round(np.where(np.isfinite(found.first), found.first, UNKNOWN), 9)
    keys = -np.round(found.bits, 9), -np.round(found.settles, 9), first, ~found.open, label
    order = np.lexsort(keys)
    order = order[found.open[order]]
    return np.asarray(order[np.unique(label[order], return_index=True)[1]])


def ordered(
    board: Board,
    order: str,
    *,
    questions: Asking,
    decided: Mask,
    disagree: Mask,
    unsure: Mask,
    seed: int = 0,
) -> Ints:
    """The conversations to ask about, the first one first."""
    flagged = np.zeros(len(decided), np.bool_)
    flagged[list(questions)] = True
    wanted = np.flatnonzero(((board.open | flagged) & ~decided) | disagree)
    tier = np.where(board.open, 1, 2)
    tier[unsure], tier[disagree] = 3, 0
    keys = _KEYS[order](board, questions, seed)
    columns = [np.asarray(key)[wanted] for key in (np.arange(len(decided)), *keys[::-1], tier)]
    return wanted[np.lexsort(columns)]


def _fewest(board: Board, questions: Mapping[int, Iterable[Question]], seed: int) -> Keys:
    count = np.bincount(board.label, board.open, len(board.size))
    worth = count / np.maximum(board.listens.mean(axis=0), 1e-9)
    first = np.where(np.isfinite(board.first), board.first, UNKNOWN)
    return [
        (~board.leads).astype(np.float64),
        np.where(board.open, 0.0, -_doubt(questions, len(board.open))),
        np.where(board.leads, -np.round(worth[board.label], 6), 0.0),
        np.where(board.leads, 0.0, np.round(first, 6)),
        -np.round(board.bits, 9),
    ]


def _paper(board: Board, questions: Mapping[int, Iterable[Question]], seed: int) -> Keys:
    error = -np.log2(np.maximum(board.chance, 1e-300))
    error = np.maximum(error, -np.log2(np.maximum(1.0 - _doubt(questions, len(error)), 1e-300)))
    of_clique = np.bincount(board.label, error, len(board.size))
    return [
        -board.size[board.label].astype(np.float64),
        -np.round(of_clique[board.label], 9),
        board.label.astype(np.float64),
        -np.round(error, 9),
    ]


def _uncertain(board: Board, questions: Mapping[int, Iterable[Question]], seed: int) -> Keys:
    return [np.round(board.chance, 9)]


def _random(board: Board, questions: Mapping[int, Iterable[Question]], seed: int) -> Keys:
    return [np.random.default_rng(seed).random(len(board.open))]


_KEYS: dict[str, Callable[[Board, Asking, int], Keys]] = {
    FEWEST: _fewest,
    PAPER: _paper,
    UNCERTAIN: _uncertain,
    RANDOM: _random,
}


def _doubt(questions: Asking, calls: int) -> Floats:
    """(M,) how probable it is that a claim or a list is wrong."""
    found = np.zeros(calls)
    for m, some in questions.items():
        found[m] = max(one.doubt for one in some)
    return found


def asked(board: Board, table: Conversations, m: int, question: Question) -> Asked:
    """An entry of the queue."""
    k = int(board.label[m])
    return Asked(
        m=m,
        conversation=table.ids[m],
        kind=question.kind,
        reason=question.reason,
        question=question.question,
        probability=float(board.chance[m]),
        bits=float(board.bits[m]),
        settles=float(board.settles[m]),
        clique=k,
        listens=(float(board.listens[0, k]), float(board.listens[1, k])),
    )

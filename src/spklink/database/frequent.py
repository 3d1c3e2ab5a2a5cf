"""People with so many conversations that the pairs of these are not listed.

A person with n conversations has n (n - 1) / 2 links, and each needs memory and time. Of most
people all links are listed. Of a *frequent* one none is: what his voice says of each conversation
comes from a sum over all others (module `frequent` of `calibration`), whose cost grows with n.

Who is frequent is counted, never timed: whoever has more than LONGEST conversations; and, where all
links of the others would still be too many, those with the most conversations, until they are not:
too many to be solved soon, which makes nobody frequent who has no more than SHORTEST conversations,
or too many for the memory of a run, which may.

Index conventions: a person here is a node of `links.speaker_nodes`, entries are those of the
participant lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.conversations import Conversations
from spklink.database.links import speaker_nodes

Ints = NDArray[np.int64]
# Choices. Conversations of one person: what sums leave out is a share of 1/n. Links in all: dense
# cliques of more take minutes (benchmarks/frequent.py); 1446 real calls of 59 people have 71,000.
# A large table may have more, as long as these are few a conversation.
LONGEST, SHORTEST = 256, 32
MOST_LINKS, LINKS_EACH = 300_000, 2  # in all, and times the entries of lists
PAIR_BYTES = 400  # of a link with its side pairs, from scores to posterior (benchmarks/cost.py)
SHARE = 0.2  # of the memory of a run that links may take


@dataclass(frozen=True)
class Frequent:
    """The people whose links are not listed, and where each is listed."""

    person: Ints  # (F,) nodes, rising
    start: Ints  # (F + 1,) where the entries of each begin
    entry: Ints  # of the participant lists, in table order within a person
    most: int | None = None  # conversations of people whose links are listed; None: of everybody

    def __len__(self) -> int:
        return len(self.person)

    @property
    def calls(self) -> Ints:
        """(F,) conversations of each."""
        return np.diff(self.start)

    def of(self, f: int) -> Ints:
        """The entries of one of them."""
        return self.entry[self.start[f] : self.start[f + 1]]


def listed_pairs(calls: Ints) -> Ints:
    """How many links people with so many conversations have."""
    n = calls.astype(np.int64)
    return n * (n - 1) // 2


def most_listed(calls: Ints, gigabytes: float) -> int:
    """With how many conversations a person's links are still listed, given (people,) how many each
    has and the memory of a run."""
    size, people = np.unique(calls[calls <= LONGEST], return_counts=True)
    total = np.cumsum(people * listed_pairs(size))
    soon = total <= max(MOST_LINKS, LINKS_EACH * int(calls.sum()))
    fits = total <= int(SHARE * gigabytes * 1e9 / PAIR_BYTES)
    within = size[fits & (soon | (size <= SHORTEST))]
    return int(within[-1]) if len(within) else 1


def find_frequent(conversations: Conversations, gigabytes: float) -> Frequent:
    """Whose links are not to be listed in a run of so much memory."""
    calls = np.bincount(speaker_nodes(conversations))
    most = None if np.isinf(gigabytes) else most_listed(calls, gigabytes)
    return chosen_frequent(conversations, most)


def chosen_frequent(conversations: Conversations, most: int | None) -> Frequent:
    """The people with more than `most` conversations, or nobody."""
    people = speaker_nodes(conversations)
    calls = np.bincount(people)
    person = np.flatnonzero(calls > max(most or len(conversations), 1))
    order = np.argsort(people, kind="stable")
    begin = (np.cumsum(calls) - calls)[person]
    start = np.concatenate([[0], np.cumsum(calls[person])])
    found = Frequent(person, start, order[ranges(begin, calls[person])])
    return replace(found, most=most if len(person) else None)

"""Cliques: conversations connected through shared speakers, and what can be resolved in them.

The paper's word for a connected component. Posteriors multiply over cliques. A clique in which the
same people are listed in every conversation is *unresolvable*: exchanging two of them everywhere
explains the voices equally well, so one bit or more stays open, unless somebody knows a channel.
A single conversation with one listed person is too: nothing tells on which of its tracks. In larger
cliques some people may be inseparable all the same (`inseparable`), though not all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.database.conversations import Conversations
from spklink.database.links import speaker_nodes


@dataclass(frozen=True)
class Cliques:
    """Cliques numbered by their first conversation in table order, from 0 here, from 1 in files."""

    label: NDArray[np.int32]  # (M,) clique of each conversation
    order: NDArray[np.int64]  # (M,) conversations clique by clique, in table order within each
    start: NDArray[np.int64]  # (K+1,) where each clique begins in `order`
    size: NDArray[np.int64]  # (K,) conversations
    speakers: NDArray[np.int64]  # (K,)
    two_speakers: NDArray[np.bool_]  # (K,) of two people in all
    resolvable: NDArray[np.bool_]  # (K,)

    def __len__(self) -> int:
        return len(self.size)

    def members(self, k: int) -> NDArray[np.int64]:
        return self.order[self.start[k] : self.start[k + 1]]

    def attainable_bits(self) -> int:
        """Entropy that no recognizer can remove: one bit for every unresolvable clique of two
        people, and no less for the others."""
        return int((~self.resolvable).sum())


def find_cliques(conversations: Conversations, certain: NDArray[np.bool_] | None = None) -> Cliques:
    """Connected components; `certain` marks conversations whose channels are known."""
    people = speaker_nodes(conversations)
    label = _by_first_appearance(connected(conversations, people))
    number = int(label.max()) + 1 if len(label) else 0
    owner = np.full(int(people.max()) + 1 if people.size else 0, -1, np.int64)
    owner[people] = np.repeat(label, conversations.listing.counts)
    owner[people[conversations.candidate]] = -1
    speakers = np.bincount(owner[owner >= 0], minlength=number)
    resolvable = ~_all_alike(conversations, label, speakers)
    if conversations.candidate.any():  # of whom voices from elsewhere tell
        resolvable[label[conversations.listing.conversation[conversations.candidate]]] = True
    if certain is not None:
        resolvable |= np.bincount(label, weights=certain, minlength=number) > 0
    return number_cliques(label, speakers, resolvable)


def _all_alike(
    conversations: Conversations, label: NDArray[np.int32], speakers: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(K,) cliques in which every conversation lists everybody, on as many tracks."""
    if conversations.plain:
        return np.asarray(speakers == 2)
    shortest, fewest = np.full((2, len(speakers)), np.iinfo(np.int64).max)
    most = np.zeros(len(speakers), np.int64)
    np.minimum.at(shortest, label, conversations.listing.counts)
    np.minimum.at(fewest, label, conversations.sides.counts)
    np.maximum.at(most, label, conversations.sides.counts)
    together = (shortest == speakers) & (fewest == most)
    alone = (np.bincount(label, minlength=len(speakers)) == 1) & (speakers == 1) & (most > 1)
    return np.asarray(together & ((speakers > 1) | alone))


def inseparable(conversations: Conversations) -> NDArray[np.bool_]:
    """(entries of the lists,) people who are listed wherever another is, as surely, and nowhere
    else: no voice tells the two apart."""
    people, call = speaker_nodes(conversations), conversations.listing.conversation
    perhaps = _as_often(people, call)
    chosen = np.flatnonzero(perhaps[people]) if len(people) else people
    found = np.zeros(len(perhaps), np.bool_)
    if len(chosen):
        order = chosen[np.argsort(people[chosen], kind="stable")]
        where = np.rec.fromarrays([call, conversations.presence])[order]
        who, start = np.unique(people[order], return_index=True)
        ends = [*start[1:].tolist(), len(order)]
        lists = [where[a:b].tobytes() for a, b in zip(start.tolist(), ends, strict=True)]
        times = Counter(lists)
        found[who] = [times[one] > 1 for one in lists]
    return np.asarray(found[people] & ~conversations.candidate)


def _as_often(people: NDArray[np.int64], call: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(people,) those who are listed as often as another, from the same conversation on and up to
    the same: nobody else can be inseparable from somebody."""
    count = int(people.max(initial=-1)) + 1
    times, first, last = np.bincount(people, minlength=count), *np.zeros((2, count), np.int64)
    first += len(call)
    np.minimum.at(first, people, call)
    np.maximum.at(last, people, call)
    order = np.lexsort([last, first, times])
    same = (np.diff(np.stack([last, first, times])[:, order]) == 0).all(axis=0)
    found = np.zeros(count, np.bool_)
    found[order[1:][same]] = found[order[:-1][same]] = True
    return found


def connected(conversations: Conversations, people: NDArray[np.int64]) -> NDArray[np.int32]:
    """(M,) the component of every conversation; `people` numbers the entries of the lists."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = int(people.max()) + 1 if people.size else 0
    # Speakers are the nodes, each list ties its people to its first: no larger than the table.
    # A list without a name is a node of its own.
    listing = conversations.listing
    named = listing.counts > 0
    nobody = count + np.arange(int((~named).sum()))
    first = np.empty(len(named), np.int64)
    first[named], first[~named] = people[listing.start[:-1][named]], nobody
    further = np.ones(len(people), np.bool_)
    further[listing.start[:-1][named]] = False
    ends = np.repeat(first, np.maximum(listing.counts - 1, 0)), people[further]
    count += len(nobody)
    graph = coo_matrix((np.ones(len(ends[0]), np.int8), ends), shape=(count, count))
    component = connected_components(graph, directed=False)[1]
    return np.asarray(component[first], np.int32)


def held_together(
    first: NDArray[np.integer], second: NDArray[np.integer], size: int
) -> NDArray[np.int32]:
    """(size,) the component of each of so many things, of which these pairs are joined."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    joined = np.ones(len(first), np.int8), (first, second)
    graph = coo_matrix(joined, shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], np.int32)


def number_cliques(
    label: NDArray[np.int32], speakers: NDArray[np.int64], resolvable: NDArray[np.bool_]
) -> Cliques:
    """Cliques from the clique of every conversation."""
    size = np.bincount(label, minlength=len(speakers))
    return Cliques(
        label=label,
        order=np.argsort(label, kind="stable"),
        start=np.concatenate([[0], np.cumsum(size)]),
        size=size,
        speakers=speakers,
        two_speakers=speakers == 2,
        resolvable=resolvable,
    )


def _by_first_appearance(component: NDArray[np.int32]) -> NDArray[np.int32]:
    """Renumber components in the order of their first conversation."""
    _, first, inverse = np.unique(component, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse.reshape(-1)]

"""Who talks to whom in a made database.

  cgn      the paper's corpus: 122 cliques, 348 conversations, exactly 356 speakers; or, with a
           number of conversations, cliques drawn in its proportions
  pairs    the same with as many calls again, by pairs of people who hold two to six of them and
           none with others; a number of conversations is that of the first half
  star     one speaker in every conversation, partners that come back
  network  a sparse tree of acquaintances with repeated calls and a few closed triangles

Calls are pairs of numbers of speakers until `as_table` names them.
"""

from __future__ import annotations

import numpy as np

from spklink.database.conversations import Conversations, make_conversations
from spklink.errors import SpklinkError
from spklink.measures.published import PRINTED_TABLE_2, SPEAKERS

Calls = list[tuple[int, int]]
SHAPES = ("cgn", "pairs", "star", "network")
CGN_CLIQUES = {size: row[0] for size, row in PRINTED_TABLE_2.items() if size is not None}
CGN_UNRESOLVABLE_PAIRS = 4  # of the 61 cliques of two conversations


def draw_calls(shape: str, conversations: int | None, rng: np.random.Generator) -> Calls:
    if conversations is not None and conversations < 1:
        raise SpklinkError(f"--conversations {conversations}: at least 1 is needed")
    if shape == "cgn":
        return cgn_calls(rng) if conversations is None else small_calls(conversations, rng)
    if shape == "pairs":
        calls = cgn_calls(rng) if conversations is None else small_calls(conversations, rng)
        return with_pairs(calls, rng)
    count = conversations if conversations is not None else 100
    return star_calls(count, rng) if shape == "star" else network_calls(count, rng)


def small_calls(count: int, rng: np.random.Generator) -> Calls:
    """Resolvable cliques of three people or more in the paper's proportions of sizes; the last one
    as small as the number of conversations asks for."""
    sizes = [m for m, n in CGN_CLIQUES.items() if m > 1 for _ in range(n)]
    plans: list[tuple[int, int]] = []
    left = count
    while left > 0:
        size = min(int(rng.choice(sizes)), left)
        plans.append((size, 3 if size > 1 else 2))
        left -= size
    return clique_calls(plans, rng)


def with_pairs(calls: Calls, rng: np.random.Generator) -> Calls:
    """As many calls again by pairs of people who only call each other."""
    speakers = max(max(call) for call in calls) + 1
    more: Calls = []
    while len(more) < len(calls):
        more += [(speakers, speakers + 1)] * int(rng.integers(2, 7))
        speakers += 2
    every = calls + more
    return [every[k] for k in rng.permutation(len(every))]


def cgn_calls(rng: np.random.Generator) -> Calls:
    """The paper's cliques, in random order; speakers numbered apart in every clique."""
    plans = [(1, 2)] * CGN_CLIQUES[1] + [(2, 2)] * CGN_UNRESOLVABLE_PAIRS
    plans += [(2, 3)] * (CGN_CLIQUES[2] - CGN_UNRESOLVABLE_PAIRS)
    large = [size for size in (3, 4, 5, 6) for _ in range(CGN_CLIQUES[size])]
    # 356 speakers leave two more than three for each of these cliques: two of them have four.
    spare = SPEAKERS - sum(s for _, s in plans) - 3 * len(large)
    extra = set(rng.choice(len(large), spare, replace=False).tolist())
    plans += [(size, 4 if k in extra else 3) for k, size in enumerate(large)]
    return clique_calls(plans, rng)


def clique_calls(plans: list[tuple[int, int]], rng: np.random.Generator) -> Calls:
    """Connected cliques of (calls, people), in random order; people numbered apart in each."""
    calls: Calls = []
    speakers = 0
    for k in rng.permutation(len(plans)):
        size, people = plans[k]
        calls += [(a + speakers, b + speakers) for a, b in _connected(size, people, rng)]
        speakers += people
    return calls


def _connected(size: int, people: int, rng: np.random.Generator) -> Calls:
    """`size` calls that connect all of `people`: a random tree, then random pairs."""
    calls = [(int(rng.integers(k)), k) for k in range(1, people)]
    while len(calls) < size:
        a, b = rng.choice(people, 2, replace=False)
        calls.append((int(a), int(b)))
    return [calls[k] for k in rng.permutation(len(calls))]


def star_calls(count: int, rng: np.random.Generator) -> Calls:
    """Speaker 0 in every call; every partner has one to five of them."""
    calls: Calls = []
    while len(calls) < count:
        partner = calls[-1][1] + 1 if calls else 1
        calls += [(0, partner)] * int(rng.integers(1, 6))
    return calls[:count]


def network_calls(count: int, rng: np.random.Generator) -> Calls:
    """Everyone is introduced by someone; a third of the calls repeat a tie or close a triangle."""
    people = max(2, (2 * count + 2) // 3 + 1)
    parent = np.zeros(people, np.int64)
    parent[1:] = rng.integers(0, np.arange(1, people))
    calls = [(int(parent[k]), k) for k in range(1, people)][:count]
    extra = count - len(calls)
    who = rng.integers(1, people, extra)
    closing = (rng.random(extra) < 0.2) & (parent[who] != 0)
    partner = np.where(closing, parent[parent[who]], parent[who])
    return calls + [(int(a), int(b)) for a, b in zip(partner, who, strict=True)]


def as_table(calls: Calls, rng: np.random.Generator) -> Conversations:
    """Named conversations with the participants listed in random order."""
    turned = rng.random(len(calls)) < 0.5
    width = len(str(len(calls)))
    people = len(str(max((max(c) for c in calls), default=0)))
    return make_conversations(
        (f"call{k:0{width}d}", f"s{b if t else a:0{people}d}", f"s{a if t else b:0{people}d}")
        for k, ((a, b), t) in enumerate(zip(calls, turned, strict=True), start=1)
    )

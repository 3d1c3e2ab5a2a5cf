"""The database as a picture: which cliques are drawn, and as what.

Speakers are nodes and conversations of two are edges; a conversation of more or fewer listed people
is a node of its own (a hub) with an edge to each. A clique of many conversations is a table of
people, where an edge is all conversations of two; of very many people, every one joins the nearest
of the busiest, and an edge is all conversations between two such circles.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges, sums
from spklink.database.links import speaker_nodes
from spklink.database.sides import TWO, two_each
from spklink.report.details import (
    KINDS,
    doubted,
    kind_of,
    open_bits,
    settled,
    significant,
    sureness,
)
from spklink.report.layout import Drawing
from spklink.report.results import Results

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_EDGES = 1500  # in all pictures together
MOST_CLIQUES = 150
FEW_OF_A_SIZE = 8
MOST_IN_ONE = 600  # lines; a larger clique is a table
MOST_LINES = 60  # of a clique that has more of them than two a speaker; beyond it is a table
CIRCLES = 40
MOST_LISTED = 6  # conversations named at a cell of a table
MOST_HUBS = 80  # in one picture; a clique of more is drawn as circles
MOST_PAIRED = 12  # listed people of whom every two are joined by an edge between circles


def by_size(results: Results) -> dict[str, Any]:
    """Cliques by the number of their conversations."""
    cliques = results.cliques
    rows = []
    for name, low, high in size_classes(int(cliques.size.max())):
        here = (cliques.size >= low) & (cliques.size <= high)
        if here.any():
            alone = int((here & ~cliques.resolvable).sum())
            rows.append([name, int(here.sum()), int(cliques.size[here].sum()), alone])
    columns = ["conversations a clique", "cliques", "conversations", "unresolvable cliques"]
    return {"columns": columns, "rows": rows}


def size_classes(largest: int) -> list[tuple[str, int, int]]:
    """1, 2, … 10 one by one, then 11–20, 21–50, 51–100, 101–200 and so on."""
    classes = [(str(m), m, m) for m in range(1, 11)]
    low, steps = 11, (2, 5, 10)
    power = 10
    while low <= largest:
        for step in steps:
            high = power * step
            classes.append((f"{low:,}–{high:,}", low, high))
            low = high + 1
        power *= 10
    return [c for c in classes if c[1] <= largest]


def drawings(results: Results) -> list[Drawing]:
    """The cliques that deserve a look, largest first: doubted ones, then those with most open,
    a few of every size before any others."""
    cliques = results.cliques
    first = np.zeros(len(cliques), np.bool_)
    first[cliques.label[doubted(results)]] = True
    bits = np.round(clique_bits(results), 6)
    others = _rank_in_size(cliques.size, bits) >= FEW_OF_A_SIZE
    order = np.lexsort((np.arange(len(cliques)), -cliques.size, -bits, others, ~first))
    room = MOST_EDGES
    chosen: list[int] = []
    for k in order[: 4 * MOST_CLIQUES].tolist():
        cost = min(edges_of(results, k), MOST_IN_ONE)
        if cost <= room and len(chosen) < MOST_CLIQUES:
            chosen.append(k)
            room -= cost
    chosen.sort(key=lambda k: (-int(cliques.size[k]), k))
    return [draw(results, k) for k in chosen]


def clique_bits(results: Results) -> Floats:
    """(K,) what is open in a clique; of the answer in full, track by track."""
    if results.answer.binary:
        return results.posterior.entropy_bits
    return sums(results.cliques.label, open_bits(results), len(results.cliques))


def edges_of(results: Results, k: int) -> int:
    """How many lines a clique would be drawn with."""
    members = results.cliques.members(k)
    if results.table.plain:
        return len(members)
    return int(results.table.listing.counts[members].sum()) + len(members)


def _rank_in_size(size: Ints, bits: Floats) -> Ints:
    """(K,) place of every clique among those of its size, that with most bits first."""
    order = np.lexsort((np.arange(len(size)), -bits, size))
    count = np.unique(size, return_counts=True)[1]
    rank = np.empty(len(size), np.int64)
    rank[order] = ranges(np.zeros(len(count), np.int64), count)
    return rank


def draw(results: Results, k: int) -> Drawing:
    """One clique: its speakers or circles of speakers, its conversations or bundles of them."""
    cliques, table = results.cliques, results.table
    members = cliques.members(k)
    hubs = 0 if table.plain else int((~_of_two(results, members)).sum())
    drawing = {
        "clique": k + 1,
        "conversations": len(members),
        "speakers": int(cliques.speakers[k]),
        "bits": None if not results.answer.binary else significant(clique_bits(results)[k]),
        "resolvable": bool(cliques.resolvable[k]),
        "settled": int(settled(results)[members].sum()),
        "circles": _crowded(results, k) or hubs > MOST_HUBS,
        "hubs": hubs,
    }
    entries = ranges(table.listing.start[members], table.listing.counts[members])
    nodes, end = np.unique(speaker_nodes(table)[entries], return_inverse=True)
    names = np.empty(len(nodes), np.int64)
    names[end] = table.people[entries]
    ends = np.split(end, np.cumsum(table.listing.counts[members])[:-1])
    if drawing["circles"]:
        return drawing | _circles(results, *_pairs(members, ends), names)
    return drawing | _people(results, members, names, ends)


def _crowded(results: Results, k: int) -> bool:
    """Whether lines would hide each other."""
    lines = edges_of(results, k)
    return lines > MOST_IN_ONE or lines > max(MOST_LINES, 2 * int(results.cliques.speakers[k]))


def _of_two(results: Results, members: Ints) -> NDArray[np.bool_]:
    """Conversations that are a line between two people."""
    table = results.table
    two = (table.listing.counts[members] == TWO) & (table.sides.counts[members] == TWO)
    return np.asarray(two & (table.unknown[members] == 0))


def _people(results: Results, members: Ints, names: Ints, ends: list[Ints]) -> Drawing:
    cliques, low = results.cliques, sureness(results)[1]
    suspicious = set(doubted(results).tolist())
    nodes = [{"speaker": results.table.speakers[s], "speakers": 1} for s in names.tolist()]
    edges = []
    lines = zip(members.tolist(), ends, _of_two(results, members).tolist(), strict=True)
    for m, own, two in lines:
        edge = {
            "conversations": 1,
            "kind": kind_of(low[m], bool(cliques.resolvable[cliques.label[m]])),
            "suspicious": m in suspicious,
            "rows": [m],
        }
        if two:
            edges.append({"ends": own.tolist(), **edge})
            continue
        edges += [{"ends": [len(nodes), p], **edge, "suspicious": False} for p in own.tolist()]
        nodes.append({"speaker": "", "speakers": 0, **edge})
    return {"nodes": nodes, "edges": edges}


def _pairs(members: Ints, ends: list[Ints]) -> tuple[Ints, Ints]:
    """Every two people of every conversation, with that conversation; a person alone is paired with
    himself, and of a long list all are with the first."""
    calls, pairs = [], []
    for m, own in zip(members.tolist(), ends, strict=True):
        if len(own) > MOST_PAIRED:
            found = [(own[0], other) for other in own[1:]]
        else:
            found = [*combinations(own.tolist(), 2)] or [(p, p) for p in own.tolist()]
        pairs += found
        calls += [m] * len(found)
    return np.array(calls, np.int64), two_each(np.array(pairs, np.int64))


def _circles(results: Results, members: Ints, ends: Ints, names: Ints) -> Drawing:
    """Every speaker goes with the nearest of the busiest ones."""
    circle, seeds = _nearest_seed(ends, len(names))
    people = np.bincount(circle, minlength=len(seeds))
    low, bits = sureness(results)[1][members], open_bits(results)[members]
    done = settled(results)[members]
    pair = np.sort(circle[ends], axis=1)
    key = pair[:, 0] * len(seeds) + pair[:, 1]
    order = np.lexsort((np.arange(len(key)), -np.round(bits, 9), key))
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    suspicious = np.isin(members, doubted(results))
    edges = []
    for rows in np.split(order, starts[1:]):
        calls, first = np.unique(members[rows], return_index=True)
        rows = rows[np.sort(first)]  # a conversation may join two circles more than once
        kinds = np.array([low[rows] >= least for _, least in KINDS]).sum(axis=0)
        share = np.bincount(len(KINDS) - kinds, minlength=len(KINDS)) / len(rows)
        edges.append(
            {
                "ends": [int(v) for v in pair[rows[0]]],
                "conversations": len(calls),
                "settled": int(done[rows].sum()),
                "bits": None if not results.answer.binary else significant(bits[rows].sum()),
                "kind": _kind_of_bundle(share),
                "suspicious": bool(suspicious[rows].any()),
                "rows": [int(members[r]) for r in rows[:MOST_LISTED]],
            }
        )
    nodes = [
        {"speaker": results.table.speakers[int(names[s])], "speakers": int(n)}
        for s, n in zip(seeds, people, strict=True)
    ]
    return {"nodes": nodes, "edges": edges}


def _kind_of_bundle(share: Floats) -> str:
    """A bundle is coloured by its most doubtful hundredth."""
    worst = np.flatnonzero(np.cumsum(share[::-1]) >= 0.01)[0]
    return KINDS[len(KINDS) - 1 - int(worst)][0]


def _nearest_seed(ends: Ints, count: int) -> tuple[Ints, Ints]:
    """(count,) the circle of every speaker, and the speaker in the middle of each circle."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import dijkstra

    calls = np.bincount(ends.ravel(), minlength=count)
    seeds = np.sort(np.lexsort((np.arange(count), -calls))[:CIRCLES])
    graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    _, _, source = dijkstra(
        graph.tocsr(),
        directed=False,
        indices=seeds,
        unweighted=True,
        min_only=True,
        return_predecessors=True,
    )
    return np.searchsorted(seeds, source), seeds


def marks(drawing: Drawing) -> list[Drawing]:
    """All of a drawing that stands for conversations: edges, and hubs."""
    return [*drawing["edges"], *(node for node in drawing["nodes"] if not node["speakers"])]

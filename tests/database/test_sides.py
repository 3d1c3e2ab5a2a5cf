"""Numbering of tracks and lists, against plain loops; conversations of any number of tracks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spklink.database.cliques import find_cliques
from spklink.database.conversations import make_conversations
from spklink.database.links import candidates, find_links, needed_sides, pair_starts
from spklink.database.sides import (
    NO_CONVERSATION,
    NO_TRACK,
    SideFinder,
    are_strangers,
    certainly_different,
    names_on,
    numbered,
    side_name,
    speakers_on,
)
from spklink.scores.files import Collector
from spklink.scores.needed import known_non_targets

LISTS = st.lists(
    st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), min_size=1, max_size=7
)


def made(lists: list[list[int]], tracks: list[int] | None = None):
    """Conversations with these participants and numbers of tracks, past the reader's refusal."""
    plain = make_conversations([(f"c{m}", "x", "y") for m in range(len(lists))])
    return replace(
        plain,
        speakers=[f"s{k}" for k in range(6)],
        listing=numbered(map(len, lists)),
        people=np.array([k for one in lists for k in one], np.int32),
        sides=numbered(tracks or map(len, lists)),
    )


def all_sides(table):
    return [(m, k) for m in range(len(table)) for k in range(int(table.sides.counts[m]))]


@given(LISTS, st.data())
def test_numbers_and_names(lists, data):
    tracks = data.draw(st.lists(st.integers(1, 4), min_size=len(lists), max_size=len(lists)))
    table = made(lists, tracks)
    sides, find = all_sides(table), SideFinder(table)
    assert len(table.sides) == len(sides)
    for number, (m, k) in enumerate(sides):
        assert (table.sides.conversation[number], table.sides.position[number]) == (m, k)
        assert find(f"c{m}", str(k + 1)) == find(f" c{m}", f"{k + 1} ") == number
        assert side_name(table, number) == f"c{m} channel {k + 1}"
    assert find("nobody", "1") == NO_CONVERSATION
    for m, count in enumerate(tracks):
        assert find(f"c{m}", str(count + 1)) == find(f"c{m}", "0") == find(f"c{m}", "x") == NO_TRACK


@given(LISTS, st.data())
def test_strangers_by_plain_sets(lists, data):
    tracks = data.draw(st.lists(st.integers(1, 4), min_size=len(lists), max_size=len(lists)))
    table = made(lists, tracks)
    sides = all_sides(table)
    every = np.arange(len(sides))
    one, two = (grid.ravel() for grid in np.meshgrid(every, every, indexing="ij"))
    apart = np.array([[not set(lists[m]) & set(lists[n]) for n, _ in sides] for m, _ in sides])
    same = np.array([[m == n for n, _ in sides] for m, _ in sides])
    assert np.array_equal(are_strangers(table, every, every), apart)
    assert np.array_equal(are_strangers(table, every, every, surely=False), apart & ~same)
    found = certainly_different(table, one, two)
    assert np.array_equal(found, (apart | same).ravel())
    first, second = known_non_targets(table, np.random.default_rng(0))
    assert certainly_different(table, first, second).all()
    within = {(a, b) for a in every for b in every if a < b and same[a, b]}
    assert within <= set(zip(first.tolist(), second.tolist(), strict=True))


@given(LISTS, st.data())
def test_links_and_needed_pairs_by_plain_loops(lists, data):
    tracks = data.draw(st.lists(st.integers(1, 3), min_size=len(lists), max_size=len(lists)))
    table = made(lists, tracks)
    links = find_links(table)
    expected = {
        (i, j, s, lists[i].index(s), lists[j].index(s))
        for i in range(len(lists))
        for j in range(i + 1, len(lists))
        for s in set(lists[i]) & set(lists[j])
    }
    i, j = links.first[links.pair], links.second[links.pair]
    speaker = [lists[a][p] for a, p in zip(i, links.position_first, strict=True)]
    rows = zip(i, j, speaker, links.position_first, links.position_second, strict=True)
    assert {tuple(map(int, row)) for row in rows} == expected
    sides = all_sides(table)
    where = {side: number for number, side in enumerate(sides)}
    plain = [
        (where[a, u], where[b, v])
        for a, b in zip(links.first.tolist(), links.second.tolist(), strict=True)
        for u in range(tracks[a])
        for v in range(tracks[b])
    ]
    one, two = needed_sides(links, table.sides)
    assert list(zip(one.tolist(), two.tolist(), strict=True)) == plain
    start = pair_starts(links, table.sides)
    of_links = [n for e in links.pair.tolist() for n in range(start[e], start[e + 1])]
    assert candidates(links, table.sides).tolist() == of_links
    collector = Collector(table, links)
    assert collector.positions(two, one).tolist() == list(range(len(plain)))
    assert [collector.name(k) for k in range(len(plain))] == [
        f"{side_name(table, a)} with {side_name(table, b)}" for a, b in plain
    ]


@given(LISTS)
def test_cliques_are_what_lists_connect(lists):
    table = made(lists)
    label = find_cliques(table).label
    parts: list[tuple[set[int], set[int]]] = []
    for m, people in enumerate(lists):
        touched = [part for part in parts if part[1] & set(people)]
        calls = {m}.union(*(part[0] for part in touched))
        parts = [part for part in parts if part not in touched]
        parts.append((calls, set(people).union(*(part[1] for part in touched))))
    for calls, people in parts:
        k = label[min(calls)]
        assert set(np.flatnonzero(label == k).tolist()) == calls
        assert find_cliques(table).speakers[k] == len(people)


def test_who_is_on_which_side():
    table = make_conversations([("x", "a", "b"), ("y", "c", "a"), ("z", "a", "d")])
    names = [
        table.speakers[k] if k >= 0 else None for k in speakers_on(table, np.array([0, 1, -1]))
    ]
    assert names == ["a", "b", "a", "c", None, None]
    assert names_on(table, 1, 0) == ("c", "a")
    assert names_on(table, 1, 1) == ("a", "c")

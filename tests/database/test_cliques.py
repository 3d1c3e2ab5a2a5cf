from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spklink import find_cliques, read_conversations
from spklink.database.cliques import inseparable
from spklink.database.conversations import make_conversations
from spklink.database.links import find_links

PEOPLE = "abcdefgh"
calls_strategy = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)).filter(lambda c: c[0] != c[1]),
    min_size=1,
    max_size=12,
)


def named(calls):
    return make_conversations((f"c{k}", a, b) for k, (a, b) in enumerate(calls))


def flood(calls):
    """Clique of every call by plain flooding, numbered by first appearance."""
    label = [-1] * len(calls)
    number = 0
    for start in range(len(calls)):
        if label[start] >= 0:
            continue
        wave = [start]
        while wave:
            m = wave.pop()
            label[m] = number
            wave += [k for k in range(len(calls)) if label[k] < 0 and set(calls[k]) & set(calls[m])]
        number += 1
    return label


@given(calls_strategy)
def test_components_against_flooding(calls):
    cliques = find_cliques(named(calls))
    assert cliques.label.tolist() == flood(calls)
    for k in range(len(cliques)):
        members = cliques.members(k).tolist()
        assert members == [m for m, c in enumerate(cliques.label) if c == k]
        people = {p for m in members for p in calls[m]}
        assert cliques.speakers[k] == len(people)
        assert cliques.resolvable[k] == (len(people) > 2)
    assert cliques.attainable_bits() == sum(not r for r in cliques.resolvable)


@given(calls_strategy)
def test_who_is_never_apart_against_sets_of_calls(calls):
    table = named(calls)
    where = {who: {m for m, call in enumerate(calls) if who in call} for who in PEOPLE}
    expected = [
        any(where[who] == where[other] for other in PEOPLE if other != who)
        for call in calls
        for who in call
    ]
    assert inseparable(table).tolist() == expected


@given(calls_strategy)
def test_links_against_pairs(calls):
    links = find_links(named(calls))
    found = {
        (int(links.first[e]), int(links.second[e]), int(p), int(q), int(n))
        for e, p, q, n in zip(
            links.pair, links.position_first, links.position_second, links.calls, strict=True
        )
    }
    expected = {
        (i, j, calls[i].index(s), calls[j].index(s), sum(s in c for c in calls))
        for i in range(len(calls))
        for j in range(i + 1, len(calls))
        for s in set(calls[i]) & set(calls[j])
    }
    assert found == expected
    assert len(links.pair) == len(expected)


def test_consecutive_links_follow_the_table():
    links = find_links(named([("a", "b"), ("a", "c"), ("d", "a")]), consecutive=True)
    assert list(zip(links.first.tolist(), links.second.tolist(), strict=True)) == [(0, 1), (1, 2)]


def test_groups_are_never_linked(write):
    rows = "x,,a;b,1\ny,,a;c,1\nz,,a;d,2\n"
    path = write("c.csv", "conversation,audio,participants,group\n" + rows)
    table = read_conversations(path)
    cliques, links = find_cliques(table), find_links(table)
    assert cliques.label.tolist() == [0, 0, 1]
    assert len(links.pair) == 1
    assert links.calls.tolist() == [2]  # the call of the other group does not count


def test_a_known_channel_makes_two_speakers_resolvable():
    table = named([("a", "b"), ("b", "a"), ("c", "d")])
    cliques = find_cliques(table, np.array([False, True, False]))
    assert cliques.resolvable.tolist() == [True, False]
    assert cliques.two_speakers.tolist() == [True, True]


def test_real_calls_are_one_clique(real_calls):
    cliques = find_cliques(read_conversations(real_calls / "conversations.csv"))
    assert cliques.size.tolist() == [420]
    assert cliques.resolvable.all()

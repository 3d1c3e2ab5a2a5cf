"""What linking would cost is counted without a list of pairs, and what cannot be is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spklink import assign, check, read_conversations
from spklink.database.links import find_links, pair_starts
from spklink.errors import SpklinkError
from spklink.runs import cost
from spklink.runs.cost import in_words, side_pairs

couples = st.lists(st.sampled_from("abcd"), min_size=2, max_size=2, unique=True)


@given(st.lists(st.tuples(couples, st.sampled_from(["", "x"])), min_size=1, max_size=12))
def test_pairs_are_those_of_the_links(lists):
    rows = [
        {"conversation": f"c{k}", "participants": ";".join(who), "group": group}
        for k, (who, group) in enumerate(lists)
    ]
    table = read_conversations(rows)
    assert side_pairs(table) == pair_starts(find_links(table), table.sides)[-1]


def test_pairs_of_longer_lists_are_no_fewer():
    rows = [{"conversation": k, "participants": "a;b;c", "tracks": 3} for k in range(4)]
    rows += [
        {"conversation": "x", "participants": "a;d;?"},
        {"conversation": "y", "participants": "d;*"},
    ]
    table = read_conversations(rows)
    listed = pair_starts(find_links(table), table.sides)[-1]
    assert listed <= side_pairs(table) <= 3 * listed


def star(calls):
    return [{"conversation": k, "participants": f"anna;p{k}"} for k in range(calls)]


def test_what_cannot_fit_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(cost, "machine_memory", lambda: 2 << 30)
    with pytest.raises(SpklinkError) as error:
        assign(star(9_000), lambda one, two: 0.0)
    assert "18,000 sides and 161,982,000 side pairs need about 59.1 GB" in str(error.value)
    assert "this machine has 2 GB" in str(error.value)
    assert "'anna' has 9,000" in str(error.value)
    assert "divide the calls by a column group" in str(error.value)
    monkeypatch.setattr(cost, "machine_memory", lambda: None)
    assert cost.refuse_beyond_memory(read_conversations(star(3))) is None


def test_check_says_it_too(monkeypatch):
    monkeypatch.setattr(cost, "machine_memory", lambda: 4 << 30)
    found = check(star(3_000))["cost"]
    assert (found["side_pairs"], found["summed"]) == (0, 1)  # of very many calls they are summed
    [text] = in_words(found | {"memory_mb": [5000.0, 9000.0]})
    assert text.startswith("6,000 sides, 0 side pairs to compare, and 1 person with more than ")
    low, high = found["minutes"]
    assert 0 < low < high < 2
    assert "with vectors from elsewhere linking would take " in text
    assert text.endswith("4.9 to 8.8 GB of memory: more than the 4 GB of this machine")

"""People without a name who are heard again: blocks, labels that stay, the run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from given_voices import make_voices
from spklink import link
from spklink.runs.enrolled import enrolment_table
from spklink.runs.unknown import Earlier, _labelled, earlier_labels

SIDES = st.tuples(st.sampled_from("abcdef"), st.integers(1, 2))


@given(
    st.dictionaries(SIDES, st.sampled_from(["unknown-1", "unknown-2", "unknown-5"])),
    st.lists(SIDES, unique=True, max_size=12),
    st.integers(1, 4),
)
def test_labels_stay_and_are_never_given_twice(earlier, sides, size):
    blocks = [sides[k : k + size] for k in range(0, len(sides), size)]
    labels, last = _labelled(blocks, Earlier(earlier, 5))
    assert len(set(labels)) == len(labels)
    fresh = [label for label in labels if label not in earlier.values()]
    assert sorted(fresh) == sorted(f"unknown-{k}" for k in range(6, last + 1))
    again = {side: label for block, label in zip(blocks, labels, strict=True) for side in block}
    assert _labelled(blocks, Earlier(again, last)) == (labels, last)


def test_a_label_goes_with_most_of_its_tracks():
    earlier = Earlier({("a", 1): "unknown-1", ("b", 1): "unknown-1", ("c", 1): "unknown-1"}, 1)
    blocks = [[("a", 1), ("x", 1)], [("b", 1), ("c", 1)], [("y", 1), ("z", 2)]]
    assert _labelled(blocks, earlier) == (["unknown-2", "unknown-1", "unknown-3"], 3)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Calls of twelve people; three are `?` wherever they are."""
    voices = make_voices(towns=2, people=6, calls=30, noise=0.3, seed=4)
    strange = {"t0p0", "t0p1", "t1p0"}
    truth = {(row["conversation"], int(row["channel"])): row["speaker"] for row in voices.key}
    table = []
    for row in voices.table:
        names = ["?" if who in strange else who for who in row["participants"].split(";")]
        table.append(row | {"participants": ";".join(names)})
    folder = tmp_path_factory.mktemp("unknown")

    def linked(calls, out=None):
        arrays = voices.arrays()
        return link(table[:calls], folder / out if out else None, embeddings=arrays, workers=1)

    return linked, truth, strange, folder


def test_blocks_are_people_and_labels_stay_when_calls_are_added(case):
    linked, truth, strange, folder = case
    first = linked(50, "out")
    rows = first.unknown.rows
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    by_label = {}
    for label, name, channel, chance in rows:
        by_label.setdefault(label, set()).add(truth[name, channel])
        assert 0.0 < float(chance) <= 1.0
    assert all(len(people) == 1 for people in by_label.values())
    assert {who for people in by_label.values() for who in people} <= strange
    assert earlier_labels(folder / "out").last == first.unknown.last == len(by_label)
    before = {row[1:3]: row[0] for row in rows}
    more = linked(60, "out").unknown
    after = {row[1:3]: row[0] for row in more.rows}
    kept = [after[side] == label for side, label in before.items() if side in after]
    assert np.mean(kept) > 0.7
    whose = {label: who.pop() for label, who in by_label.items() if len(who) == 1}
    assert all(truth[side] == whose[label] for side, label in after.items() if label in whose)


def test_labels_are_enrolled_from_a_folder(case):
    *_, folder = case
    text = enrolment_table(folder / "out").data.decode()
    assert "unknown-" in text
    assert "t0p0" not in text

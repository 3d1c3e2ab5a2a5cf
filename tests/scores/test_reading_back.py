"""Scores of a results folder are read back at the cost of what was written."""

from __future__ import annotations

import tracemalloc

import numpy as np

from spklink.database.conversations import make_conversations
from spklink.scores.files import read_pairs, write_scores
from spklink.scores.needed import SideScores

CALLS = 3000  # of one person: 4.5 million pairs of calls, none of them in the file


def test_pairs_of_frequent_people_are_not_listed(tmp_path):
    table = make_conversations((f"c{m}", "anna", f"p{m}") for m in range(CALLS))
    kept = SideScores(np.array([0, 5]), np.array([4, 9]), np.array([0.5, -2.0]))
    write_scores(tmp_path / "llrs.npz", table, kept)
    tracemalloc.start()
    found = read_pairs(tmp_path / "llrs.npz", table)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for name in ("side_1", "side_2", "score"):
        assert np.array_equal(getattr(found, name), getattr(kept, name))
    assert most < 20e6

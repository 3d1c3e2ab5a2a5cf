"""The recognizer on the page docs/how-to/recognizer.md: thirty lines, and they work."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from spklink import link, read_conversations, read_key
from spklink.database.sides import speakers_on

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "recognizer.md"


@pytest.fixture
def written():
    """The class on the page."""
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 30
    room = {"__name__": "page"}
    exec(compile(block, str(PAGE), "exec", dont_inherit=True), room)
    return room["Spectrum"]


def test_the_page_links_calls(written, calls, tmp_path):
    found = link(
        calls / "conversations.csv", tmp_path / "out", recognizer=written(), all_pairs=True
    )
    key = read_key(calls / "key.csv", read_conversations(calls / "conversations.csv"))
    people = speakers_on(found.conversations, key.bits)
    same = people[found.raw.side_1] == people[found.raw.side_2]
    scores = found.raw.score
    assert scores[same].mean() > scores[~same].mean() + 0.2


def test_the_cache_tells_sizes_apart(written):
    assert written().fingerprint == written().fingerprint
    assert written().fingerprint != written(size=128).fingerprint


def test_any_length_has_a_vector(written):
    rng = np.random.default_rng(0)
    for length in (1, 255, 256, 4000):
        made = written().vector(rng.standard_normal(length).astype(np.float32))
        assert made.shape == (256,)
        assert made.dtype == np.float32
        assert np.isfinite(made).all()

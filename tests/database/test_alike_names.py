"""Of very many names the same slips and placeholders are told as of few."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spklink.database import alike_names, placeholders
from spklink.database.slips import slips
from spklink.texts import Texts

LETTERS = "abAB 1-`\t\u200büßéаҌ.x"
words = st.text(LETTERS, max_size=7)
stems = st.sampled_from(["Janssen", "Jansen", "Müller", "Mueller", "jannsen ", "N01001", "spk 12"])


@pytest.fixture
def many(monkeypatch):
    """As if any number were many."""
    monkeypatch.setattr(alike_names, "FEW", 0)
    monkeypatch.setattr(placeholders, "FEW", 0)


def few(names):
    before, alike_names.FEW = alike_names.FEW, 1 << 60
    try:
        return slips(names, [1] * len(names), lambda a, b: False)
    finally:
        alike_names.FEW = before


@given(st.lists(words | stems | st.tuples(stems, words).map("".join), max_size=30, unique=True))
@example(["abcde1", "abcd1", "abcdf1", "abcde2", "ABCDE1"])
@example(["Müllers", "Muellers", "Mullers", "muellerss", "Mül lers"])
def test_many_names_have_the_slips_of_few(names):
    before, alike_names.FEW = alike_names.FEW, 0
    try:
        found = slips(names, [1] * len(names), lambda a, b: False)
    finally:
        alike_names.FEW = before
    assert found == few(names)


def test_most_names_are_left_out(many):
    names = Texts.of([*(f"customer{k:05}" for k in range(1000)), "Janssen", "Jansen"])
    near = alike_names.with_near_name(names, str.casefold, 5)
    assert near.tolist() == [1000, 1001]
    assert alike_names.with_same_key(names, lambda name: [name]).tolist() == []


def test_too_many_names_are_said(many, monkeypatch):
    monkeypatch.setattr(alike_names, "MOST", 2)
    found = slips(["Janssen", "Jansen", "Peters"], [1, 1, 1], lambda a, b: False)
    assert found == ["3 names: too many to look for slips of one letter among them"]


@given(st.lists(words | st.sampled_from(["N.N.", "Speaker 12", "agent007", "xx", "9", "spk-1-2"])))
def test_placeholders_among_many(names):
    before, placeholders.FEW = placeholders.FEW, 0
    try:
        found = placeholders.placeholders(Texts.of(names))
    finally:
        placeholders.FEW = before
    plain = [k for k, name in enumerate(names) if placeholders.is_placeholder(name)]
    assert found.tolist() == plain

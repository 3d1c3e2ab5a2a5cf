"""Recordings of very many rows are missed as those of a few are."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from spklink.sound import presence
from spklink.sound.places import located, refusal
from spklink.sound.presence import not_there
from spklink.texts import Texts


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("1.wav", "a/2.wav", "a/b/3.wav", "ä.wav"):
        (tmp_path / name).write_bytes(b"x")
    os.mkfifo(tmp_path / "a" / "pipe.wav")
    (tmp_path / "link.wav").symlink_to(tmp_path / "1.wav")
    (tmp_path / "broken.wav").symlink_to(tmp_path / "gone.wav")
    return tmp_path


NAMES = [
    *("1.wav", "a/2.wav", "a/b/3.wav", "ä.wav", "link.wav", "a/../1.wav", "./1.wav", "a//2.wav"),
    *("gone.wav", "a/gone.wav", "no/1.wav", "a/pipe.wav", "a/b", "a", "..", "n" * 300, "a/"),
    *("broken.wav", "1.wav/x", "s9://x/y.wav"),
]


def test_the_same_as_one_by_one(folder):
    names = Texts.of([*NAMES, str(folder / "1.wav"), str(folder / "gone.wav")])
    one_by_one = defaultdict(list)
    for k, name in enumerate(names):
        if why := refusal(located(folder, name)):
            one_by_one[why].append(k)
    found = not_there(folder, names)
    assert found == one_by_one
    assert sorted(len(which) for which in found.values()) == [1, 1, 1, 4, 6]


def test_of_many_missing_files_some_are_looked_for(folder, monkeypatch):
    monkeypatch.setattr(presence, "MAX_LOOKED_FOR", 2)
    names = ["1.wav", "a/2.wav", "no/1", "no/2", "no/3", "a/b/3.wav", "gone", "ä.wav"]
    assert not_there(folder, Texts.of(names)) == {"no such file": [2, 3, 4, 6]}


def test_what_a_folder_calls_otherwise_is_found(folder, monkeypatch):
    """A system may take two names for one; then nothing is said of those not looked at."""
    monkeypatch.setattr(presence, "MAX_LOOKED_FOR", 2)
    looked = presence.refusal
    monkeypatch.setattr(presence, "refusal", lambda p: "" if p.name == "1.WAV" else looked(p))
    assert not_there(folder, Texts.of(["1.WAV", "x", "y", "1.wav"])) == {"no such file": [1]}

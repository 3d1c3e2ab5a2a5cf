from __future__ import annotations

from spklink.words import counted


def test_one_is_singular_and_thousands_are_separated():
    assert counted(0, "call") == "0 calls"
    assert counted(1, "call") == "1 call"
    assert counted(12345, "call") == "12,345 calls"
    assert counted(12345, "call", thousands="") == "12345 calls"

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from spklink.words import counted, for_screen, printable, printable_json, readable

TURNING = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def test_one_is_singular_and_thousands_are_separated():
    assert counted(0, "call") == "0 calls"
    assert counted(1, "call") == "1 call"
    assert counted(12345, "call") == "12,345 calls"
    assert counted(12345, "call", thousands="") == "12345 calls"


def test_what_would_be_carried_out_is_spelled_out():
    assert printable("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07"
    assert printable("one\ntwo\r\tthree\x85") == "one\\ntwo\\r\\tthree\\x85"
    assert printable("\u202egnp.exe\u2069 \u2028\ud800") == ("\\u202egnp.exe\\u2069 \\u2028\\ud800")
    for plain in ("Zoë O'Neil \\x1b", "שלום", "👩‍👩‍👧", "e\u0301", "C:\\calls\\new.wav"):
        assert printable(plain) == plain


@given(st.text())
def test_nothing_printable_moves_a_cursor_or_turns_text(text):
    shown = printable(text)
    assert printable(shown) == shown
    for letter in shown:
        assert unicodedata.category(letter) not in ("Cc", "Zl", "Zp", "Cs")
        assert unicodedata.bidirectional(letter) not in TURNING


@given(st.text())
def test_json_keeps_its_meaning(text):
    made = printable_json(json.dumps({"name": text}, ensure_ascii=False, indent=1))
    assert json.loads(made) == {"name": text}
    assert printable(made.replace("\n", "")) == made.replace("\n", "")


def test_words_from_right_to_left_stay_by_themselves():
    assert for_screen("speaker 'שלום עולם' has 3") == "speaker '\u2068שלום עולם\u2069' has 3"
    assert for_screen("نعم, لا") == "\u2068نعم\u2069, \u2068لا\u2069"
    assert for_screen("plain \x1b") == "plain \\x1b"


def test_a_name_that_looks_empty_is_spelled_out():
    assert readable("\u200b\u3164") == "\\u200b\\u3164"
    assert readable("a\u200d") == "a\u200d"
    assert readable("") == ""

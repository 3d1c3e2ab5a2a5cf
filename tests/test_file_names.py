"""Tables by columns lead to recordings from another folder as tables row by row do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spklink import whole_columns
from spklink.runs.inputs import seen_from
from spklink.tables import Content

HOME = Path("/data/of mine")
FILES = "1.wav,a/1.wav,a/b/2.wav,../c/1.wav,/abs/x.wav,./1.wav,a//1.wav,é.wav, a/1.wav ,,x"
STEPS = "out,..,a/..,a/,s3://b/1.wav,zip://x.wav::a/b.zip,mine,data,."
plain = st.sampled_from(FILES.split(","))
names = plain | plain | st.sampled_from(STEPS.split(","))
cells = st.lists(names, min_size=1, max_size=3).map(";".join)


def both(text, folder):
    before = whole_columns.LEAST
    try:
        for least in (0, 1 << 60):
            whole_columns.LEAST = least
            yield seen_from(Content(HOME / "t.csv", text.encode()), folder)
    finally:
        whole_columns.LEAST = before


@given(
    st.lists(cells, min_size=1, max_size=6),
    st.sampled_from(["/data/of mine/out", "/data", "/elsewhere/out", "/data/of mine"]),
)
@example(["a/1.wav;a/2.wav", "", "b/1.wav"], "/elsewhere/out")
@example(["1.wav;", ";1.wav"], "/data")
def test_the_same_bytes(audio, folder):
    rows = [f"c{k},{files}, a ;b,x y" for k, files in enumerate(audio)]
    text = "\n".join(["conversation,audio,participants,note", *rows, ""])
    by_columns, by_rows = both(text, Path(folder))
    assert by_columns == by_rows


@pytest.mark.parametrize("text", ["conversation,participants\n1,a;b\n", 'Audio,x\n"a,b.wav",1\n'])
def test_other_columns(text):
    by_columns, by_rows = both(text, Path("/out"))
    assert by_columns == by_rows

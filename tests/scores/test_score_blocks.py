"""Scores by blocks of columns are what they are row by row; so are their errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from spklink import table_blocks, whole_columns
from spklink.database.conversations import make_conversations
from spklink.database.links import find_links
from spklink.errors import SpklinkError
from spklink.scores.files import COLUMNS, read_all_scores, read_scores

TABLE = make_conversations([("x", "a", "b"), ("y", "b", "c"), ("é", "a", "c")])
LINKS = find_links(TABLE)
HEADER = ",".join(COLUMNS)


def seen(path, least, block):
    """Every score in the order in which it passes by, or the error."""
    shown: list[tuple[int, int, float]] = []

    def observe(one, two, score):
        shown.extend(zip(one.tolist(), two.tolist(), score.tolist(), strict=True))

    before = whole_columns.LEAST, table_blocks.BLOCK
    whole_columns.LEAST, table_blocks.BLOCK = least, block
    try:
        read_all_scores(path, TABLE, LINKS, observe)
    except SpklinkError as error:
        return str(error)
    finally:
        whole_columns.LEAST, table_blocks.BLOCK = before
    return shown


names = st.sampled_from(["x", "y", "é", " x", "z"])
channels = st.sampled_from(["1", "2", "2 "])
numbers = [" 1", "1_0", "2.", ".5", "1e1", "+3", "-7.25", "0.1"]
# Each two sides always have the same score: which of two that differ is named depends on blocks.
good = st.tuples(names, channels, names, channels).map(
    lambda row: ",".join([*row, numbers[sum(map(ord, "".join(sorted("".join(row))))) % 8]])
)
odd = st.sampled_from(
    [
        *("x,1,y,3,1", "x,3,y,1,two", "z,1,y,1,nan", "z,1,y,1,inf", "x,1,y,1", "", "x,1,y,1,1,1"),
        *('"z",1,y,1,1', '"x,1,y,1,1', 'z,1,y,1,"2"', 'z,1,"y\n",2,1', "z,1,y,1,1\r", "x,\0,z,1,1"),
    ]
)


@given(st.lists(good, max_size=12), odd | good, st.lists(good, max_size=8), st.integers(60, 400))
@example(["x,1,y,1,1"] * 5, "x,1,z,1,two", ["x,1,y,1,1"] * 5, 60)
@example(["x,1,y,1,1"] * 5, '"x,1,y,1,1', [], 60)
def test_the_same_scores_and_errors(tmp_path_factory, first, between, last, block):
    path = tmp_path_factory.mktemp("scores") / "s.csv"
    path.write_bytes("\n".join([HEADER, *first, between, *last, ""]).encode())
    assert seen(path, 0, block) == seen(path, 1 << 60, block)


@pytest.mark.parametrize("header", ["", "conversation_1", f"{HEADER},{HEADER}", f'"{HEADER}'])
def test_headers_are_refused_as_before(tmp_path, header):
    path = tmp_path / "s.csv"
    path.write_text(f"{header}\nx,1,y,1,1\n")
    found = seen(path, 0, 64)
    assert found == seen(path, 1 << 60, 64)
    assert isinstance(found, str)


def test_letters_of_another_encoding_are_told_with_their_line(tmp_path):
    path = tmp_path / "s.csv"
    rows = [f"{HEADER},note", *["x,1,y,1,1,"] * 9000, "x,1,y,1,1,\xe9", ""]
    path.write_bytes("\n".join(rows).encode("latin-1"))
    found = seen(path, 0, 4096)
    assert found == seen(path, 1 << 60, 4096)
    assert "line 9002: (byte 0xe9) not UTF-8" in found


def test_blocks_are_read_by_columns(tmp_path, monkeypatch):
    """The rows of a plain table never come one by one."""
    from spklink.scores import csv_format

    path = tmp_path / "s.csv"
    path.write_text("\r\n".join([HEADER, *["x,1,y,1,1.5"] * 50, "é,2,x,1,2"]))
    expected = seen(path, 1 << 60, 128)
    monkeypatch.setattr(csv_format, "open_table", None)
    assert seen(path, 0, 128) == expected
    assert len(expected) == 51


def test_parquet(tmp_path):
    sides = [(m, k) for m in range(3) for k in (1, 2)]
    ids = ["x", "y", "é"]
    rng = np.random.default_rng(0)
    rows = [(ids[a], u, ids[b], v, rng.normal()) for a, u in sides for b, v in sides if a < b]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), tmp_path / "s.parquet")
    lines = [",".join(map(str, row)) for row in rows]
    (tmp_path / "s.csv").write_text("\n".join([HEADER, *lines, ""]))
    found, expected = (
        read_scores(tmp_path / f"s.{kind}", TABLE, LINKS) for kind in ("parquet", "csv")
    )
    np.testing.assert_array_equal(found.needed, expected.needed)
    columns["channel_1"] = [3, *columns["channel_1"][1:]]
    parquet.write_table(pa.table(columns), tmp_path / "s.parquet")
    with pytest.raises(SpklinkError, match="row 2: channels '3' and '1'; a channel is 1 or 2"):
        read_scores(tmp_path / "s.parquet", TABLE, LINKS)
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    with pytest.raises(SpklinkError, match=r"s\.parquet: no Parquet file"):
        read_scores(tmp_path / "s.parquet", TABLE, LINKS)

"""Tables by whole columns are what they are row by row, to the letter; so are their errors."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spklink import whole_columns as module
from spklink.columns import Columns
from spklink.database.conversations import read_conversations
from spklink.errors import SpklinkError
from spklink.tables import Content, Reading, open_table, read_table
from spklink.texts import Lists, Texts
from spklink.whole_columns import SPACES, divided, stripped, whole_columns

LETTERS = 'ab,;|"\n\r \t\x1c\xa0\u2003?*\0é=1.5'


@pytest.fixture(autouse=True)
def _of_any_size():
    before, module.LEAST = module.LEAST, 0
    yield
    module.LEAST = before


def content(data: bytes, how: Reading | None = None) -> Content:
    return Content(read_table([{"a": 1}], "t").path, data, how=how or Reading())


def row_by_row(table):
    with open_table(table) as (header, rows):
        return header.names, list(rows)


@given(st.text(LETTERS, max_size=40), st.sampled_from([",", ";", "\t"]))
@example('"a""b",c\n"",d\n', ",")
@example("a,b\n\n", ",")
@example("a,b\n\nc,d\n", ",")
@example(' "a",b\n', ",")
@example('"a"b,c\n', ",")
@example('"a" ,c\n', ",")
@example('a"b,c\n', ",")
@example('"a\nb",c\n', ",")
@example("a,b\rc,d\n", ",")
@example("a,b\r\nc,d\r\n", ",")
@example("1,5;b\n", ";")
def test_cells_are_the_same(text, separator):
    data = f"x{separator}conversation\n{text}".encode()
    try:
        names, rows = row_by_row(content(data))
    except SpklinkError:
        assert whole_columns(content(data), ["x", "conversation"]) is None
        return
    found = whole_columns(content(data), ["x", "conversation"])
    if found is None:
        return
    assert found.header.names == names
    assert [found.first + k for k in range(found.count)] == [number for number, _ in rows]
    cells = zip(*(found.columns[name].to_pylist() for name in names), strict=True)
    assert [list(row) for row in cells] == [row for _, row in rows]


def test_what_is_well_formed_is_read_by_columns():
    for text in ('"a","b"\n"c ""d""",e\n', "a,b\nc,d", "a,b\r\nc,d\r\n", "ä,ö\n\n\n"):
        assert whole_columns(content(f"x,y\n{text}".encode()), ["x"]) is not None, text
    for odd in ('a"b,c\n', "a\n", "a,b,c\n", "a,b\n\nc,d\n", 'a,"b\nc"\n', "a,\0\n", "a,b\rc,d"):
        assert whole_columns(content(f"x,y\n{odd}".encode()), ["x"]) is None, odd


@given(st.lists(st.text(LETTERS)))
def test_spaces_and_parts(texts):
    column = pa.array(texts, pa.large_string())
    assert stripped(column).to_pylist() == [text.strip() for text in texts]
    parts, counts = divided(column)
    plain = [[part.strip() for part in text.split(";")] if text else [] for text in texts]
    assert parts.to_pylist() == [part for one in plain for part in one]
    assert counts.tolist() == [len(one) for one in plain]


def test_spaces_are_all_that_python_knows():
    assert set(SPACES) == {chr(k) for k in range(0x110000) if chr(k).isspace()}


@given(st.lists(st.text()), st.data())
def test_texts_are_a_sequence(texts, data):
    found = Texts.of(texts)
    assert found == texts
    assert list(found) == texts
    assert found[1:4] == texts[1:4]
    assert Texts.of_arrow(found.arrow()[1:]) == texts[1:]
    some = data.draw(st.lists(st.integers(0, len(texts) - 1))) if texts else []
    assert found.take(some) == [texts[k] for k in some]
    assert Texts.of_parts([found, found.take(some), Texts.of([])]) == [*texts, *found.take(some)]
    codes, names = found.coded()
    assert names == list(dict.fromkeys(texts))
    assert [names[k] for k in codes.tolist()] == texts
    same = dict(zip(texts, found.hashes().tolist(), strict=True))
    assert len(set(same.values())) == len(same)
    lists = [tuple(texts[:k]) for k in range(len(texts))]
    assert Lists.of(lists) == lists
    assert Lists.of(lists)[-1:] == lists[-1:]


# --- conversations --------------------------------------------------------------------------------

people = st.sampled_from(["anna", "ben", " carl", "dora ", "émile", "f\u2003", "?g", "?", "*", ""])
lists = st.lists(people, max_size=3).map(";".join) | st.sampled_from(["anna;ben", "ben;carl"])
wide = st.fixed_dictionaries(
    {
        "conversation": st.integers(0, 40).map("c{}".format) | st.sampled_from(["", " c1"]),
        "participants": st.sampled_from(["anna;ben", "carl; anna", "ben ;dora"]) | lists,
        "audio": st.sampled_from(["", "a.wav", "a.wav;b.wav", "a.wav; b.wav;c.wav", "a.wav;"]),
    },
    optional={
        "prior": st.sampled_from(["", "", "0.5", ".25", "1e-3", "2", "nan", "x"]),
        "group": st.sampled_from(["", "g", " h "]),
        "tracks": st.sampled_from(["", "", "2", "2.0", "3", "0"]),
        "note": st.sampled_from(["", "x"]),
    },
)
long = st.fixed_dictionaries(
    {
        "conversation": st.integers(0, 6).map("c{}".format),
        "speaker": st.sampled_from(["anna", "ben", "carl ", "?dora", "?", "*", "", "a;b"]),
        "audio": st.sampled_from(["", "", "a.wav", "b.wav"]),
    },
    optional={
        "status": st.sampled_from(["", "", "certain", "Possible", "unknown", "open", "x"]),
        "probability": st.sampled_from(["", "", "0.5", "1", "x"]),
        "prior": st.sampled_from(["", ".25", "x"]),
        "group": st.sampled_from(["", "g"]),
        "tracks": st.sampled_from(["", "2", "3"]),
    },
)
tidy = st.lists(
    st.tuples(
        *(st.sampled_from(["anna", "ben", "carl", "émile"]), st.sampled_from(["dora", " eve"])),
        st.sampled_from(["", "", "?", "?fred", "*"]),
    ),
    min_size=1,
    max_size=12,
)


def outcome(table, least, **options):
    """What reading gives, by whole columns or row by row: the error, or every field."""
    module.LEAST = least
    try:
        found = read_conversations(table, **options)
    except SpklinkError as error:
        return str(error)
    finally:
        module.LEAST = 0
    values = [(one.name, getattr(found, one.name)) for one in fields(found)]
    return {
        name: value.tolist()
        if isinstance(value, np.ndarray)
        else value.start.tolist()
        if name in ("listing", "sides")
        else list(value)
        if isinstance(value, Texts | Lists)
        else value
        for name, value in values
    }


def assert_alike(rows, **options):
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(row.get(name, "") for name in names) for row in rows]
    data = "\n".join([",".join(names), *lines, ""]).encode()
    by_columns, by_rows = (outcome(content(data), n, **options) for n in (0, 1 << 60))
    assert by_columns == by_rows
    return by_columns


@given(st.lists(wide, min_size=1, max_size=6), st.booleans())
def test_wide_tables(rows, unlisted):
    assert_alike(rows, unlisted=unlisted)


@given(st.lists(long, min_size=1, max_size=8), st.booleans())
def test_long_tables(rows, unlisted):
    assert_alike(rows, unlisted=unlisted)


@given(tidy)
def test_tables_without_mistakes(lists):
    wide = [
        {"conversation": f"c{m}", "participants": ";".join(filter(None, one))}
        for m, one in enumerate(lists)
    ]
    long = [
        {"conversation": f"c{m}", "speaker": who}
        for m, one in enumerate(lists)
        for who in one
        if who
    ]
    for rows in (wide, long):
        found = assert_alike(rows)
        assert not isinstance(found, str) or "conversation" not in found[:1]


def test_odd_lists_among_ordinary_ones_do_not_need_every_row(monkeypatch):
    """A table of ordinary rows and a few others is not read row by row."""
    from spklink.database import conversations

    monkeypatch.setattr(conversations, "open_table", None)
    rows = ["conversation,participants,audio,tracks"]
    rows += [f"c{k},a{k % 7};b{k % 5},{k}.wav," for k in range(50)]
    rows += ["d1,a1;?,x.wav,", "d2,a1;?b2;*,y.wav,", "d3,a1;b1;b2,z.wav,3", "d4,a2;b2,1;2,"]
    found = read_conversations(content("\n".join(rows).encode()))
    assert len(found) == 54
    assert found.names(52) == ("a1", "b1", "b2")
    assert found.unknown.sum() == 1
    assert found.audio[53] == ("1", "2")
    assert found.place(53) == "row 55"


@given(st.sampled_from(["caller;callee", "caller"]), st.sampled_from(["utf-8", "cp1252", "utf-16"]))
def test_columns_of_other_names_and_old_letters(theirs, encoding):
    said = Columns.parsed(f"conversation=Id,participants={theirs}")
    text = "Id;caller;callee\n1;Ümit ;Zoë\n2; Zoë;Åsa\n3;Åsa;Ümit\n"
    if theirs == "caller":
        text = 'Id;caller;callee\n1;"Ümit;Zoë";x\n2;"Zoë;Åsa";x\n'
    table = content(text.encode(encoding), Reading(said))
    found = outcome(table, 0)
    assert found == outcome(table, 1 << 60)
    assert found["speakers"][:2] == ["Ümit", "Zoë"]


@pytest.mark.parametrize("kind", ["string", "list", "dictionary", "number"])
def test_parquet(kind, tmp_path):
    from pyarrow import parquet

    ids = pa.array([1.0, 2.0, 3.5]) if kind == "number" else pa.array(["1", "2", "3"])
    who = [["a", "b"], ["b", "c"], ["a", "c"]]
    lists = pa.array(who) if kind == "list" else pa.array([";".join(one) for one in who])
    audio = pa.array(["x", None, "z"])
    audio = audio.dictionary_encode() if kind == "dictionary" else audio
    table = pa.table({"conversation": ids, "participants": lists, "audio": audio, "n": [1, 2, 3]})
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    found = outcome(path, 0)
    assert found == outcome(path, 1 << 60)
    assert found["ids"] == (["1", "2", "3.5"] if kind == "number" else ["1", "2", "3"])
    assert found["audio"] == [("x",), (), ("z",)]

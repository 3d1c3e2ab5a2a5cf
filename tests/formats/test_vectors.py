"""Vectors of sides from files of every format, and what is wrong with them."""

from __future__ import annotations

import csv
import re

import kaldiio
import numpy as np
import pytest

from given_voices import make_voices
from spklink.database.conversations import read_conversations
from spklink.errors import SpklinkError
from spklink.formats.files import read_vectors
from spklink.formats.keys import Keys, read_keys

VOICES = make_voices(towns=3)


@pytest.fixture
def table():
    return read_conversations(VOICES.table)


def read(given, table, **more):
    return read_vectors(given, table, lambda shape: np.zeros(shape, np.float32), **more)[0]


def keys():
    sides = zip(VOICES.conversation, VOICES.channel, strict=True)
    return [f"{name}-{track}" for name, track in sides]


def write_csv(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def as_npz(folder, **more):
    np.savez(folder / "v.npz", **VOICES.arrays(**more))
    return folder / "v.npz"


def as_csv(folder):
    width = VOICES.vectors.shape[1]
    header = ["conversation", "channel", *(f"e{k + 1}" for k in range(width))]
    cells = [[repr(float(x)) for x in row] for row in VOICES.vectors]
    rows = zip(VOICES.conversation, VOICES.channel, cells, strict=True)
    return write_csv(folder / "v.csv", header, [[c, k, *v] for c, k, v in rows])


def as_one_column(folder):
    cells = [f"[{' '.join(repr(float(x)) for x in row)}]" for row in VOICES.vectors]
    rows = zip(VOICES.conversation, VOICES.channel, cells, strict=True)
    return write_csv(folder / "v.csv", ["conversation", "channel", "embedding"], rows)


def as_parquet(folder):
    import pyarrow
    from pyarrow import parquet

    columns = {
        "conversation": VOICES.conversation,
        "channel": VOICES.channel,
        "embedding": VOICES.vectors.tolist(),
    }
    parquet.write_table(pyarrow.table(columns), folder / "v.parquet")
    return folder / "v.parquet"


def as_ark(folder, values=None, **how):
    values = VOICES.vectors if values is None else values
    kaldiio.save_ark(str(folder / "v.ark"), dict(zip(keys(), values, strict=True)), **how)
    return folder / "v.ark"


def as_scp(folder):
    made = dict(zip(keys(), VOICES.vectors, strict=True))
    kaldiio.save_ark(str(folder / "v.ark"), made, scp=str(folder / "v.scp"))
    return folder / "v.scp"


def as_text(folder):
    return as_ark(folder, text=True)


def as_doubles(folder):
    return as_ark(folder, VOICES.vectors.astype(np.float64))


def as_matrices(folder):
    return as_ark(folder, VOICES.vectors[:, None, :])


FORMS = (
    *(as_npz, as_csv, as_one_column, as_parquet, as_ark, as_scp, as_text, as_doubles),
    as_matrices,
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_format_says_the_same(form, table, tmp_path):
    found = read(form(tmp_path), table)
    assert found.there.all()
    assert found.seconds is None
    # text has the digits that were written
    loose = 1e-5 if form is as_text else 0.0
    np.testing.assert_allclose(found.vectors, VOICES.vectors, rtol=loose, atol=0.0)


@pytest.mark.parametrize("method", [2, 3, 4, 5, 7])
def test_compressed_vectors_are_read_as_kaldiio_reads_them(method, table, tmp_path):
    path = as_ark(tmp_path, VOICES.vectors[:, None, :], compression_method=method)
    expected = np.concatenate([value for _, value in kaldiio.load_ark(str(path))])
    token = path.read_bytes().split(b"\0B", 1)[1][:3]
    assert token in (b"CM ", b"CM2", b"CM3")
    found = read(path, table)
    np.testing.assert_allclose(found.vectors, expected, rtol=1e-6, atol=1e-6)


def test_one_of_these_is_the_compression_with_quartiles(tmp_path):
    path = as_ark(tmp_path, VOICES.vectors[:, None, :], compression_method=2)
    assert b"\0BCM " in path.read_bytes()


def test_an_scp_is_found_from_its_own_folder(table, tmp_path, monkeypatch):
    home = tmp_path / "there"
    home.mkdir()
    monkeypatch.chdir(home)
    made = dict(zip(keys(), VOICES.vectors, strict=True))
    kaldiio.save_ark("v.ark", made, scp="v.scp")
    monkeypatch.chdir(tmp_path)
    found, archives = read_vectors("there/v.scp", table, lambda shape: np.zeros(shape, np.float32))
    assert found.there.all()
    assert [one.path.name for one in archives] == ["v.ark"]
    assert len(archives[0].sha256) == 64


def test_rows_in_any_order_give_the_same(table, tmp_path):
    order = np.random.default_rng(1).permutation(len(VOICES.vectors))
    mixed = {name: values[order] for name, values in VOICES.arrays().items()}
    np.savez(tmp_path / "v.npz", **mixed)
    found = read(tmp_path / "v.npz", table)
    np.testing.assert_array_equal(found.vectors, VOICES.vectors)


def test_programs_hand_over_arrays_and_frames(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"conversation": VOICES.conversation, "channel": VOICES.channel})
    frame["embedding"] = list(VOICES.vectors)
    wide = frame[["conversation", "channel"]].join(
        pandas.DataFrame(VOICES.vectors, columns=[f"e{k}" for k in range(VOICES.vectors.shape[1])])
    )
    for given in (VOICES.vectors, VOICES.arrays(), frame, wide):
        np.testing.assert_array_equal(read(given, table).vectors, VOICES.vectors)


def test_a_table_of_keys(table, tmp_path):
    names = [f"utterance {k}".replace(" ", "") for k in range(len(VOICES.vectors))]
    path = tmp_path / "v.ark"
    kaldiio.save_ark(str(path), dict(zip(names, VOICES.vectors, strict=True)))
    rows = zip(names, VOICES.conversation, VOICES.channel, strict=True)
    mapping = write_csv(tmp_path / "keys.csv", ["key", "conversation", "channel"], rows)
    found = read(path, table, keys=read_keys(mapping))
    np.testing.assert_array_equal(found.vectors, VOICES.vectors)
    with pytest.raises(SpklinkError, match=r"key 'utterance0': 'utterance0' names no side; .*keys"):
        read(path, table)


def test_marks_in_ids_do_not_matter():
    for key, side in (
        ("a-1", ("a", "1")),
        ("a_1", ("a", "1")),
        ("call_07-3-2", ("call_07-3", "2")),
        ("call-3_2", ("call-3", "2")),
    ):
        assert Keys()(key) == side
    for key in ("a", "-1", "a-"):
        assert Keys()(key) is None


def changed(**more):
    return {**VOICES.arrays(), **more}


def with_value(value, at=5):
    vectors = VOICES.vectors.astype(np.float64)
    vectors[at] = value
    return vectors


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"channel": np.full(36, 3)}, "entry 0: channel '3'; a channel is 1 or 2"),
        ({"channel": np.ones(36, int)}, "entry 1: call_00-0 channel 1 is already in entry 0"),
        ({"channel": np.ones(35, int)}, r"array 'channel' \(35,\) and array 'embedding' of 36"),
        ({"embedding": np.zeros(36)}, r"has the shape \(36,\), not 2 dimensions"),
        ({"embedding": VOICES.vectors.astype(object)}, "holds objects, not numbers"),
        ({"embedding": VOICES.vectors.astype(str)}, "not numbers"),
        ({"embedding": np.zeros((36, 0))}, "vectors of 0 numbers"),
        ({"seconds": np.full(36, -1.0)}, "entry 0: seconds -1.0 is not a number of 0 or more"),
    ],
)
def test_wrong_arrays_are_named(arrays, said, table, tmp_path):
    np.savez(tmp_path / "v.npz", **changed(**arrays))
    with pytest.raises(SpklinkError, match=r"v\.npz: .*" + said):
        read(tmp_path / "v.npz", table)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.nan, "number 1 is nan"),
        (np.inf, "number 1 is inf"),
        (1e300, "number 1 is inf"),
        (0.0, "all its numbers are 0"),
        (7.0, "all its numbers are 7"),
        (VOICES.vectors[4], r"the same vector as call_00-2 channel 1 \(entry 4\)"),
    ],
)
def test_bad_vectors_are_told_by_side(value, said, table, tmp_path):
    np.savez(tmp_path / "v.npz", **changed(embedding=with_value(value)))
    found = read(tmp_path / "v.npz", table)
    assert found.there.all()
    assert 5 in found.bad
    assert found.bad[5].startswith("entry 5: ")
    assert re.search(said, found.bad[5])
    assert not found.vectors[5].any()
    assert found.hashes[5] == ""


def test_lengths_that_differ_are_named(table, tmp_path):
    values = dict(zip(keys(), VOICES.vectors, strict=True))
    values[keys()[7]] = np.ones(5, np.float32)
    kaldiio.save_ark(str(tmp_path / "v.ark"), values)
    with pytest.raises(SpklinkError, match=r"key 'call_00-3-2': 5 numbers where .* has 24"):
        read(tmp_path / "v.ark", table)


def test_other_conversations_are_passed_over(table, tmp_path):
    more = make_voices(towns=4)
    np.savez(tmp_path / "v.npz", **more.arrays())
    found = read(tmp_path / "v.npz", table)
    assert found.there.all()
    assert found.foreign == len(more.vectors) - len(VOICES.vectors)


def test_a_conversation_under_two_names_is_an_error(table, tmp_path):
    names = np.array(VOICES.conversation)
    names[:2] = "Call_00-0"
    np.savez(tmp_path / "v.npz", **changed(conversation=names))
    said = r"entry 0: conversation 'Call_00-0' is not in the table; .*'call_00-0'"
    with pytest.raises(SpklinkError, match=said):
        read(tmp_path / "v.npz", table)


def test_missing_sides_are_no_error(table, tmp_path):
    kept = {name: values[3:] for name, values in VOICES.arrays().items()}
    np.savez(tmp_path / "v.npz", **kept)
    found = read(tmp_path / "v.npz", table)
    assert found.there.tolist() == [False] * 3 + [True] * 33
    assert not found.vectors[:3].any()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("call_00-0-1 cat v.ark |", "a command, which is not run"),
        ("call_00-0-1 v.ark:5[0:1]", "a range of a matrix"),
        ("call_00-0-1", "no file"),
        ("call_00-0-1 gone.ark:5", "gone.ark: cannot be read"),
        ("call_00-0-1 v.ark:2", "neither a Kaldi vector nor a matrix"),
    ],
)
def test_lines_of_a_script_that_cannot_be_followed(line, said, table, tmp_path):
    as_scp(tmp_path)
    (tmp_path / "w.scp").write_text(line + "\n")
    with pytest.raises(SpklinkError, match=said):
        read(tmp_path / "w.scp", table)


def test_archives_of_other_things_are_refused(table, tmp_path):
    path = tmp_path / "v.ark"
    kaldiio.save_ark(str(path), {"call_00-0-1": np.zeros((9, 24), np.float32)})
    with pytest.raises(SpklinkError, match="a matrix of 9 rows, not one vector"):
        read(path, table)
    as_ark(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(SpklinkError, match="ends early"):
        read(path, table)
    path.write_bytes(b"call_00-0-1 \0BFV \x04\xff\xff\xff\x7f")
    with pytest.raises(SpklinkError, match="2147483647 numbers"):
        read(path, table)
    path.write_bytes(b"call_00-0-1 [ 1 2 three ]\n")
    with pytest.raises(SpklinkError, match="three"):
        read(path, table)
    path.write_bytes(b"call_00-0-1 [ 1 2 ")
    with pytest.raises(SpklinkError, match="no ] after"):
        read(path, table)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("conversation,channel,x1", "no column 'embedding' and no columns e1"),
        ("conversation,channel,e1,e3", "have gaps"),
        ("conversation,e1,e2", "no column 'channel'"),
    ],
)
def test_tables_without_the_columns(header, said, table, tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(f"{header}\ncall_00-0,1,2,3\n")
    with pytest.raises(SpklinkError, match=said):
        read(path, table)


def test_cells_that_are_no_numbers(table, tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("conversation,channel,e1,e2\ncall_00-0,1,2,x\ncall_00-0,2,1\n")
    with pytest.raises(SpklinkError, match="row 2: 'x' is not a number; row 3: 3 fields"):
        read(path, table)


def test_an_unknown_ending_names_those_that_are_read(table, tmp_path):
    path = tmp_path / "v.pkl"
    path.write_bytes(b"")
    with pytest.raises(SpklinkError, match=r"one of \.npz, \.csv, \.parquet, \.ark"):
        read(path, table)


def test_a_frame_of_lists_of_several_lengths(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"conversation": ["a", "b"], "channel": [1, 1], "embedding": [[1.0], [1.0, 2.0]]}
    )
    with pytest.raises(SpklinkError, match="lists of several lengths"):
        read(frame, table)
    with pytest.raises(SpklinkError, match=r"an array of \(3, 2\) where the table has 36 sides"):
        read(np.zeros((3, 2)), table)
    with pytest.raises(SpklinkError, match="an array of numbers, not object"):
        read(object(), table)

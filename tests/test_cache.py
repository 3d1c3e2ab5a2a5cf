"""Kept files: what is whole comes back, whatever is not is noticed, removed and named."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from spklink.cache import Store, cache_folder, damage_note, key_of, private_room, sweep_all

NAME, OTHER = key_of("one"), key_of("other")
ARRAYS = {
    "level": np.array(2.5),
    "rows": np.arange(12, dtype=np.float32).reshape(4, 3),
    "none": np.zeros((0, 3), np.float32),
    "names": np.array(["a", "bc"]),
}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "kept")
    made.write(NAME, {"text": "ü", "numbers": [1, 2.5, None]}, ARRAYS)
    return made


def test_what_is_kept_comes_back(store):
    kept = store.load(NAME)
    assert kept.about == {"text": "ü", "numbers": [1, 2.5, None]}
    assert list(kept.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        found = kept.arrays[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert (found == array).all()
    assert store.load(OTHER) is None
    assert store.about(OTHER) is None
    assert not store.damaged
    assert [name for name, _ in store.listed()] == [NAME]


def test_objects_are_refused(store):
    with pytest.raises(ValueError, match="objects"):
        store.write(OTHER, {}, {"x": np.array([{}])})
    assert [path.name for path in store.folder.iterdir()] == [f"{NAME}.kept"]


def test_any_byte_flipped_and_any_cut_is_noticed(store):
    path = store.path(NAME)
    whole = path.read_bytes()
    flips = [
        whole[:k] + bytes([whole[k] ^ (1 << k % 8)]) + whole[k + 1 :] for k in range(len(whole))
    ]
    cuts = [whole[:k] for k in range(0, len(whole), 7)]
    for data in [*flips, *cuts, whole + b"\0", whole + bytes(64), whole + whole]:
        path.write_bytes(data)
        fresh = Store(store.folder)
        assert fresh.load(NAME) is None
        assert fresh.damaged == {f"kept/{NAME}.kept"}
        assert not path.exists()


def test_damage_in_the_head_is_noticed_without_reading_arrays(store):
    path = store.path(NAME)
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + b"?" + whole[61:])
    assert store.about(NAME) is None
    for data in (whole[:-64], whole + bytes(64)):  # nor are arrays taken to be there that are not
        path.write_bytes(data)
        assert store.about(NAME) is None
    assert len(store.damaged) == 1


def test_a_file_that_changes_is_checked_again(store):
    assert store.load(NAME) is not None
    path = store.path(NAME)
    whole = path.read_bytes()
    path.write_bytes(whole[:-70] + b"??" + whole[-68:])
    assert store.load(NAME) is None


def swapped(path: Path) -> None:
    store = Store(path.parent)
    store.write(OTHER, {}, ARRAYS)
    store.path(OTHER).replace(path)


def forged(path: Path, shapes) -> None:
    """All checksums are right; what it says is not."""
    from spklink import cache

    text = cache.json.dumps({"name": NAME, "about": {}, "arrays": shapes, "checksum": 0}).encode()
    text += b"\n"
    path.write_bytes(b"spklink kept 1 %012d %08x\n" % (len(text), cache._checksum(text)) + text)


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("conversation,audio\n"),
    "pickle": lambda path: np.save(path.open("wb"), np.array([{}]), allow_pickle=True),
    "older": lambda path: path.write_bytes(path.read_bytes().replace(b"kept 1", b"kept 0", 1)),
    "swapped": swapped,
    "huge": lambda path: forged(path, [["x", "<f4", [10**15, 10**6]]]),
    "negative": lambda path: forged(path, [["x", "<f4", [-1, -64]]]),
    "objects": lambda path: forged(path, [["x", "|O", [0]]]),
    "nonsense": lambda path: forged(path, 7),
    "dangling": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "folder": lambda path: (path.unlink(), path.mkdir(), (path / "x").write_text("")),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_something_else_under_the_name(kind, store):
    path = store.path(NAME)
    FOREIGN[kind](path)
    found = []
    reader = threading.Thread(target=lambda: found.append(store.load(NAME)), daemon=True)
    reader.start()
    reader.join(10)
    assert found == [None]  # and nobody waits for a pipe
    assert store.damaged == {f"kept/{NAME}.kept"}
    store.write(NAME, {}, ARRAYS)
    assert Store(store.folder).load(NAME) is not None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read all")
def test_files_that_cannot_be_read(store):
    store.path(NAME).chmod(0)
    assert store.load(NAME) is None
    assert store.damaged


def test_a_folder_is_not_left_in_the_way(store):
    store.path(OTHER).mkdir()
    store.write(OTHER, {}, ARRAYS)
    assert store.damaged == {f"kept/{OTHER}.kept"}
    assert store.load(OTHER) is not None


def test_listing_passes_over_what_is_not_kept_here(store):
    (store.folder / "notes.kept").write_text("mine")
    (store.folder / f".{OTHER}.kept.abc.writing").write_text("half")
    store.path(OTHER).write_bytes(b"")
    assert [name for name, _ in store.listed()] == [NAME]
    assert store.damaged == {f"kept/{OTHER}.kept"}
    assert (store.folder / "notes.kept").exists()


def test_the_note():
    assert damage_note(set()) == ""
    assert "1 damaged file in the cache was not used" in damage_note({"a"})
    text = damage_note({"a", "b", "c", "d", "e"})
    assert text.startswith("5 damaged files in the cache were not used")
    assert text.endswith("a, b, c and 2 more")


def test_a_private_room_is_zero_and_leaves_nothing(tmp_path):
    room = private_room((3, 2), tmp_path / "rooms")
    assert not room.any()
    room[1] = 7.0
    assert room.sum() == 14.0
    del room
    assert not list((tmp_path / "rooms").iterdir())


def test_only_old_remains_are_swept(tmp_path):
    folder = tmp_path / "vectors" / "abc"
    folder.mkdir(parents=True)
    old, new = folder / ".room.x.writing", folder / ".room.y.writing"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    (folder / ".dir.writing").mkdir()
    (folder / ".gone.writing").symlink_to("nowhere")
    os.utime(old, (1, 1))
    os.utime(folder / ".dir.writing", (1, 1))
    sweep_all(tmp_path)
    assert not old.exists()
    assert new.exists()
    sweep_all(tmp_path / "nothing")


def test_what_is_kept_already_is_not_replaced(tmp_path):
    """Another machine may have it mapped. What differs or is damaged is replaced."""
    store, array = Store(tmp_path), np.arange(100.0)
    name = key_of("same")
    store.write(name, {"said": 1}, {"a": array})
    before = store.path(name).stat().st_ino
    mapped = store.load(name).arrays["a"]
    Store(tmp_path).write(name, {"said": 1}, {"a": array})
    assert store.path(name).stat().st_ino == before
    store.write(name, {"said": 1}, {"a": array + 1})
    assert store.load(name).arrays["a"].tolist() == (array + 1).tolist()
    assert mapped.tolist() == array.tolist()
    data = bytearray(store.path(name).read_bytes())
    data[-70] ^= 1
    store.path(name).write_bytes(data)
    Store(tmp_path).write(name, {"said": 1}, {"a": array + 1})
    assert Store(tmp_path).load(name).arrays["a"].tolist() == (array + 1).tolist()


def test_a_folder_may_have_any_name(tmp_path):
    with cache_folder(tmp_path / "c::d", None) as cache:
        assert cache == tmp_path / "c::d"

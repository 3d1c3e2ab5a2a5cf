"""A cache elsewhere, by fsspec: what is here is what is there, whoever wrote it; `test_s3_cache.py`
asks a real server."""

from __future__ import annotations

import errno
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from made_calls import PAIRS
from spklink import SpklinkError, link
from spklink import object_store as module
from spklink.cache import Store, cache_folder, key_of
from spklink.cluster_tasks import Run, UnfitError, check_fit, forget
from spklink.elsewhere import copies, copy_of, placed, url_of
from spklink.object_store import Far
from spklink.options import options_from, options_json
from spklink.settings import LinkOptions
from spklink.sound.heard import Job
from spklink.sound.places import Remote

fsspec = pytest.importorskip("fsspec")

NAME = key_of("one")
ARRAYS = {"a": np.arange(1000.0)}


@pytest.fixture(params=["memory", "file"])
def url(request, tmp_path, monkeypatch):
    """A cache elsewhere, seen from one machine."""
    machine(monkeypatch, tmp_path / "one")
    return f"memory://{tmp_path.name}" if request.param == "memory" else (tmp_path / "far").as_uri()


def machine(monkeypatch, folder: Path) -> None:
    """This process is on the machine that has its copies there."""
    monkeypatch.setenv("SPKLINK_COPIES", str(folder))


def opened(url: str, below: str = "features", **more) -> Store:
    with cache_folder(url, None) as cache:
        return Store(cache / below, **more)


def there(url: str, below: str) -> tuple:
    fs, root = fsspec.url_to_fs(url)
    return fs, f"{root}/{below}"


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("s3://bucket/calls/", "s3://bucket/calls"),
        (Path("s3://bucket/calls"), "s3://bucket/calls"),
        (Path("file:///data/calls"), "file:///data/calls"),
        ("GS://bucket", "gs://bucket"),
        ("C:/calls", None),
        ("calls/a:b", None),
        ("/calls/s3:/x", None),
        ("", None),
    ],
)
def test_what_is_an_address(given, wanted):
    assert url_of(given) == wanted


def test_a_copy_is_told_by_its_name_on_any_machine(monkeypatch, tmp_path):
    machine(monkeypatch, tmp_path / "one")
    folder = pickle.loads(pickle.dumps(copy_of("s3://b/über calls") / "vectors" / "x"))
    machine(monkeypatch, tmp_path / "two")
    here, url, below = placed(folder)
    assert here == tmp_path / "two" / folder.relative_to(tmp_path / "one")
    assert (url, below) == ("s3://b/über calls", "vectors/x")
    assert placed(tmp_path) == (tmp_path, "", "")
    with pytest.raises(SpklinkError, match="too long a name"):
        copy_of("s3://b/" + 300 * "x")
    monkeypatch.delenv("SPKLINK_COPIES")
    assert copies().name == "spklink"


def test_an_address_stays_one_in_run_json(tmp_path):
    for given, wanted in (("s3://b/c", "s3://b/c"), (tmp_path / "c", "c"), (None, None)):
        told = options_json(LinkOptions, {"cache": given}, tmp_path)
        assert told["cache"] == wanted
        again = options_from(LinkOptions, json.loads(json.dumps(told)), tmp_path)["cache"]
        assert again == given


def test_fsspec_is_loaded_only_when_it_is_asked_for():
    code = "import sys, spklink.runs.link, spklink.cli.commands; print('fsspec' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


# --- files ----------------------------------------------------------------------------------------


def test_what_one_machine_writes_another_finds(url, tmp_path, monkeypatch):
    opened(url).write(NAME, {"said": 1}, ARRAYS)
    machine(monkeypatch, tmp_path / "two")
    store = opened(url)
    assert store.load(key_of("other")) is None
    assert store.about(NAME) == {"said": 1}
    assert [name for name, _ in store.listed()] == [NAME]
    assert not store.path(NAME).exists()  # that much is told without it
    assert store.load(NAME).arrays["a"].tolist() == ARRAYS["a"].tolist()
    assert store.path(NAME).is_relative_to(tmp_path / "two")
    fs, path = there(url, f"features/{NAME}.kept")
    fs.rm(path)
    assert opened(url).load(NAME) is not None  # it is here
    assert not store.damaged


def test_many_are_brought_at_once(url, tmp_path, monkeypatch):
    names = [key_of(k) for k in range(40)]
    one = opened(url)
    for k, name in enumerate(names[:30]):
        one.write(name, k, {"a": np.full(3, k)})
    machine(monkeypatch, tmp_path / "two")
    two = opened(url)
    two.bring([*names, names[0]])
    assert {path.stem for path in two.folder.glob("*.kept")} == set(names[:30])
    asked = []
    monkeypatch.setattr(Far, "fetch", lambda self, path: asked.append(path))
    two.bring(names)
    assert not asked
    assert [two.load(name).arrays["a"].tolist() for name in names[:30]] == [
        [k] * 3 for k in range(30)
    ]
    Store(tmp_path / "local").bring(iter([None]))  # nothing is asked of a folder


def test_what_is_said_at_length_is_told_too(url, tmp_path, monkeypatch):
    long = {"said": "x" * 100_000}
    opened(url).write(NAME, long, ARRAYS)
    machine(monkeypatch, tmp_path / "two")
    assert opened(url).about(NAME) == long


@pytest.mark.parametrize("ask", ["load", "about"])
@pytest.mark.parametrize("spoilt", [b"", b"x" * 5000, None])
def test_a_damaged_object_is_as_if_it_were_not_there(url, tmp_path, monkeypatch, spoilt, ask):
    opened(url).write(NAME, {}, ARRAYS)
    fs, path = there(url, f"features/{NAME}.kept")
    whole = fs.cat_file(path)
    fs.pipe_file(path, whole[:-64] if spoilt is None else spoilt)
    machine(monkeypatch, tmp_path / "two")
    store = opened(url)
    if spoilt is None and ask == "about":
        assert store.about(NAME) == {}  # of its arrays nothing was asked
        return
    assert getattr(store, ask)(NAME) is None
    assert store.damaged == {f"features/{NAME}.kept"}
    assert not fs.exists(path)
    store.write(NAME, {}, ARRAYS)
    assert fs.cat_file(path) == whole


def test_what_is_damaged_here_is_fetched(url):
    opened(url).write(NAME, {}, ARRAYS)
    store = opened(url)
    store.path(NAME).write_bytes(b"x")
    assert store.load(NAME).arrays["a"].tolist() == ARRAYS["a"].tolist()
    assert store.damaged


def test_names_that_do_not_tell_their_content(url, tmp_path, monkeypatch):
    opened(url, "answers", changing=True).write(NAME, {"said": 1}, {})
    machine(monkeypatch, tmp_path / "two")
    two = opened(url, "answers", changing=True)
    assert two.load(NAME).about == {"said": 1}
    two.write(NAME, {"said": 2}, {})
    machine(monkeypatch, tmp_path / "one")
    assert opened(url, "answers", changing=True).load(NAME).about == {"said": 2}


def test_what_is_owed_is_sent_by_the_next_run(url, monkeypatch):
    def refused(self, path):
        raise module.failure(self.url, OSError("the line is dead"))

    store = opened(url)
    with monkeypatch.context() as patch:
        patch.setattr(Far, "put", refused)
        with pytest.raises(SpklinkError, match=r"the line is dead.*What is done is kept in"):
            store.write(NAME, {}, ARRAYS)
    fs, path = there(url, f"features/{NAME}.kept")
    assert store.path(NAME).exists()
    assert not fs.exists(path)
    lost = store.path(key_of("killed before it was written"))
    store.far.owe(lost)
    assert opened(url).load(NAME) is not None
    assert fs.cat_file(path) == store.path(NAME).read_bytes()
    assert not list(store.folder.glob("*.unsent"))


def test_runs_that_were_killed_leave_nothing_for_ever(url, monkeypatch):
    monkeypatch.setattr(module, "LEFT", 0.0)
    fs, path = there(url, ".results.abc.writing")
    fs.makedirs(path, exist_ok=True)
    fs.pipe_file(f"{path}/sign", b"")
    opened(url)
    assert not fs.exists(f"{path}/sign")


# --- errors ---------------------------------------------------------------------------------------


def test_errors_name_address_cause_and_remedy(tmp_path, monkeypatch):
    machine(monkeypatch, tmp_path)
    for url, said in {
        "foo://x": r"foo://x: there is no foo://; use s3://, gs:// or a folder",
        "sftp://x/y": r"for sftp:// run pip install \"spklink\[remote\]\" paramiko",
        "file:///proc/nothing/x": r"no such bucket or folder|no permission",
    }.items():
        if url.startswith("sftp"):
            monkeypatch.setitem(sys.modules, "paramiko", None)
        with pytest.raises(SpklinkError, match=said):
            cache_folder(url, None).__enter__()


def test_without_the_extra_its_name_is_said(tmp_path, monkeypatch):
    machine(monkeypatch, tmp_path)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(SpklinkError, match=r'gs:// run pip install "spklink\[remote\]"'):
        cache_folder("gs://bucket/never", None).__enter__()


def test_some_answer_when_they_are_asked_again(monkeypatch, tmp_path):
    machine(monkeypatch, tmp_path)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    asked = []

    def answer(fs):
        asked.append(fs)
        if len(asked) == 1:
            raise TimeoutError
        return 7

    assert Far("memory://x")._asked(answer) == 7
    with pytest.raises(SpklinkError, match="no permission to list"):
        Far("memory://x")._asked(lambda fs: (_ for _ in ()).throw(PermissionError()))


def test_a_full_disk_is_not_the_fault_of_the_store(monkeypatch, tmp_path):
    machine(monkeypatch, tmp_path)

    def full(fs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        Far("memory://x")._asked(full)
    assert caught.value.filename == str(copy_of("memory://x"))


# --- runs -----------------------------------------------------------------------------------------


def test_a_worker_sees_the_run_or_not(url, tmp_path, monkeypatch):
    with cache_folder(url, None) as cache:
        (cache / ".results.a.writing").mkdir()
        run = Run.signed(cache / ".results.a.writing")
    machine(monkeypatch, tmp_path / "two")
    check_fit(run)
    (placed(run.sign.parent)[0]).mkdir(parents=True, exist_ok=True)
    forget(run)
    assert not placed(run.sign.parent)[0].exists()
    Far(url, ".results.a.writing").clear()
    check_fit.cache_clear()
    with pytest.raises(UnfitError, match="does not see this run in"):
        check_fit(run)


def test_a_run_has_the_bytes_of_a_local_cache(calls, tmp_path, monkeypatch):
    """And the next machine listens to nothing."""
    small = {"components": 16, "workers": 1}
    table, url = calls / "conversations.csv", (tmp_path / "far").as_uri()
    link(table, tmp_path / "local", **small)
    machine(monkeypatch, tmp_path / "a")
    link(table, tmp_path / "one", cache=url, **small)
    machine(monkeypatch, tmp_path / "b")
    monkeypatch.setattr("spklink.sound.features.Cepstra.hear", None)
    link(table, tmp_path / "two", cache=url, **small)
    for name in ("assignments.csv", "llrs.npz", "scores.npz", "sides.csv", "segments.csv"):
        wanted = (tmp_path / "local" / name).read_bytes()
        assert (tmp_path / "one" / name).read_bytes() == wanted
        assert (tmp_path / "two" / name).read_bytes() == wanted
    assert len(list((tmp_path / "far" / "features").glob("*.kept"))) == len(PAIRS)


def test_a_recording_elsewhere_is_fetched_by_whoever_listens(tmp_path, monkeypatch):
    machine(monkeypatch, tmp_path / "one")
    fsspec.filesystem("memory").pipe_file("/sound/1.wav", b"sound")
    remote, cache = Remote("memory://sound/1.wav", "memory://sound/1.wav"), copy_of("memory://c")
    job = Job((Path("never"),), 1, None, cache / "features", places=(remote,))
    machine(monkeypatch, tmp_path / "two")
    [path] = job.fetched().files
    assert path.is_relative_to(tmp_path / "two")
    assert path.read_bytes() == b"sound"
    assert path.name == remote.local_name()
    fsspec.filesystem("memory").rm("/sound/1.wav")
    assert job.fetched().unreachable == "no such file"

"""A cache on a real S3 server: the bytes of a local one, on one machine, on two, on a cluster that
shares nothing else; damaged, killed, gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dask_processes import dask_processes
from made_calls import PAIRS, write_table
from s3_server import s3_server
from spklink.elsewhere import MARK

pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

ROOT = Path(__file__).parent.parent
CALLS = len(PAIRS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    log = tmp_path_factory.mktemp("s3") / "log"
    with s3_server(log) as (words, _), pytest.MonkeyPatch.context() as patch:
        for name, value in words.items():
            patch.setenv(name, value)
        yield words


@pytest.fixture(scope="module")
def s3(server, calls):
    """The store, with all recordings in it."""
    found = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    found.mkdir("calls")
    for path in calls.glob("*.wav"):
        found.put_file(str(path), f"calls/sound/{path.name}")
    return found


@pytest.fixture(scope="module")
def table(s3, tmp_path_factory) -> Path:
    """Calls whose recordings are there."""
    path = tmp_path_factory.mktemp("table") / "t.csv"
    rows = [(f"c{k}", f"s3://calls/sound/{k}.wav", ";".join(pair)) for k, pair in enumerate(PAIRS)]
    write_table(path, ["conversation", "audio", "participants"], rows)
    return path


def command(table: Path, out: Path, *words: str) -> list[str]:
    small = ["--components", "16", "--workers", "1", "--no-report", "-q"]
    return [sys.executable, "-m", "spklink", "link", str(table), "-o", str(out), *small, *words]


def run(table: Path, out: Path, *words: str, copies: Path, **more: str):
    """A run on the machine that has these copies."""
    env = os.environ | {"SPKLINK_COPIES": str(copies), "PYTHONPATH": str(ROOT / "src")} | more
    return subprocess.run(command(table, out, *words), env=env, capture_output=True, text=True)


def content(out: Path) -> dict[str, bytes]:
    """All results but clock times, and where the cache is."""
    found = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    del found["timings.json"]
    told = json.loads(found["run.json"])
    del told["options"]["cache"]
    return found | {"run.json": json.dumps(told).encode()}


def kept(copies: Path, folder: str) -> list[Path]:
    return sorted(copies.glob(f"{MARK}*/{folder}/*.kept"))


@pytest.fixture(scope="module")
def local(table, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("local") / "out"
    done = run(table, out, copies=out.parent / "copies")
    assert done.returncode == 0, done.stderr
    assert not (out.parent / "copies").exists()
    return content(out)


def test_runs_here_and_elsewhere_have_the_bytes_of_a_local_cache(table, s3, local, tmp_path):
    where = ("--cache", "s3://calls/same")
    done = run(table, tmp_path / "one", *where, copies=tmp_path / "a")
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "one") == local
    assert len(kept(tmp_path / "a", "features")) == CALLS
    assert not list((tmp_path / "a").rglob("*.unsent"))
    assert json.loads((tmp_path / "one" / "run.json").read_text())["options"]["cache"] == where[1]
    before = s3.find("calls/same")
    here = {
        str(p.relative_to(next((tmp_path / "a").iterdir()))) for p in (tmp_path / "a").rglob("*.*t")
    }
    assert {one.removeprefix("calls/same/") for one in before} - {"sign"} == here - {"sign"}
    again = run(table, tmp_path / "two", *where, copies=tmp_path / "b")  # another machine
    assert again.returncode == 0, again.stderr
    assert content(tmp_path / "two") == local
    assert s3.find("calls/same") == before
    # It was told what was heard, and fetched no sound and no features to know.
    assert not kept(tmp_path / "b", "features")
    assert not list((tmp_path / "b").rglob("recordings"))


def test_damaged_objects_are_noticed_and_replaced(table, s3, local, tmp_path):
    where = ("--cache", "s3://calls/damaged")
    assert run(table, tmp_path / "one", *where, copies=tmp_path / "a").returncode == 0
    vectors = sorted(s3.find("calls/damaged/vectors"))
    heads = sorted(s3.find("calls/damaged/features"))
    whole = {path: s3.cat_file(path) for path in (*vectors, *heads)}
    bad = bytearray(whole[vectors[0]])
    bad[-70] ^= 1
    s3.pipe_file(vectors[0], bytes(bad))
    s3.pipe_file(vectors[1], b"")
    s3.pipe_file(heads[0], whole[heads[0]][:60])
    s3.pipe_file(heads[1], b"")
    done = run(table, tmp_path / "two", *where, copies=tmp_path / "b")
    assert done.returncode == 0, done.stderr
    assert "4 damaged files in the cache were not used" in done.stdout
    found, wanted = content(tmp_path / "two"), dict(local)
    assert found.pop("run.json") != wanted.pop("run.json")  # its notes name them
    assert found == wanted
    assert {path: s3.cat_file(path) for path in whole} == whole
    spoilt = kept(tmp_path / "b", "vectors/*")[0]  # one that is whole elsewhere
    spoilt.write_bytes(b"x")
    done = run(table, tmp_path / "three", *where, copies=tmp_path / "b")
    assert "1 damaged file in the cache was not used" in done.stdout
    assert spoilt.read_bytes() == whole[vectors[0]]


@pytest.mark.parametrize("after", [1, 7, CALLS])
def test_a_killed_run_goes_on(table, s3, local, tmp_path, after):
    url, out = f"s3://calls/killed{after}", tmp_path / "out"
    env = os.environ | {"SPKLINK_COPIES": str(tmp_path / "a"), "PYTHONPATH": str(ROOT / "src")}
    words = command(table, out, "--cache", url)
    with subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL) as process:
        while len(kept(tmp_path / "a", "features")) < after and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    done = run(table, out, "--cache", url, copies=tmp_path / "a")
    assert done.returncode == 0, done.stderr
    assert content(out) == local
    assert len(s3.find(f"{url[5:]}/features")) == CALLS
    assert not list((tmp_path / "a").rglob("*.unsent"))


def test_what_a_kill_kept_back_is_sent(table, s3, local, tmp_path):
    where = ("--cache", "s3://calls/owed")
    assert run(table, tmp_path / "one", *where, copies=tmp_path / "a").returncode == 0
    one = kept(tmp_path / "a", "features")[0]
    one.with_name(one.name + ".unsent").touch()
    s3.rm_file(f"calls/owed/features/{one.name}")
    assert run(table, tmp_path / "one", *where, copies=tmp_path / "a").returncode == 0
    assert s3.cat_file(f"calls/owed/features/{one.name}") == one.read_bytes()
    assert not list((tmp_path / "a").rglob("*.unsent"))


@pytest.mark.parametrize("killed", [False, True])
def test_a_cluster_that_shares_nothing_else(table, s3, local, tmp_path, killed):
    pytest.importorskip("distributed")
    pytest.importorskip("psutil")
    url = f"s3://calls/cluster{killed}"
    with dask_processes(tmp_path / "dask", 2, own="SPKLINK_COPIES") as dask:
        # All work goes to the workers, however little it is.
        code = "from spklink import cluster as c; c.MINIMUM, c.MEGABYTES = 0.0, float('inf')\n"
        code += "from spklink.cli.app import main; import sys; sys.exit(main())"
        words = command(table, tmp_path / "out", "--cache", url, "--cluster", dask.address)
        words[1:3] = ["-c", code]
        env = {"SPKLINK_COPIES": str(tmp_path / "a"), "PYTHONPATH": str(ROOT / "src")}
        own = [tmp_path / "dask" / f"own{k}" for k in range(2)]
        said = {"env": os.environ | env, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, **said) as process:
            while killed and len(kept(own[0], "features")) < 2 and process.poll() is None:
                time.sleep(0.005)
            if killed:
                os.kill(dask.workers()[0], signal.SIGKILL)
            error = process.communicate()[1]
        heard = [len(kept(folder, "features")) for folder in own]
        left = [p for copies in (*own, tmp_path / "a") for p in copies.rglob(".*.writing")]
    assert process.returncode == 0, error
    assert content(tmp_path / "out") == local
    assert min(heard) > 0
    assert not list((tmp_path / "a").rglob("recordings"))  # those who listened fetched them
    assert killed or not left
    assert not [one for one in s3.find(url[5:]) if ".writing" in one]


def test_workers_that_reach_another_store_are_named(table, s3, tmp_path):
    pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        with dask_processes(tmp_path / "dask", 1, own="SPKLINK_COPIES") as dask:
            patch.undo()
            words = ("--cache", "s3://calls/other", "--cluster", dask.address)
            done = run(table, tmp_path / "out", *words, copies=tmp_path / "a")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "worker on " in done.stderr
    assert "--cache s3://calls/other: cannot be used now" in done.stderr


@pytest.mark.parametrize(
    ("url", "more", "said"),
    [
        ("s3://nobody/cache", {}, "there is no such bucket or folder; make it first"),
        (
            "s3://calls/c",
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"},
            "cannot be used now",
        ),
    ],
)
def test_a_store_that_is_not_there_is_one_line_before_any_work(
    table, s3, tmp_path, url, more, said
):
    done = run(table, tmp_path / "out", "--cache", url, copies=tmp_path / "a", **more)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"spklink: --cache {url}: ")
    assert said in line
    assert "What is done" not in line
    assert not (tmp_path / "out").exists()


def test_nobody_is_signed_in(table, s3, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    more = {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)}
    done = run(table, tmp_path / "out", "--cache", "s3://calls/c", copies=tmp_path / "a", **more)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "s3://calls/c: no credentials; sign in" in done.stderr


def test_a_store_that_goes_away_costs_nothing_that_was_done(calls, local, tmp_path):
    """Recordings are of this machine; the store dies while they are listened to."""
    copies, out, table = tmp_path / "a", tmp_path / "out", calls / "conversations.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        with s3_server(tmp_path / "log") as (words, server):
            for name, value in words.items():
                patch.setenv(name, value)
            s3fs.S3FileSystem(skip_instance_cache=True).mkdir("calls")
            env = os.environ | {"SPKLINK_COPIES": str(copies), "PYTHONPATH": str(ROOT / "src")}
            said = {"env": env, "stderr": subprocess.PIPE, "text": True}
            with subprocess.Popen(
                command(table, out, "--cache", "s3://calls/c"), **said
            ) as process:
                while len(kept(copies, "features")) < 3:
                    time.sleep(0.005)
                server.kill()
                [line] = process.communicate()[1].splitlines()
        assert process.returncode == 2
        assert line.startswith("spklink: --cache s3://calls/c: cannot be used now")
        assert f"What is done is kept in {copies}" in line
        done = len(kept(copies, "features"))
        assert done >= 3
        with s3_server(tmp_path / "log") as (words, _):  # empty
            for name, value in words.items():
                patch.setenv(name, value)
            found = s3fs.S3FileSystem(skip_instance_cache=True)
            found.mkdir("calls")
            again = run(table, out, "--cache", "s3://calls/c", copies=copies)
            assert again.returncode == 0, again.stderr
            assert CALLS - done < len(found.find("calls/c/features")) <= CALLS
    shutil.rmtree(copies)
    assert run(table, tmp_path / "here", copies=copies).returncode == 0
    assert content(out) == content(tmp_path / "here")

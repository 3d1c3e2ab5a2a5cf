"""Other machines: a real Dask cluster of separate processes does the same work to the same bytes,
whoever of them dies; and what is wrong with a cluster is one line."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_work import deadly, deadly_once, refuse, slow_square, square, worker
from dask_processes import dask_processes
from made_calls import PAIRS, write_table
from spklink import SpklinkError, build_model, find_cliques, link, partition, solve
from spklink import cluster as module
from spklink.cluster import check_address, joined
from spklink.cluster_flight import AHEAD, Flight, Pace
from spklink.cluster_tasks import Run
from spklink.database.conversations import make_conversations
from spklink.database.links import find_links
from spklink.hands import ALONE, Held, Here
from spklink.posterior.inference.plan import Budget
from spklink.posterior.posterior import Options
from spklink.posterior.states.seats import build_seats
from spklink.posterior.states.solve import solve_seats
from spklink.processes import Died
from spklink.recognizers.mixture import BLOCK, GROUP, train
from spklink.recognizers.plda import LaidTerms
from spklink.recognizers.products import Cosine, LaidTable, all_pairs, pair_scores, table
from spklink.runs.stages import Stages
from spklink.worlds.simulate import simulate

distributed = pytest.importorskip("distributed")
pytest.importorskip("psutil")

ROOT = Path(__file__).parent.parent
SMALL = {"components": 16, "workers": 1}


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    with dask_processes(tmp_path_factory.mktemp("dask"), 2, failures=1) as found:
        with distributed.Client(found.address) as client:
            client.wait_for_workers(2)
        yield found


@pytest.fixture(scope="module")
def cluster(processes, tmp_path_factory):
    """All work goes to it, however little it is."""
    with (
        pytest.MonkeyPatch.context() as patch,
        joined(processes.address, tmp_path_factory.mktemp("shared"), Here(1)) as found,
    ):
        patch.setattr(module, "MINIMUM", 0.0)
        patch.setattr(module, "MEGABYTES", np.inf)
        yield found


def content(out: Path) -> dict[str, bytes]:
    """All result files but the one of clock times."""
    files = sorted(path for path in out.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in files if path.name != "timings.json"}


def everywhere(monkeypatch) -> None:
    """Nothing is too little for a cluster."""
    monkeypatch.setattr(module, "MINIMUM", 0.0)
    monkeypatch.setattr(module, "MEGABYTES", np.inf)


# --- the same bytes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linked(calls, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("linked") / "out"
    link(calls / "conversations.csv", out, **SMALL)
    return out


def test_a_run_has_the_bytes_of_one_machine(calls, linked, processes, tmp_path, monkeypatch):
    """Workers are in another folder, the paths of the table are relative."""
    everywhere(monkeypatch)
    said: list[str] = []
    monkeypatch.chdir(calls)
    table, where = Path("conversations.csv"), processes.address
    out = Path(os.path.relpath(tmp_path / "out"))
    link(table, out, cluster=where, stages=Stages(say=said.append), **SMALL)
    assert content(tmp_path / "out") == content(linked)
    assert [line.partition(", dashboard")[0] for line in said] == [f"cluster {where}: 2 workers"]
    assert not list((tmp_path / "out" / "cache").glob(".*"))  # nothing of the cluster is left


def test_local_workers_have_them_too(calls, linked, tmp_path):
    link(calls / "conversations.csv", tmp_path / "out", cluster="local:1", **SMALL)
    assert content(tmp_path / "out") == content(linked)


def test_a_partition_too(calls, processes, tmp_path, monkeypatch):
    everywhere(monkeypatch)
    for name, where in (("here", None), ("far", processes.address)):
        partition(calls / "conversations.csv", tmp_path / name, cluster=where, **SMALL)
    assert content(tmp_path / "far") == content(tmp_path / "here")


def test_training_scoring_and_cliques_do_not_ask_who_does_them(cluster):
    rng = np.random.default_rng(1)
    frames = rng.normal(size=(GROUP * BLOCK + 5000, 3)).astype(np.float32)
    here, far = (
        train(lambda: [frames], 8, seed=0, iterations=2, hands=hands)
        for hands in (Here(2), cluster)
    )
    assert pickle.dumps([here.weights, here.means]) == pickle.dumps([far.weights, far.means])
    vectors = rng.normal(size=(2500, 40)).astype(np.float32)
    product, sides = Cosine(vectors.mean(0)), rng.integers(0, 2500, (2, 3000))
    for compared in (
        lambda hands: pair_scores(product, vectors, *sides, hands=hands),
        lambda hands: table(product, vectors, sides[0][:1500], sides[1], hands=hands),
        lambda hands: all_pairs(product, vectors, hands=hands),
    ):
        assert compared(cluster).tobytes() == compared(Here(2)).tobytes()
    assert sum(known() is vectors for known, _ in cluster.laid) == 1


def test_cliques_too(cluster):
    made = simulate(seed=1)
    model = build_model(made.conversations, find_cliques(made.conversations), made.links, made.llr)
    one, two = (
        solve(model, options=Options(method="tree", cluster=hands)) for hands in (None, cluster)
    )
    for name in ("exchanged", "both_exchanged", "best", "log_evidence_low", "method", "reason"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_seats_of_lists_that_may_be_wrong_too(cluster, monkeypatch):
    everywhere(monkeypatch)
    made = [simulate(shape="network", conversations=24, seed=seed) for seed in range(3)]
    rows = [
        (f"{m}-{k}", *(f"{m}-{name}" for name in one.conversations.names(k)))
        for m, one in enumerate(made)
        for k in range(len(one.conversations))
    ]
    table, llr = make_conversations(rows), np.concatenate([one.llr for one in made])
    seats = build_seats(table, find_links(table), llr, rate=0.01)
    no_budget = Budget(1e-9, 1e-9)  # so that no piece is solved exactly
    asked, given = [], cluster.each
    monkeypatch.setattr(cluster, "each", lambda work, jobs: asked.extend(jobs) or given(work, jobs))
    here, two, far = (
        solve_seats(seats, budget=no_budget, hands=hands) for hands in (ALONE, Here(2), cluster)
    )
    assert len(asked) == 3
    for name in ("place", "guess", "low", "high", "log_sum", "proved"):
        wanted = getattr(here, name).tobytes()
        assert [getattr(one, name).tobytes() for one in (two, far)] == [wanted, wanted], name
    assert (here.method, here.reason) == (two.method, two.reason) == (far.method, far.reason)


def test_people_with_very_many_calls_too(processes, tmp_path, monkeypatch):
    """A small call centre: cohorts of both comparisons are measured by the workers."""
    everywhere(monkeypatch)
    rng, calls = np.random.default_rng(2), 600
    agent, client = np.arange(calls) % 2, 2 + rng.integers(0, 300, calls)
    voices = rng.normal(size=(302, 24))
    who = np.where(rng.random(calls)[:, None] < 0.5, [0, 1], [1, 0])
    sides = np.take_along_axis(np.stack([agent, client], 1), who, axis=1)
    vectors = (voices[sides] + 0.7 * rng.normal(size=(calls, 2, 24))).astype(np.float32)
    rows = [(f"c{k}", f"p{a};p{b}") for k, (a, b) in enumerate(zip(agent, client, strict=True))]
    write_table(tmp_path / "t.csv", ["conversation", "participants"], rows)
    asked, given = [], module.Cluster.each
    monkeypatch.setattr(
        module.Cluster,
        "each",
        lambda self, work, some: asked.append(work) or given(self, work, some),
    )
    for name, where in (("here", None), ("far", processes.address)):
        link(
            *(tmp_path / "t.csv", tmp_path / name),
            embeddings=vectors.reshape(-1, 24),
            cluster=where,
            list_errors=0.0,
            workers=2,
        )
    assert content(tmp_path / "far") == content(tmp_path / "here")
    tables = [
        type(getattr(one.table, "__self__", one.table)) for one in asked if hasattr(one, "table")
    ]
    assert tables == [LaidTable, LaidTerms, LaidTerms]
    assert (tmp_path / "far" / "sums.npz").exists()


def test_workers_fetch_recordings_from_elsewhere(calls, processes, tmp_path):
    pytest.importorskip("aiohttp")
    handler = partial(SimpleHTTPRequestHandler, directory=calls)
    handler.func.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        rows = [(f"c{k}", f"{url}/{k}.wav", f"{a};{b}") for k, (a, b) in enumerate(PAIRS)]
        write_table(tmp_path / "t.csv", ["conversation", "audio", "participants"], rows)
        for name, where in (("here", None), ("far", processes.address)):
            link(tmp_path / "t.csv", tmp_path / name, cluster=where, **SMALL)
        server.shutdown()
    assert content(tmp_path / "far") == content(tmp_path / "here")
    assert len(list((tmp_path / "far" / "cache" / "recordings").iterdir())) == len(PAIRS)


# --- hands ----------------------------------------------------------------------------------------


def test_results_come_in_order_and_from_all_workers(cluster, processes):
    assert list(cluster.each(square, range(300))) == [k * k for k in range(300)]
    assert set(cluster.each(worker, range(60))) == set(processes.workers())
    assert list(cluster.each(square, [])) == []


def test_an_error_is_the_workers_own(cluster):
    with pytest.raises(ZeroDivisionError, match="seven"):
        list(cluster.each(refuse, range(20)))


def test_little_work_stays_here(cluster, monkeypatch):
    monkeypatch.setattr(module, "MINIMUM", 1.0)
    monkeypatch.setattr(module, "MEGABYTES", 50.0)
    assert cluster.worth(0.5) is cluster.here
    assert cluster.worth(2.0) is cluster
    assert cluster.worth(2.0, megabytes=200.0) is cluster.here


# --- somebody dies --------------------------------------------------------------------------------


def test_a_killed_worker_costs_its_tasks_only(cluster, processes):
    found = []
    for k, one in enumerate(cluster.each(slow_square, range(100))):
        found.append(one)
        if k == 20:
            os.kill(processes.workers()[0], signal.SIGKILL)
    assert found == [k * k for k in range(100)]


def test_an_item_that_ends_one_worker_is_done_by_another(cluster, tmp_path):
    tasks = [(tmp_path / "mark", k) for k in range(10)]
    assert list(cluster.apart(deadly_once, tasks)) == list(range(10))


def test_an_item_that_ends_all_workers_has_died_and_no_other(cluster):
    found = list(cluster.apart(deadly, range(10)))
    assert isinstance(found[5], Died)
    assert found[:5] + found[6:] == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_where_nothing_may_die_it_is_one_line(cluster, monkeypatch):
    monkeypatch.setattr(cluster, "apart", lambda work, items: iter([Died("2 workers ended")]))
    with pytest.raises(SpklinkError, match=r"end while they work .2 workers ended"):
        list(cluster.each(square, [5]))


def test_without_its_scheduler_a_run_ends_in_one_line_and_goes_on_later(calls, linked, tmp_path):
    with dask_processes(tmp_path / "dask", 1) as found:

        def progress(done: int, total: int) -> None:
            if total == 14 and done == 4:
                found.scheduler.kill()

        with pytest.raises(SpklinkError) as caught:
            link(
                calls / "conversations.csv",
                tmp_path / "out",
                cluster=found.address,
                stages=Stages(progress=progress),
                **SMALL,
            )
    assert str(caught.value).startswith(f"the scheduler at {found.address} is gone; what was heard")
    heard = len(list((tmp_path / "out" / "cache" / "features").glob("*.kept")))
    assert 4 <= heard <= 14
    assert not list((tmp_path / "out" / "cache").glob(".*.writing"))
    link(calls / "conversations.csv", tmp_path / "out", **SMALL)
    assert content(tmp_path / "out") == content(linked)


# --- what is wrong with a cluster -----------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["local", "local:0", "host:8786", "http://host:1", "tcp://host"]
)
def test_what_is_no_address(address, calls):
    with pytest.raises(SpklinkError, match="give local:N"):
        link(calls / "conversations.csv", cluster=address)


def test_nobody_is_there(run, calls, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CONNECTING", 0.5)
    words = ["link", calls / "conversations.csv", "-o", tmp_path, "--cluster", "tcp://127.0.0.1:9"]
    code, _, error = run(*words)
    assert code == 2
    assert error.startswith("spklink: --cluster tcp://127.0.0.1:9: no scheduler can be reached")
    assert len(error.splitlines()) == 1


def test_without_the_extra_its_name_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SpklinkError, match=r'pip install "spklink\[dask\]"'):
        check_address("local:2")


def test_without_cryptography_nothing_is_started(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SpklinkError, match=r'needs cryptography: pip install "spklink\[dask\]"'):
        check_address("local:2")
    check_address("tcp://127.0.0.1:8786")


def test_dask_is_loaded_only_when_it_is_asked_for():
    code = (
        "import sys, spklink.runs.link, spklink.cli.commands; print('distributed' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: replace(run, version="0.0.9"), "has spklink .*, and this is 0.0.9"),
        (lambda run: replace(run, sign=run.sign / "not"), "does not see .*--cache"),
    ],
)
def test_workers_that_are_not_fit(processes, tmp_path, monkeypatch, change, said):
    signed = Run.signed
    monkeypatch.setattr(Run, "signed", lambda folder: change(signed(folder)))
    with (
        pytest.raises(SpklinkError, match=said),
        joined(processes.address, tmp_path, Here(1)),
    ):
        pass


def test_a_cluster_without_workers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "NOBODY", 0.5)
    with dask_processes(tmp_path / "dask", 1) as found:
        found.nannies.terminate()
        found.nannies.wait()
        said = "no workers for 0 minutes; start some with dask worker"
        with pytest.raises(SpklinkError, match=said), joined(found.address, tmp_path, Here(1)):
            pass


def test_nobody_else_reaches_local_workers(tmp_path):
    import psutil

    me, before = psutil.Process(), set(psutil.Process().children(recursive=True))
    with joined("local:1", tmp_path, Here(1)) as cluster:
        assert list(cluster.each(square, range(3))) == [0, 1, 4]
        ours = [me, *(set(me.children(recursive=True)) - before)]
        every = [one for who in ours for one in who.net_connections()]
        listening = [one.laddr.ip for one in every if one.status == psutil.CONN_LISTEN]
    assert len(listening) >= 2
    assert set(listening) == {"127.0.0.1"}
    assert not list(tmp_path.iterdir())


def test_no_other_account_of_this_machine_sends_work(tmp_path):
    """Whoever talks to the scheduler of local workers may run Python in them, and here."""
    import dask
    import distributed

    with joined("local:1", tmp_path, Here(1)) as cluster:
        every = [cluster.client.scheduler.address, *cluster.client.nthreads()]
        for address in every:
            assert address.startswith("tls://127.0.0.1:")
            plain = address.replace("tls://", "tcp://")
            other = distributed.Security.temporary()  # a stranger's certificate
            for where, how in ((plain, None), (address, other)):
                with (
                    dask.config.set({"distributed.comm.retry.count": 0}),
                    pytest.raises(OSError, match=r"(?i)timed out|connect|certificate"),
                    distributed.Client(where, security=how, timeout=1.0),
                ):
                    pass
        assert list(cluster.each(square, range(3))) == [0, 1, 4]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates")
def test_behind_tls(tmp_path):
    import dask

    make = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=us"
    subprocess.run(["openssl", *make.split()], cwd=tmp_path, check=True, capture_output=True)
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    words = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key, "--protocol", "tls")
    at = "distributed.comm.tls"
    tls = {f"{at}.ca-file": cert, f"{at}.client.cert": cert, f"{at}.client.key": key}
    with dask_processes(tmp_path / "dask", 1, *words) as found:
        assert found.address.startswith("tls://")
        with (
            dask.config.set(tls),
            joined(found.address, tmp_path, Here(1)) as cluster,
        ):
            assert list(cluster.each(square, range(3))) == [0, 1, 4]
        with (
            pytest.raises(SpklinkError, match="no scheduler can be reached there"),
            joined(found.address, tmp_path, Here(1)),
        ):
            pass


# --- how items travel, without a cluster ----------------------------------------------------------


class Post:
    """Tasks are done when somebody asks for them; what travels is pickled."""

    def __init__(self, count: int, deaths: set[int]) -> None:
        self.count, self.deaths, self.sizes = count, deaths, []
        self.under_way: list[bytes] = []

    def submit(self, work, items):
        self.sizes.append(len(items))
        self.under_way.append(pickle.dumps((work, items)))
        assert len(self.under_way) <= AHEAD * self.count
        return self.under_way[-1]

    def settled(self, task, *, wait=True):
        """The latest are done first, and one at a time."""
        done = task not in self.under_way
        if wait and not done:
            self.under_way.pop()
        return done

    def outcome(self, task):
        from distributed import KilledWorker

        assert task not in self.under_way
        work, items = pickle.loads(task)
        if self.deaths & set(items):
            raise KilledWorker("task", None, 3)
        return 0.1 * len(items), [work(item) for item in items]


@given(st.integers(0, 200), st.integers(1, 5), st.sets(st.integers(0, 200), max_size=4))
def test_any_flight_brings_all_home_in_order(items, count, deaths):
    post = Post(count, deaths)
    found = list(Flight(post, square, range(items)).results())
    assert [one if isinstance(one, int) else "died" for one in found] == [
        "died" if k in deaths else k * k for k in range(items)
    ]
    if items >= 100 * count and not deaths:
        assert max(post.sizes) == 10  # a tenth of a second each, a second a task


@given(st.lists(st.floats(0.0, 1e4), max_size=20), st.integers(1, 10**9), st.integers(1, 10**4))
def test_no_task_is_empty_or_leaves_others_without_work(seconds, left, hands):
    pace = Pace()
    for one in seconds:
        pace.told(one, 1)
        assert 1 <= pace.size(left, hands) <= max(1, -(-left // (2 * hands)))


def test_work_that_travels_is_small():
    """Arrays are laid out, not sent."""
    from spklink.recognizers.products import _Tiles

    vectors = np.zeros((100_000, 8), np.float32)
    assert Held(vectors).get() is vectors
    tiles = _Tiles(Cosine(vectors[0]), Held(vectors[:0]))
    assert len(pickle.dumps(tiles.pairs)) < 1000


def test_the_page_has_the_table_that_the_model_prints(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import cost_model

    assert "\n".join(cost_model.table()) in (ROOT / "docs" / "how-to" / "cluster.md").read_text()

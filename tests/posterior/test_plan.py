"""The planner and the table of methods: what is chosen, what is said, and how a method is added."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import zoo
from spklink import SpklinkError, build_model, find_cliques, solve
from spklink.posterior.inference import plan, table
from spklink.posterior.inference.beliefs import (
    CERTAINTIES,
    EXACT,
    UNCOUNTED,
    Piece,
    Proposal,
    exact_beliefs,
    proposals,
)
from spklink.posterior.inference.plan import Budget, solve_network
from spklink.posterior.posterior import Options, _run
from spklink.worlds import simulate


def model_of(**settings):
    made = simulate.simulate(**settings)
    cliques = find_cliques(made.conversations)
    return build_model(made.conversations, cliques, made.links, made.llr)


def test_every_way_of_the_planner_gives_one_answer():
    rng = np.random.default_rng(8)
    network = zoo.random_network("tree", 30, rng, mu=2.0)
    piece = plan._Planner(Budget(), 0, 1).piece(network)
    ways = [(method.name, way) for method, way in proposals(table.load_all(), piece, EXACT)]
    assert {name for name, _ in ways} == {"trace", "tree", "blocks"}
    answers = [way.run() for _, way in ways if Budget().fits(way.cost)]
    assert len(answers) > 1
    for answer in answers[1:]:
        assert np.allclose(answer.one, answers[0].one, atol=1e-9)
        assert np.allclose(answer.both, answers[0].both, atol=1e-9)


def test_a_small_budget_changes_the_method_and_says_so():
    model = model_of(shape="star", conversations=24, eer=7.0)
    rich = solve(model)
    poor = solve(model, options=Options(budget=Budget(seconds=1e-6)))
    assert rich.certainty[0] == "exact"
    assert poor.certainty[0] in CERTAINTIES[1:]
    assert "exceeds the budget" in poor.reason[0]
    assert (poor.exchanged_low <= rich.exchanged + 1e-9).all()
    assert (rich.exchanged <= poor.exchanged_high + 1e-9).all()


def test_what_is_not_solved_exactly_is_predicted_to_cost_something():
    """Calibration without labels tries several starts only where one is quick."""
    small, large = (solve(model_of(shape="star", conversations=n)).seconds[0] for n in (40, 80))
    assert 0.0 < small < large


@pytest.mark.parametrize("method", table.names())
def test_every_method_by_name_on_a_database(method):
    # Scores good enough for a certificate, or bad enough for a sampler to settle.
    model = model_of(shape="star", conversations=9, eer=35.0 if method == "sample" else 2.0)
    posterior = solve(model, options=Options(method=method))
    assert posterior.method[0] == ("enumerate" if method == table.AUTO else method)
    assert posterior.certainty[0] in CERTAINTIES
    assert np.isfinite(posterior.exchanged).all()


@pytest.mark.parametrize("name", table.METHODS)
def test_the_table_and_the_methods_agree_on_names(name):
    method = table.load(name)
    assert method.name == name
    assert method.certainty in CERTAINTIES


def test_the_table_is_light():
    program = "import sys, spklink.posterior.inference.table; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = run.stdout.split()
    assert "spklink.posterior.inference.table" in loaded
    assert not {"numpy", "numba", "scipy"} & set(loaded)


class Toy:
    """Plain enumeration as a method of its own: what a new file would hold."""

    name, certainty, most = "toy", EXACT, 10

    def propose(self, piece: Piece) -> Proposal | None:
        self.threads = piece.threads
        if len(piece) > self.most:
            return None
        return Proposal(UNCOUNTED, "a toy", lambda: self.solve(piece.network))

    def solve(self, network):
        truth = zoo.brute_force(network)
        figures = (truth[key] for key in ("one", "both", "log_sum", "entropy"))
        return exact_beliefs(network, self.name, np.array(truth["best"][0], np.int8), *figures)


@pytest.fixture
def toy(monkeypatch):
    """The toy in a file of its own, and its entry in the table."""
    file = ModuleType("spklink.posterior.inference.toy_file")
    file.METHOD = Toy()
    monkeypatch.setitem(sys.modules, file.__name__, file)
    monkeypatch.setitem(table.METHODS, "toy", "toy_file")
    return file.METHOD


@pytest.mark.usefixtures("toy")
def test_a_new_method_is_one_file_and_one_entry():
    model = model_of(shape="star", conversations=9, eer=20.0)
    want, found = solve(model), solve(model, options=Options(method="toy"))
    assert found.method[0] == "toy"
    assert found.reason[0] == "a toy"
    assert np.allclose(found.exchanged, want.exchanged, atol=1e-9)
    assert np.allclose(found.log_evidence, want.log_evidence)


def test_a_method_asked_for_runs_alone_or_says_why_not(toy):
    model = model_of(shape="star", conversations=14)
    with pytest.raises(SpklinkError, match=r"'toy' cannot solve a piece of 14 open .*auto"):
        solve(model, options=Options(method="toy"))
    toy.most, toy.solve = 20, lambda network: None
    with pytest.raises(
        SpklinkError, match=r"'toy' cannot solve a piece of 14 open .*no answer.*auto"
    ):
        solve(model, options=Options(method="toy"))


def test_the_planner_takes_a_new_method_where_it_is_cheapest(toy):
    model = model_of(shape="star", conversations=13, eer=20.0)
    assert solve(model).method[0] == "tree"
    toy.most = 13
    assert solve(model).method[0] == "toy"


@pytest.mark.parametrize(("cliques", "workers", "threads"), [(1, 3, 3), (2, 3, 1), (1, 1, 1)])
def test_a_method_has_the_threads_that_cliques_leave(toy, cliques, workers, threads):
    network = zoo.random_network("star", 5, np.random.default_rng(0), mu=1.0)
    jobs = [(k, network) for k in range(cliques)]
    assert len(list(_run(jobs, Options(method="toy", workers=workers)))) == cliques
    assert toy.threads == threads


def test_wide_bounds_wait_for_samples_and_are_better_than_an_estimate(monkeypatch):
    rng = np.random.default_rng(1)
    strong, weak = (zoo.random_network("star", 60, rng, mu=mu) for mu in (8.0, 0.2))

    def answer(network, seconds):
        found = solve_network(network, budget=Budget(seconds))
        return found.beliefs.method, *found.reason.split("; ")[1:]

    assert answer(strong, 1e-6) == ("certified",)
    monkeypatch.setattr(plan, "WIDE", -1.0)
    wide = "certified intervals are wide"
    assert answer(strong, 1e-6) == ("certified", wide, "sampling does not settle")
    assert answer(weak, 1e-6) == ("bp", "no certificate", "sampling does not settle")
    assert answer(weak, 60.0) == ("sample", "no certificate")


def test_a_method_that_cannot_do_it_names_the_clique():
    model = model_of(shape="star", conversations=60)
    with pytest.raises(SpklinkError, match=r"clique 1: method 'trace' cannot solve a piece of 60"):
        solve(model, options=Options(method="trace"))
    with pytest.raises(SpklinkError, match="not one of"):
        Options(method="magic")
    with pytest.raises(SpklinkError, match="positive"):
        Budget(seconds=0.0)

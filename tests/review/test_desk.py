"""A results folder with decisions on it, held against runs that know the same from the start."""

from __future__ import annotations

import shutil
import sqlite3
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from spklink import assign
from spklink.database.sides import names_on
from spklink.errors import SpklinkError
from spklink.posterior.likelihood import link_terms
from spklink.posterior.posterior import Options
from spklink.review.desk import Desk
from spklink.runs.part import part_of, solved, with_heard
from spklink.runs.queue import Board, Question
from spklink.worlds.simulate import simulate

NUMBER = iter(range(10**6))


@pytest.fixture(scope="module")
def made():
    return simulate(shape="cgn", conversations=60, eer=15, seed=2)


@pytest.fixture(scope="module")
def source(made, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "results"
    assign(made.table(), made.scores()).save(folder)
    return folder


@pytest.fixture(scope="module")
def doubtful(made, tmp_path_factory) -> Path:
    """The same where lists may be wrong."""
    folder = tmp_path_factory.mktemp("doubtful") / "results"
    assign(made.table(), made.scores(), list_errors=0.02).save(folder)
    return folder


@pytest.fixture
def results(source, tmp_path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "results"))


@pytest.fixture
def desk(results) -> Desk:
    return Desk.open(results)


def hear(desk, m, seats, reviewer="anna", **words):
    return desk.decide(m, seats, reviewer=reviewer, request=f"r{next(NUMBER)}", **words)


def true_names(made, m) -> tuple[str, ...]:
    return tuple(np.array(made.on_side)[made.conversations.sides.of(m)].tolist())


def exchanged(desk) -> np.ndarray:
    found = np.full(len(desk.table), np.nan)
    for k in range(len(desk.cliques)):
        part = desk.part(k)
        found[part.calls] = part.answer.bits.exchanged
    return found


def test_before_any_decision_it_is_what_the_run_says(desk, made):
    posterior = assign(made.table(), made.scores()).posterior
    assert exchanged(desk) == pytest.approx(posterior.exchanged, abs=1e-12)
    progress = desk.progress()
    assert progress.settled == int(posterior.settled().sum())
    assert progress.bits_left[0] == pytest.approx(posterior.entropy_bits.sum())


def test_decisions_say_the_same_as_known_channels(desk, made):
    """Conversation after conversation as the queue asks; a run that knows them agrees."""
    known = []
    for _ in range(6):
        m = desk.queue(0, 1)[0].m
        names = true_names(made, m)
        known += [
            {"conversation": desk.table.ids[m], "channel": k + 1, "speaker": who}
            for k, who in enumerate(names)
        ]
        change = hear(desk, m, names)
        assert change.progress.open < len(desk.table)
    again = assign(made.table(), made.scores(), known=known).posterior
    assert exchanged(desk) == pytest.approx(again.exchanged, abs=1e-9)
    assert desk.progress().bits_left[0] == pytest.approx(again.entropy_bits.sum(), abs=1e-9)
    assert exchanged(Desk.open(desk.folder)) == pytest.approx(again.exchanged, abs=1e-9)


def test_only_the_clique_of_a_decision_changes(desk, made):
    before, m = exchanged(desk), desk.queue(0, 1)[0].m
    exchanged(desk)
    parts = dict(desk._parts)
    change = hear(desk, m, true_names(made, m))
    k = int(desk.cliques.label[m])
    assert all(desk._parts[j] is part for j, part in parts.items() if j != k)
    outside = np.setdiff1d(np.arange(len(before)), change.conversations)
    assert (exchanged(desk)[outside] == before[outside]).all()
    assert set(change.changed) <= set(change.conversations)
    assert m in change.changed


def test_undo_restores_everything(desk, made):
    before, progress = exchanged(desk), desk.progress()
    queue = desk.queue(0, 99)
    hear(desk, queue[0].m, true_names(made, queue[0].m))
    hear(desk, queue[1].m, true_names(made, queue[1].m))
    desk.undo(reviewer="anna", request="u1")
    desk.undo(reviewer="anna", request="u2", number=1)
    assert exchanged(desk).tolist() == before.tolist()
    assert desk.progress() == progress
    assert desk.queue(0, 99) == queue
    assert [one.verdict for one in desk.log.all()] == ["heard", "heard", "undo", "undo"]
    with pytest.raises(SpklinkError, match="nothing of 'anna' to take back"):
        desk.undo(reviewer="anna", request="u3")


def test_nobody_takes_back_what_another_said(desk):
    m = desk.queue(0, 1)[0].m
    hear(desk, m, desk.table.names(m))
    with pytest.raises(SpklinkError, match="decision 1 is not there, or not of 'bert'"):
        desk.undo(reviewer="bert", request="u", number=1)


def test_the_same_request_twice_is_one_decision(desk):
    m = desk.queue(0, 1)[0].m
    for _ in range(2):
        desk.decide(m, desk.table.names(m), reviewer="anna", request="same")
    for _ in range(2):
        desk.undo(reviewer="anna", request="back")
    assert len(desk.log.all()) == 2


def test_two_people_of_always_the_same_calls_need_one_listen(desk, made):
    """What voices cannot tell: one listen settles whatever is linked."""
    alike = np.flatnonzero(~desk.cliques.resolvable)
    assert len(alike)
    for k in alike.tolist():
        low, high = desk.board.listens[:, k]
        calls = desk.cliques.members(k)
        m = int(calls[0])
        posterior = desk.part(k).answer.bits
        linked = posterior.relative_probability()[0][0] > 0.999
        if linked:
            assert low == high == pytest.approx(1.0, abs=0.01)
            hear(desk, m, true_names(made, m))
            assert not desk.board.open[calls].any()


def test_expected_listens_are_what_listening_takes(made):
    """On average over truths drawn from the posterior itself, by always hearing the first."""
    result = assign(made.table(), made.scores())
    posterior, draws = result.posterior, 150
    k = int(np.argmax(posterior.entropy_bits))
    members = result.evidence.cliques.members(k)
    assert len(members) > 2
    bits, chance = posterior.best_configurations(k, 2 ** len(members))
    clique = part_of(result.evidence, members)
    usable, rng, total = np.ones(2 * len(members), bool), np.random.default_rng(0), []

    def look(heard):
        evidence = with_heard(clique, heard)
        calls = np.arange(len(members))
        board.take(np.array([0]), solved(evidence, calls, usable, rate=0.0, how=Options()))

    board = Board(np.zeros(len(members), np.int32), np.array([len(members)]))
    look({})
    expected = float(board.listens[0, 0])
    for truth in bits[rng.choice(len(chance), size=draws, p=chance / chance.sum())]:
        heard = {}
        look(heard)
        while board.open.any():
            m = int(np.flatnonzero(board.leads)[0])
            heard[m] = names_on(clique.conversations, m, int(truth[m]))
            look(heard)
        total.append(len(heard))
    assert np.std(total) > 0
    assert np.mean(total) == pytest.approx(expected, abs=4 * np.std(total) / draws**0.5)


# --- someone else ---------------------------------------------------------------------------------


def test_someone_else_says_nothing_about_anybody(desk):
    """Held against every configuration written down, with the stranger's track silent."""
    k = int(np.argmax(desk.cliques.size))
    calls = desk.cliques.members(k)
    m = int(calls[0])
    first = desk.table.names(m)[0]
    hear(desk, m, (first, "*"))
    evidence = part_of(desk.result.evidence, calls)
    links, llr = evidence.links, evidence.scores.needed
    terms = link_terms(links, llr, evidence.weight)
    a, b = links.first[links.pair], links.second[links.pair]
    chance = np.zeros((len(calls), 2))
    for x in product((0, 1), repeat=len(calls)):
        if x[0] != 0:
            continue
        value = 0.0
        for e in range(len(links.pair)):
            if a[e] == 0 and links.position_first[e] == 1:  # the second person is not there
                continue
            value += terms[e, x[a[e]], x[b[e]]]
        for j, bit in enumerate(x):
            chance[j, bit] += np.exp(value)
    wanted = chance[:, 1] / chance.sum(axis=1)
    assert desk.part(k).answer.bits.exchanged == pytest.approx(wanted, abs=1e-9)
    assert desk.view(m).tracks[1].name == "*"
    assert desk.view(m).tracks[1].origin == "heard"


def test_what_was_heard_is_so_where_lists_may_be_wrong(doubtful, tmp_path):
    desk = Desk.open(shutil.copytree(doubtful, tmp_path / "results"))
    k = int(np.argmax(desk.cliques.size))
    m = int(desk.cliques.members(k)[0])
    before = desk.view(m)
    assert before.tracks[0].probability < 1.0
    hear(desk, m, ("*", None))
    part = desk.part(k)
    assert part.answer.stranger.chance[0] == pytest.approx(1.0)
    assert desk.view(m).tracks[0].origin == "heard"
    hear(desk, m, tuple(reversed(desk.table.names(m))))
    assert part is not desk.part(k)
    assert desk.part(k).answer.chance_of(0, 0, desk.table.people[desk.table.listing.of(m)][1]) == (
        pytest.approx(1.0)
    )
    desk.undo(reviewer="anna", request="1")
    desk.undo(reviewer="anna", request="2")
    assert desk.view(m).tracks == before.tracks


def test_somebody_who_is_not_listed_is_kept_by_name(desk):
    m = desk.queue(0, 1)[0].m
    first = desk.table.names(m)[0]
    hear(desk, m, (first, "Zoë <b>"))
    assert [one.name for one in desk.view(m).tracks] == [first, "Zoë <b>"]
    part = desk.part(int(desk.cliques.label[m]))
    assert part.names(int(np.searchsorted(part.calls, m))) == (first, "*")


# --- several people -------------------------------------------------------------------------------


def test_people_who_disagree_must_resolve_it(desk):
    m = desk.queue(0, 9)[-1].m
    a, b = desk.table.names(m)
    before = exchanged(desk)
    hear(desk, m, (a, b))
    assert desk.verdict(m).seats == (a, b)
    hear(desk, m, (b, a), reviewer="bert")
    assert exchanged(desk).tolist() == before.tolist()
    first = desk.queue(0, 1)[0]
    assert (first.m, first.kind, first.question) == (m, "disagreement", "Who is right?")
    assert f"anna: {a}, {b}; bert: {b}, {a}" in first.reason
    assert desk.progress().disagreements == 1
    assert desk.view(m).disagreement
    hear(desk, m, (b, a), reviewer="carla", verdict="resolve", why="she says her name")
    assert desk.verdict(m).seats == (b, a)
    assert desk.verdict(m).by == ("carla",)
    assert not desk.view(m).disagreement
    with pytest.raises(SpklinkError, match="nobody disagrees"):
        hear(desk, m, (a, b), verdict="resolve")
    hear(desk, m, (a, b))
    assert desk.verdict(m).disagree


def test_people_who_say_different_tracks_agree(desk):
    m = desk.queue(0, 1)[0].m
    a, b = desk.table.names(m)
    hear(desk, m, (a, None))
    hear(desk, m, (None, b), reviewer="bert")
    assert desk.verdict(m).seats == (a, b)
    assert desk.verdict(m).by == ("anna", "bert")


def test_another_process_is_heard_of(desk, results):
    other = Desk.open(results)
    m = desk.queue(0, 1)[0].m
    hear(other, m, other.table.names(m), reviewer="bert")
    assert desk.verdict(m).seats is None
    assert desk.refresh() == {m}
    assert desk.verdict(m).by == ("bert",)
    assert exchanged(desk).tolist() == exchanged(other).tolist()
    assert desk.refresh() == set()


def test_who_could_not_tell_is_asked_last(desk):
    m = desk.queue(0, 1)[0].m
    before = exchanged(desk)
    hear(desk, m, (), verdict="unsure")
    last = desk.queue(0, 999)[-1]
    assert (last.m, last.kind) == (m, "unsure")
    assert "anna heard it and could not tell" in last.reason
    assert desk.progress().unsure == 1
    assert exchanged(desk).tolist() == before.tolist()


def test_blind_decisions_are_held_against_the_answer(desk):
    assert desk.agreement().rate is None
    for k, one in enumerate(desk.queue(0, 4)):
        said = desk.part(one.clique).names(desk._within(one.clique, one.m))
        seats = said if k else said[::-1]
        hear(desk, one.m, seats, shown={"blind": k < 3})
    found = desk.agreement()
    assert (found.count, found.same) == (3, 2)
    assert found.rate == pytest.approx(2 / 3)
    assert 0.0 < found.low < 2 / 3 < found.high < 1.0
    shown = [one.shown["probability"] for one in desk.log.all()[:3]]
    assert found.expected == pytest.approx(sum(shown))


@pytest.mark.parametrize(
    ("seats", "words", "said"),
    [
        (("a",), {}, "1 seats where"),
        ((None, None), {}, "nobody is named"),
        (("  ", None), {}, "empty or too long"),
        (("x" * 2000, None), {}, "empty or too long"),
        (("a", "a"), {}, "one person on two tracks"),
        (("a", "b"), {"verdict": "undo"}, "verdict 'undo' is not"),
        (("a", "b"), {"why": "x" * 2000}, "why is longer"),
        (("a", "b"), {"shown": {"x": "y" * 30_000}}, "too long to be stored"),
    ],
)
def test_what_cannot_be_so_is_refused_and_not_stored(desk, seats, words, said):
    with pytest.raises(SpklinkError, match=said):
        hear(desk, 0, seats, **words)
    with pytest.raises(SpklinkError, match="no conversation"):
        hear(desk, 10**6, ("a", "b"))
    assert desk.log.all() == []


# --- the queue ------------------------------------------------------------------------------------


def test_the_orders_are_what_they_are_called(desk):
    paper = [desk.cliques.size[one.clique] for one in desk.queue(0, 999, order="paper")]
    assert paper == sorted(paper, reverse=True)
    sure = [one.probability for one in desk.queue(0, 999, order="uncertain")]
    assert sure == sorted(sure)
    every = {one.m for one in desk.queue(0, 999)}
    assert (
        every
        == {one.m for one in desk.queue(0, 999, order="random")}
        == set(np.flatnonzero(desk.board.open).tolist())
    )
    first = desk.queue(0, len({one.clique for one in desk.queue(0, 999)}))
    assert len({one.clique for one in first}) == len(first)  # one of each clique before the rest
    worth = [
        desk.board.open[desk.cliques.members(one.clique)].sum() / one.listens[0] for one in first
    ]
    assert worth == sorted(worth, reverse=True)
    assert desk.queue(3, 2) == desk.queue(0, 5)[3:]


def test_a_contradicted_claim_comes_with_its_question(source, tmp_path):
    result = Desk.open(shutil.copytree(source, tmp_path / "results"))
    sure = int(np.flatnonzero(~result.board.open)[0])
    names = result.table.names(sure)
    result.questions[sure] = [Question("claim", "claimed otherwise", f"Is it {names[0]}?", 0.999)]
    queue = result.queue(0, 999)
    assert queue[-1].m == sure  # nothing is open about it: it can wait
    assert (queue[-1].kind, queue[-1].question) == ("claim", f"Is it {names[0]}?")
    hear(result, sure, names)
    assert sure not in {one.m for one in result.queue(0, 999)}


def test_evidence_adds_up(desk):
    for one in desk.queue(0, 10):
        view = desk.view(one.m)
        p = view.asked.probability
        assert view.total == pytest.approx(np.log10(p / (1 - p)), abs=1e-6)
        assert {other.name for other in view.neighbours} <= {one.name for one in view.tracks}
        assert len(view.graph.nodes) == desk.cliques.size[view.clique]


def test_a_log_that_was_tampered_with_is_not_opened(desk):
    m = desk.queue(0, 1)[0].m
    hear(desk, m, desk.table.names(m))
    with sqlite3.connect(desk.log.path) as other:
        other.execute("drop trigger never_changed")
        other.execute("update decisions set entry = replace(entry, 'anna', 'bert')")
    with pytest.raises(SpklinkError, match="entry 1 of the log was changed"):
        Desk.open(desk.folder)

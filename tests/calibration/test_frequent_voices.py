"""Voices of people with very many conversations: sums against all pairs listed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import spklink
from spklink.calibration.certificate import certify
from spklink.calibration.counting import TAIL, most_flips
from spklink.calibration.curves import Line
from spklink.calibration.frequent import FrequentVoices, by_sound, sampled_links, side_line
from spklink.calibration.pairs import make_pairs
from spklink.calibration.settling import Problem, Settling, listed_pieces
from spklink.calibration.spread import Spread
from spklink.database import frequent as rule
from spklink.database.cliques import find_cliques
from spklink.database.conversations import read_conversations
from spklink.database.frequent import chosen_frequent, find_frequent, most_listed
from spklink.database.links import find_links, needed_sides
from spklink.errors import SpklinkError
from spklink.posterior.likelihood import Weight, build_model
from spklink.posterior.posterior import Options, solve
from spklink.posterior.summed import loosened, widened
from spklink.recognizers.products import Cosine
from spklink.recognizers.sums import compared_by, pair_ratios
from spklink.scores.needed import no_side_scores
from spklink.tables import read_table

LINE = Line(6.0, -1.0)
WIDTH = 8


def made(people, strength, seed):
    """A table of these pairs of people, vectors of its sides, and the true bits."""
    rng = np.random.default_rng(seed)
    rows = [
        {"conversation": f"c{m}", "participants": ";".join(pair)} for m, pair in enumerate(people)
    ]
    table = read_conversations(read_table(rows))
    truth = rng.integers(0, 2, len(table))
    voice = strength * rng.normal(size=(len(table.speakers), WIDTH))
    who = table.people.reshape(-1, 2)
    who = np.where(truth[:, None] == 1, who[:, ::-1], who).ravel()
    vectors = (voice[who] + rng.normal(size=(len(who), WIDTH))).astype(np.float32)
    return table, vectors, truth


def voices_of(table, vectors, most):
    sides = len(vectors)
    how = (compared_by(Cosine(np.zeros(WIDTH, np.float32)), vectors, np.arange(sides), None),)
    found = by_sound(table, chosen_frequent(table, most), np.arange(sides))
    return FrequentVoices(table, found, lambda person: how, np.ones(sides, bool), None, WIDTH), how


def ratios(table, links, how):
    line = side_line(LINE, None, len(table.sides))
    return pair_ratios(how, line, *needed_sides(links, table.sides))


def by_pairs(table, how, weight):
    """All pairs listed, solved exactly."""
    links = find_links(table)
    model = build_model(table, find_cliques(table), links, ratios(table, links, how), weight=weight)
    return solve(model)


def by_sums(table, vectors, most, weight, *, seconds=60.0):
    voices, how = voices_of(table, vectors, most)
    links = find_links(table, without=voices.frequent.person)
    llr = ratios(table, links, how)
    pairs = make_pairs(table, links, llr, no_side_scores())
    settling = Settling(Problem(table, pairs, voices, None, 0.0, Options()), weight)
    found = settling.finished(llr, LINE)
    summed = replace(voices, table=replace(table, sums=found.sums))
    piece = listed_pieces(table, links).label.astype(np.int64)
    slack = certify(summed, LINE, weight, found.answer, piece, seconds)
    return found, loosened(found.answer, slack).bits, how


@st.composite
def shapes(draw):
    """Pairs of people, a few of whom are in most conversations."""
    calls = draw(st.integers(5, 11))
    people = [f"p{k}" for k in range(draw(st.integers(3, 12)))]
    main = st.sampled_from(people[:2])
    pair = st.tuples(main, st.sampled_from(people)).filter(lambda two: two[0] != two[1])
    return draw(st.lists(pair, min_size=calls, max_size=calls))


@given(shapes(), st.floats(0.1, 2.0), st.integers(0, 2**32), st.booleans())
@settings(max_examples=60, deadline=None)
def test_intervals_contain_what_all_pairs_say(people, strength, seed, book):
    table, vectors, _ = made(people, strength, seed)
    assume(len(chosen_frequent(table, 3)))
    weight = Weight("book", 0.3) if book else Weight()
    settled, found, how = by_sums(table, vectors, 3, weight)
    exact = by_pairs(table, how, weight)
    assert (found.exchanged_low <= exact.exchanged + 1e-6).all()
    assert (found.exchanged_high >= exact.exchanged - 1e-6).all()
    assert (found.entropy_low.sum() <= exact.entropy_low.sum() + 1e-6).all()
    assert (found.entropy_high.sum() >= exact.entropy_low.sum() - 1e-6).all()
    if settled.moved < 1e-3:
        # A lower bound where no two conversations of a piece share a frequent person.
        piece = listed_pieces(table, find_links(table, without=chosen_frequent(table, 3).person))
        if piece.size.max() == 1:
            assert settled.value <= exact.log_evidence.sum() + 1e-4


@pytest.mark.parametrize("strength", [0.9, 1.5])
def test_a_star_as_the_listed_engine_solves_it(strength):
    people = [("a", f"p{k}") for k in range(120)]
    table, vectors, _ = made(people, strength, 7)
    _, found, how = by_sums(table, vectors, 20, Weight())
    exact = by_pairs(table, how, Weight())
    assert (found.best == exact.best).mean() > 0.99
    apart = np.abs(found.exchanged - exact.exchanged)
    inside = (found.exchanged_low <= exact.exchanged_high) & (
        found.exchanged_high >= exact.exchanged_low
    )
    assert inside.all()
    assert np.median(apart) < 1e-3
    assert apart.max() < 0.05
    assert list(found.certainty) == ["certified"]


def test_the_mirror_image_of_two_people_is_found_as_one_of_two():
    """Two frequent people who only talk to each other: their conversations hang together."""
    table, vectors, truth = made([("a", "b")] * 30, 1.5, 3)
    settled, _, _ = by_sums(table, vectors, 5, Weight())
    same = settled.answer.bits.best == truth
    assert same.mean() in (0.0, 1.0) or min(same.mean(), 1 - same.mean()) < 0.1


def test_beyond_the_budget_nothing_is_promised():
    table, vectors, _ = made([("a", f"p{k}") for k in range(30)], 1.5, 7)
    _, found, _ = by_sums(table, vectors, 5, Weight(), seconds=0.0)
    assert list(found.certainty) == ["estimated"]
    assert (found.exchanged_low == 0.0).all()
    assert (found.exchanged_high == 1.0).all()
    assert "--budget-seconds" in found.reason[0]


@given(st.integers(1, 9), st.integers(0, 2**32), st.floats(-6.0, 1.0), st.floats(0.0, 1.5))
@settings(max_examples=80, deadline=None)
def test_no_more_flips_than_counted(size, seed, middle, strength):
    rng = np.random.default_rng(seed)
    odds = rng.normal(middle, 1.0, size)
    gain = rng.normal(0.1, 1.0, (size, size)) * strength
    gain = (gain + gain.T) / 2.0
    np.fill_diagonal(gain, 0.0)
    weight, count = [], []
    for flips in product((0, 1), repeat=size):
        y = np.array(flips)
        weight.append(np.exp(odds @ y + y @ gain @ y / 2.0))
        count.append(y.sum())
    chance, count = np.array(weight) / np.sum(weight), np.array(count)
    positive = np.maximum(gain, 0.0)
    together = np.full(size, max(np.linalg.eigvalsh(gain)[-1], 0.0))
    spread = Spread(positive.max(1), positive.sum(1), together, lambda _: odds)
    most, beyond = most_flips(odds[None], *spread.ways(1))
    assert beyond <= TAIL
    assert chance[count > most].sum() <= beyond + 1e-12


def test_drawn_links_stand_for_all_of_a_person():
    people = [("a", f"p{k}") for k in range(40)] + [("b", f"q{k}") for k in range(10)]
    table, _, _ = made(people, 1.0, 1)
    some = chosen_frequent(table, 5)
    links, times = sampled_links(table, some, np.random.default_rng(0))
    assert times.sum() == pytest.approx(40 * 39 / 2 + 10 * 9 / 2)
    listing, each = table.listing, table.people
    one = each[listing.start[links.first[links.pair]] + links.position_first]
    two = each[listing.start[links.second[links.pair]] + links.position_second]
    assert (one == two).all()
    assert (links.first < links.second).all()


def test_who_is_frequent_is_counted():
    calls = np.array([3, 3, 10, 300])
    assert most_listed(calls, 4.0) == 10  # nobody beyond LONGEST
    assert most_listed(np.array([3, 3, 10]), 51 * 400 / 0.2 / 1e9) == 10
    assert most_listed(np.array([3, 3, 10]), 50 * 400 / 0.2 / 1e9) == 3
    assert most_listed(np.array([3, 3, 10]), 0.0) == 1
    many = np.repeat([1, 2, 3, 100], [500_000, 200_000, 100_000, 400])  # links: 500,000 and 1.98e6
    assert most_listed(many, 16.0) == 100
    assert most_listed(many, 4.0) == 3  # 2 million links are too many for the memory
    busy = np.repeat([30, 60], [2000, 2000])  # links: 870,000 and 3.5e6
    assert most_listed(busy, 16.0) == 30  # too many to be solved soon, but none has very many
    table, _, _ = made([("a", f"p{k}") for k in range(9)], 1.0, 1)
    assert not len(find_frequent(table, np.inf))
    assert not len(find_frequent(table, 4.0))


def call_centre(seed=0, calls=240, agents=3, strength=1.2):
    rng = np.random.default_rng(seed)
    people = [(f"agent{m % agents}", f"client{rng.integers(0, 150)}") for m in range(calls)]
    return made(people, strength, seed)


def rows_of(table):
    return [
        {"conversation": name, "participants": ";".join(table.names(m))}
        for m, name in enumerate(table.ids)
    ]


@pytest.fixture
def few_listed(monkeypatch):
    monkeypatch.setattr(rule, "LONGEST", 20)


def test_linking_with_sums_is_linking_with_pairs(few_listed, monkeypatch):
    table, vectors, truth = call_centre(calls=110, agents=2)
    options = {"embeddings": vectors, "list_errors": 0.0, "kind": "lr"}
    summed = spklink.link(rows_of(table), **options)
    assert list(set(summed.posterior.method)) == ["sums"]
    monkeypatch.setattr(rule, "LONGEST", 1000)
    listed = spklink.link(rows_of(table), **options)
    assert summed.calibration["scale"] == pytest.approx(listed.calibration["scale"], rel=0.15)
    assert (summed.posterior.best != truth).sum() <= (listed.posterior.best != truth).sum() + 2
    apart = np.abs(summed.posterior.exchanged - listed.posterior.exchanged)
    assert np.median(apart) < 0.01


def test_one_person_in_all_calls_is_not_taken_for_the_middle(few_listed):
    """Seen from the mean of all sides, the one and the many would be mirror images."""
    table, vectors, truth = made([("a", f"p{k}") for k in range(150)], 1.2, 5)
    found = spklink.link(rows_of(table), embeddings=vectors, list_errors=0.0)
    assert (found.posterior.best != truth).mean() < 0.05
    assert found.calibration["kind"] == "lr"


def test_one_person_in_most_calls_moves_no_middle_either_where_pairs_are_listed():
    table, vectors, truth = made([("a", f"p{k}") for k in range(70)], 1.2, 5)
    found = spklink.link(rows_of(table), embeddings=vectors, list_errors=0.0)
    assert "sums" not in found.posterior.method
    assert (found.posterior.best != truth).mean() < 0.05
    assert found.posterior.confidence()[0].mean() > 0.9


def test_results_are_read_back_as_they_were(few_listed, tmp_path):
    table, vectors, _ = call_centre()
    found = spklink.link(rows_of(table), tmp_path / "out", embeddings=vectors)
    again = spklink.load(tmp_path / "out")
    np.testing.assert_allclose(
        again.posterior.exchanged_low, found.posterior.exchanged_low, atol=1e-9
    )
    assert list(again.posterior.certainty) == list(found.posterior.certainty)
    assert not again.answer.binary
    assert again.answer.certainty == found.answer.certainty
    np.testing.assert_allclose(again.answer.beliefs.low, found.answer.beliefs.low, atol=1e-9)
    (tmp_path / "out" / "sums.npz").write_bytes(b"no arrays")
    with pytest.raises(SpklinkError, match=r"sums\.npz"):
        spklink.load(tmp_path / "out")


def test_the_order_of_the_rows_changes_nothing(few_listed):
    table, vectors, _ = call_centre()
    rows, order = rows_of(table), np.random.default_rng(1).permutation(len(table))
    one = spklink.link(rows, embeddings=vectors, list_errors=0.0)
    turned = vectors.reshape(len(table), 2, -1)[order].reshape(vectors.shape)
    two = spklink.link([rows[m] for m in order], embeddings=turned, list_errors=0.0)
    np.testing.assert_allclose(
        two.posterior.exchanged, one.posterior.exchanged[order], rtol=0, atol=1e-6
    )


def test_unknown_clients_are_no_obstacle(few_listed):
    table, vectors, truth = call_centre()
    rows = rows_of(table)
    for row in rows[::2]:
        row["participants"] = row["participants"].split(";")[0] + ";?"
    found = spklink.link(rows, embeddings=vectors, unlisted="keep")
    agent = np.char.startswith(np.array(table.speakers)[table.people].astype(str), "agent")
    side = found.answer.confidence
    on_first = truth == 0
    right = 0
    for m in range(0, len(table), 2):
        entry = found.answer.entry[2 * m + (0 if on_first[m] == agent[2 * m] else 1)]
        right += entry >= 0 and found.conversations.names(m)[0].startswith("agent")
    assert right / len(range(0, len(table), 2)) > 0.9
    assert len(side.low) == 2 * len(table)


@pytest.mark.parametrize("option", [{"kind": "lr-floor"}, {"kind": "pav"}, {"wrong_lists": 0.1}])
def test_bent_curves_are_refused_before_any_work(few_listed, option):
    table, vectors, _ = call_centre()
    with pytest.raises(SpklinkError, match="straight"):
        spklink.link(rows_of(table), embeddings=vectors, **option)


def test_a_probability_that_was_rounded_to_one_is_no_certainty():
    """By 60 nats its log-odds may be off; double precision tells 37 from certainty."""
    one, almost = np.ones(1), np.full(1, 1.0 - 1e-15)
    for shift in (1e-9, 10.0, 60.0):
        by, tail = np.full(1, shift), np.zeros(1)
        low, high = widened(one, one, by, tail)
        other_low, _ = widened(almost, almost, by, tail)
        assert other_low <= low <= one
        assert high == one
        assert low[0] < 0.5 or shift < 60.0
        mirrored = widened(1.0 - almost, 1.0 - almost, by, tail)  # the same on the other channel
        assert np.allclose(other_low, 1.0 - mirrored[1], atol=1e-12)
    assert widened(one, one, np.zeros(1), np.zeros(1))[0] == one  # nothing is summed

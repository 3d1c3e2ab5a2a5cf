"""What is proved where voices are summed: bounds against all pairs, and intervals against all
states of small databases."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spklink.calibration import certificate
from spklink.calibration.certificate import certify_seats, in_full
from spklink.calibration.counting import TAIL, most_flips
from spklink.calibration.curves import Line
from spklink.calibration.frequent import FrequentVoices, by_sound, side_line
from spklink.calibration.norms import by_norms, signed_vectors
from spklink.calibration.pairs import make_pairs
from spklink.calibration.settling import Problem, Settling
from spklink.calibration.spread import Spread, Voice, by_pairs
from spklink.database.cliques import find_cliques
from spklink.database.conversations import read_conversations
from spklink.database.frequent import chosen_frequent
from spklink.database.links import find_links, needed_sides
from spklink.posterior.answer import seat
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.posterior.summed import loosened
from spklink.recognizers.sums import Comparison, SideLine, pair_ratios
from spklink.scores.needed import no_side_scores
from spklink.tables import read_table

WIDTH = 6
LINE = Line(5.0, -1.0)
LONG = Line(5.0, -1.0, scale_speech=0.04, offset_speech=0.03, speech_low=-2.0, speech_high=2.0)


def compared(rng, sides, *, plain):
    """Two ways to compare, of which one has different vectors on its two sides; normalised."""
    unit = rng.normal(size=(sides, WIDTH)).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    less = 0.2 * rng.normal(size=(sides, 1)).astype(np.float32)
    ones = np.ones_like(less)
    left, right = np.hstack([unit, less, ones]), np.hstack([unit, -ones, -less])
    h, t = (np.ones(sides), np.zeros(sides)) if plain else rng.uniform(0.5, 1.5, (2, sides))
    first = Comparison(lambda some: (unit[some],) * 2, h, t)
    if plain:
        return (first,)
    again = Comparison(lambda some: (left[some], right[some]), rng.uniform(0.5, 1.5, sides), t)
    return first, again


def a_voice(seed, calls, *, nowhere, plain, absent=0.2):
    rng = np.random.default_rng(seed)
    tracks = np.full(calls, 2)
    start = np.concatenate([[0], np.cumsum(tracks)])
    sides = rng.permutation(2 * calls)
    best = np.where(rng.random(calls) < absent * nowhere, 2, rng.integers(0, 2, calls))
    slope = np.full(2 * calls, 2.0) if plain else rng.uniform(1.0, 3.0, 2 * calls)
    line = SideLine(slope, rng.normal(size=2 * calls) * (not plain) - 1.0)
    usable = rng.random(2 * calls) < 0.9
    how = compared(rng, 2 * calls, plain=plain)
    return Voice(how, line, sides, start, usable, best, nowhere, 2.0 / calls)


def ratios_of(voice):
    """(n, places, n, places) of everything with everything; 0 where he is nowhere."""
    n, k = len(voice), 2 + voice.nowhere
    found = np.zeros((n, k, n, k))
    one, two = (x.ravel() for x in np.meshgrid(voice.sides, voice.sides, indexing="ij"))
    llr = pair_ratios(voice.comparisons, voice.line, one, two).reshape(2 * n, 2 * n)
    llr = llr * voice.usable[:, None] * voice.usable
    found[:, :2, :, :2] = llr.reshape(n, 2, n, 2)
    return found


def plainly(voice):
    """G and C of module `spread`, written down."""
    llr, n, k = voice.weight * ratios_of(voice), len(voice), 2 + voice.nowhere
    gain, change = np.full((n, n), -np.inf), np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        b, c = voice.best[i], voice.best[j]
        for q in set(range(k)) - {c}:
            moved = llr[i, :, j, q] - llr[i, :, j, c]
            change[i, j] = max(change[i, j], np.ptp(moved))
            for p in set(range(k)) - {b}:
                gain[i, j] = max(gain[i, j], moved[p] - moved[b])
    np.fill_diagonal(gain, 0.0)
    np.fill_diagonal(change, 0.0)
    return gain, change


def all_gains(voice):
    """Of all places everywhere: which are changes, and what these gain together."""
    llr, n = voice.weight * ratios_of(voice), len(voice)
    place = np.array(list(product(range(2 + voice.nowhere), repeat=n)))
    gains = np.zeros(len(place))
    for j in range(n):
        for i in range(j):
            p, q, b, c = place[:, i], place[:, j], voice.best[i], voice.best[j]
            gains += llr[i, p, j, q] - llr[i, p, j, c] - llr[i, b, j, q] + llr[i, b, j, c]
    return place != voice.best, gains


def ways_of(voice, found):
    """Of all places everywhere, in each way: no less than what changes gain together."""
    place = np.array(list(product(range(2 + voice.nowhere), repeat=len(voice))))
    moved, kind = place != voice.best, (place == 2).astype(int)
    size, some = moved.sum(axis=1)[:, None], np.arange(len(voice))
    for slope, base in zip(*found.ways(1 + voice.nowhere), strict=True):
        each = ((size[:, :, None] - 1) * slope[:, kind, some].transpose(1, 2, 0)).transpose(2, 0, 1)
        each = (each + base[:, kind, some]).min(axis=0)
        yield np.where(moved & (size > 1), each, 0.0).sum(axis=1)


voices = st.tuples(st.integers(0, 2**32), st.integers(2, 9), st.booleans(), st.booleans())


@given(voices)
@settings(max_examples=60, deadline=None)
def test_ratios_are_products_of_signed_vectors(drawn):
    seed, calls, nowhere, plain = drawn
    voice = a_voice(seed, calls, nowhere=nowhere, plain=plain)
    rows, sign = signed_vectors(voice)
    x = rows(slice(0, len(voice.sides))).astype(np.float64)
    found = ((x * sign) @ x.T).reshape(calls, 2, calls, 2)
    np.testing.assert_allclose(found, ratios_of(voice)[:, :2, :, :2], atol=2e-4)


@pytest.mark.parametrize("bound", [by_pairs, by_norms])
@given(drawn=voices)
@settings(max_examples=60, deadline=None)
def test_bounds_hold(bound, drawn):
    seed, calls, nowhere, plain = drawn
    voice = a_voice(seed, calls, nowhere=nowhere, plain=plain)
    found, (gain, change) = bound(voice), plainly(voice)
    near = 1e-5
    assert (found.pair >= gain.max(axis=1) - near).all()
    assert (found.row >= np.maximum(gain, 0.0).sum(axis=1) - near).all()
    if calls <= 6:
        moved, gains = all_gains(voice)
        assert (moved @ found.together >= 2.0 * gains - near * calls**2).all()
        for bounds in ways_of(voice, found):
            assert (bounds >= gains - near * calls**2).all()
    largest = -np.sort(-change, axis=1)
    for count in range(calls + 2):
        assert (found.of(count) >= largest[:, :count].sum(axis=1) - near).all()
    if bound is by_pairs:
        np.testing.assert_allclose(found.pair, np.maximum(gain, 0).max(axis=1) * 1.001, atol=1e-4)
        np.testing.assert_allclose(found.of(1), largest[:, 0] * 1.001, atol=1e-4)


def test_an_eigenvalue_bounds_sets_and_not_single_rows():
    """Of c alike that gain together and one that gains a little with each: to take the lesser of
    two bounds conversation by conversation would be too little for all of them together."""
    c = 8
    gain = np.full((c + 1, c + 1), 1.0)
    gain[c, :], gain[:, c] = 0.5, 0.5
    np.fill_diagonal(gain, 0.0)
    row, top = gain.sum(axis=1), np.full(c + 1, np.linalg.eigvalsh(gain)[-1])
    odds = np.full(c + 1, -6.0)
    spread = Spread(gain.max(axis=1), row, top, lambda _: row)
    most, beyond = most_flips(odds[None], *spread.ways(1))
    chance = np.zeros(c + 2)
    for some in product((0, 1), repeat=c + 1):
        y = np.array(some)
        chance[y.sum()] += np.exp(odds @ y + y @ gain @ y / 2.0)
    chance /= chance.sum()
    assert beyond <= TAIL
    assert chance[most + 1 :].sum() <= beyond + 1e-15


def made(lists, strength, seed, there=0.85, width=WIDTH, sure=("",)):
    """A table, and vectors of its sides."""
    rng = np.random.default_rng(seed)
    rows = [{"conversation": f"c{m}", "participants": people} for m, people in enumerate(lists)]
    for row in rows:  # where they are known nearly, what is proved has a chance to be too narrow
        pair = ";" in row["participants"] and "?" not in row["participants"]
        row["prior"] = rng.choice(sure) if pair and row["participants"].count(";") == 1 else ""
    table = read_conversations(read_table(rows))
    voice = strength * rng.normal(size=(len(table.speakers) + 1, width))
    vectors = rng.normal(size=(len(table.sides), width))
    for m in range(len(table)):
        people = rng.permutation(table.people[table.listing.of(m)])
        for k, person in enumerate(people[: table.sides.counts[m]]):
            if rng.random() < there:  # else someone else is there
                vectors[table.sides.start[m] + k] += voice[person]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return table, vectors.astype(np.float32), rng.uniform(3.0, 40.0, len(table.sides))


def by_sums(table, vectors, seconds, most, line, rate, budget):
    """Solved with sums, as certain as can be proved; and how to compare."""
    sides = len(vectors)
    how = (Comparison(lambda some: (vectors[some],) * 2, np.ones(sides), np.zeros(sides)),)
    found = by_sound(table, chosen_frequent(table, most), np.arange(sides))
    spoken = FrequentVoices(table, found, lambda person: how, np.ones(sides, bool), seconds, WIDTH)
    links = find_links(table, without=found.person)
    llr = ratios(table, links, how, line, seconds)
    pairs = make_pairs(table, links, llr, no_side_scores())
    weight = Weight()
    settled = Settling(Problem(table, pairs, spoken, None, rate, Options()), weight)
    settled = settled.finished(llr, line)
    table = replace(table, sums=settled.sums)
    summed = replace(spoken, table=table)
    solved = settled.answer
    slack = certify_seats(summed, line, weight, solved, budget)
    return solved, loosened(solved, slack), how


def ratios(table, links, how, line, seconds):
    return pair_ratios(
        how, side_line(line, seconds, len(table.sides)), *needed_sides(links, table.sides)
    )


def by_pairs_of(table, how, line, seconds, rate):
    links = find_links(table)
    llr = ratios(table, links, how, line, seconds)
    return seat(table, find_cliques(table), links, llr, weight=Weight(), rate=rate)


@st.composite
def shapes(draw):
    """Lists, of which a few people are in most; some of three, some with somebody unsure."""
    people = [f"p{k}" for k in range(draw(st.integers(3, 9)))]
    lists = []
    for _ in range(draw(st.integers(4, 7))):
        some = draw(st.lists(st.sampled_from(people), min_size=1, max_size=2, unique=True))
        main = draw(st.sampled_from(people[:2]))
        own = [main, *(one for one in some if one != main)]
        if len(own) == 1 or draw(st.booleans()):
            own = [*own[:1], "?"] if len(own) == 1 else own
        elif draw(st.booleans()):
            own[1] = "?" + own[1]
        lists.append(";".join(own))
    return lists


@given(
    shapes(),
    st.floats(0.2, 4.0),
    st.integers(0, 2**32),
    st.sampled_from([0.3, 0.05, 0.001]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 0.1, 0.02]),
)
@settings(max_examples=60, deadline=None)
def test_intervals_contain_what_all_states_say(lists, strength, seed, rate, short, spoken, part):
    table, vectors, seconds = made(lists, strength, seed, sure=("", 0.9, 0.999, 0.00001))
    seconds = seconds if spoken else None
    assume(len(chosen_frequent(table, 3)))
    line = LONG if spoken else LINE
    line = Line(**{**vars(line), "scale": 3.0 * strength * part, "offset": -part})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "CLOSED", 1.0)  # what says little must be true all the same
        if short:  # lengths of vectors alone
            patch.setattr(certificate, "in_full", lambda voices, _: np.zeros(99, bool))
        _, found, how = by_sums(table, vectors, seconds, 3, line, rate, 60.0)
    exact = by_pairs_of(table, how, line, seconds, rate)
    assert set(exact.beliefs.certainty) == {"exact"}
    assert (found.beliefs.low <= exact.beliefs.guess + 1e-6).all()
    assert (found.beliefs.high >= exact.beliefs.guess - 1e-6).all()
    assert "estimated" not in found.beliefs.certainty


def test_a_star_of_lists_that_may_be_wrong_is_certified():
    """Not only safe but of use: most of what is certain is proved to be."""
    table, vectors, _ = made([f"a;b{k}" for k in range(150)], 1.0, 5, there=1.0, width=60)
    line = Line(20.0, -4.0)
    plain, found, _ = by_sums(table, vectors, None, 100, line, 0.01, 60.0)
    assert set(found.certainty) == {"certified"}
    sure = plain.confidence.chance >= 0.995
    assert sure.sum() > 100
    assert (found.confidence.low[sure] >= 0.99).mean() > 0.5
    _, lost, _ = by_sums(table, vectors, None, 100, line, 0.01, 0.0)
    assert set(lost.certainty) == {"estimated"}


def test_whom_the_budget_looks_at_in_full():
    """Those with few conversations first; the others by lengths; nobody where that is too much."""
    table, vectors, _ = made([f"a;b{k}" for k in range(40)] + [f"c;d{k}" for k in range(400)], 1, 1)
    some = by_sound(table, chosen_frequent(table, 20), np.arange(len(vectors)))
    spoken = FrequentVoices(table, some, lambda _: (), np.ones(len(vectors), bool), None, 8)
    assert in_full(spoken, 60.0).all()
    assert in_full(spoken, 0.0) is None
    middle = in_full(spoken, 1.2e-3)
    assert middle[some.calls == 40].all()
    assert not middle[some.calls == 400].any()


def test_nowhere_is_counted_by_its_own_cost_and_gain(monkeypatch):
    """Where absence is cheap and another track dear, the cost of the one with the gain of the other
    would let everything be possible: then nothing is proved, and figures are estimates."""
    table, vectors, _ = made([f"a;b{k}" for k in range(150)], 1.0, 5, there=1.0, width=60)
    line = Line(26.0, -9.5)
    plain, found, _ = by_sums(table, vectors, None, 100, line, 0.001, 60.0)
    assert set(found.certainty) == {"certified"}
    sure = plain.confidence.chance >= 0.995
    assert sure.sum() > 100
    assert found.settled()[sure].mean() > 0.8
    ways = Spread.ways
    monkeypatch.setattr(Spread, "ways", lambda self, kinds: ways(replace(self, shared=None), kinds))
    _, without, _ = by_sums(table, vectors, None, 100, line, 0.001, 60.0)
    assert set(without.certainty) == {"estimated"}
    np.testing.assert_allclose(without.beliefs.low, plain.beliefs.low, atol=2e-6)

"""Evidence piece by piece: it is what a change would cost, and adds up to what is claimed."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_seats
import plain_splits
from peaked_seats import peaked_case
from random_seats import as_table, random_case
from spklink.database.cliques import find_cliques
from spklink.database.conversations import with_splits
from spklink.posterior.answer import STRANGER, seat
from spklink.posterior.likelihood import Weight
from spklink.posterior.states.alternatives import alternatives
from spklink.runs.assign import assign
from spklink.runs.evidence import Evidence
from spklink.runs.weighed import LN10, Weighed, weigh
from spklink.scores.needed import Scores

WEIGHT = Weight()


def told(found: Weighed, m: int) -> float:
    """The sum of all pieces of a conversation but its doubt."""
    own = slice(found.start[m], found.start[m + 1])
    cues = sum(values[m] for values in found.cues.values())
    return float(found.links[own].sum() + found.before[m] + cues)


def every_state(people, tracks):
    """Places of all people of a conversation, no two on one track."""
    for places in product(range(tracks + 1), repeat=people):
        there = [k for k in places if k < tracks]
        if len(set(there)) == len(there):
            yield np.array(places, np.int64)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_other_possibility_is_the_best_there_is(seed):
    """Against all states of a conversation, one by one, all others being where they are."""
    table, links, llr, rate = peaked_case(seed)
    found = seat(table, find_cliques(table), links, llr, weight=WEIGHT, rate=rate)
    seats, place = found.seats, found.beliefs.place
    rng = np.random.default_rng(seed)
    track = rng.integers(0, table.sides.counts)
    otherwise, there = alternatives(seats, place, track)
    for m in range(len(table)):
        own = table.listing.of(m)
        now = np.flatnonzero(place[own] == track[m])
        best, chosen = -np.inf, place.copy()
        for state in every_state(len(place[own]), int(table.sides.counts[m])):
            if np.array_equal(np.flatnonzero(state == track[m]), now):
                continue
            chosen[own] = state
            best = max(best, seats.value(chosen))
        assert bool(there[m]) == (best > -np.inf)
        if there[m]:
            chosen[own] = otherwise[own]
            assert seats.value(chosen) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("split", [0.0, 0.1])
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.02, 0.2]))
@settings(max_examples=20)
def test_strength_is_the_change_of_the_odds_of_two_people_on_a_track(split, seed, rate):
    """Of lists of every kind, from all states written down; once with people on two tracks."""
    made, table, links, llr, score = random_case(seed, 3, size=1.5, people=3)
    for one in made:
        one["presence"] = [None if p is None else max(p, 0.5) for p in one["presence"]]
    table, none = as_table(made), lambda *_: 0.0
    if split:
        table = with_splits(table, split)
        after, before = (plain_splits.solve(made, one, rate, split) for one in (score, none))
    else:
        after, before = (plain_seats.solve(made, one, rate) for one in (score, none))
    answer = seat(table, find_cliques(table), links, llr, weight=WEIGHT, rate=rate)
    weighed = weigh(Evidence(table, links, Scores(llr), WEIGHT), answer)
    said, against = answer.speaker(), weighed.against
    for m, side in enumerate(weighed.side.tolist()):
        if not weighed.possible[m]:
            continue
        track, ratio = side - int(table.sides.start[m]), []
        for found in (after, before):
            one, two = (
                found["stranger"][m, track]
                if who == STRANGER
                else found["place"].get((m, table.speakers[who], track), 0.0)
                for who in (said[side], against[side])
            )
            ratio.append(np.log10(one / two) if one > 0.0 < two else np.inf)
        if max(ratio) < 9.0:
            assert weighed.strength()[m] == pytest.approx(ratio[0] - ratio[1], abs=1e-5)


TABLE = [
    *({"conversation": f"c{k}", "participants": p} for k, p in enumerate(["a;b", "a;c", "b;c"])),
    {"conversation": "c3", "participants": "a;d"},
    {"conversation": "c4", "participants": "e;f"},
]
ON = {
    (f"c{m}", k + 1): p
    for m, row in enumerate(TABLE)
    for k, p in enumerate(row["participants"][::2])
}


def score(one, two):
    """Voices that tell something, not everything."""
    wobble = 2.5 * np.sin(hash_(one) * 7.1 + hash_(two) * 3.3)
    return (2.0 if ON[one] == ON[two] else -2.0) + wobble


def hash_(side):
    return 2 * int(side[0][1:]) + int(side[1])


CUE = [{"conversation": "c0", "log_odds": "-1.5", "name": "turns"}]
KNOWN = [{"conversation": "c3", "channel": "1", "speaker": "a"}]


@pytest.mark.parametrize("lists", [0.0, 0.02])
@pytest.mark.parametrize("known", [None, KNOWN])
def test_pieces_are_the_cost_of_a_change_and_add_up_to_the_odds(tmp_path, lists, known):
    found = assign(TABLE, score, tmp_path, list_errors=lists, known=known, cue=CUE)
    weighed = weigh(found.evidence, found.answer)
    table = found.conversations
    assert (weighed.links < 0.0).any()  # something speaks against it, too
    with (tmp_path / "assignments.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    if found.answer.binary:  # the cue is for as listed, and as listed is what is said
        assert weighed.cues["turns"][0] == pytest.approx(-1.5 / LN10, abs=1e-9)
    for m in range(len(table)):
        if weighed.given[m]:
            assert table.ids[m] == "c3"
            continue
        p = float(rows[int(weighed.side[m])]["probability"])
        assert weighed.total[m] == pytest.approx(np.log10(p / (1.0 - p)), abs=1e-6)
        rest = weighed.doubt[m] + weighed.others[m]
        assert told(weighed, m) + rest == pytest.approx(weighed.total[m], abs=1e-9)
        if not found.answer.binary:
            seats, place = found.answer.seats, found.answer.beliefs.place
            chosen, own = place.copy(), table.sides.of(m)
            chosen[table.listing.of(m)] = places_of(table, m, weighed.against[own])
            alone = without_evidence(seats, table)
            cost = [(one.value(place) - one.value(chosen)) / LN10 for one in (seats, alone)]
            heard = told(weighed, m) - weighed.before[m]
            assert heard == pytest.approx(cost[0] - cost[1], abs=1e-9)
            check_strength(found.answer, weighed, m)
        else:
            assert told(weighed, m) == pytest.approx(cost_of_exchange(found, m), abs=1e-9)


def places_of(table, m, against):
    """Where everybody listed is, from who is on which track."""
    people, tracks = table.people[table.listing.of(m)].tolist(), against.tolist()
    return [tracks.index(p) if p in tracks else len(tracks) for p in people]


def without_evidence(seats, table):
    """What lists and known channels alone say."""
    none = np.zeros(0, np.int64)
    seat = seats.seat - table.cues if len(table.cues) else seats.seat
    return replace(seats, seat=seat, first=none, second=none, offset=none, weight=np.zeros(0))


def check_strength(answer, weighed, m):
    """The change of the odds of two people on a track, from all states of the clique."""
    table, seats = answer.table, answer.seats
    members = np.flatnonzero(answer.cliques.label == answer.cliques.label[m])
    states = [
        list(every_state(len(table.people[table.listing.of(i)]), int(table.sides.counts[i])))
        for i in members
    ]
    side = int(weighed.side[m])
    track = side - int(table.sides.start[m])
    both = int(answer.speaker()[side]), int(weighed.against[side])
    sums = np.zeros((2, 2))
    place, top = answer.beliefs.place.copy(), None
    models = seats, without_evidence(seats, table)
    for combination in product(*states):
        for i, state in zip(members, combination, strict=True):
            place[table.listing.of(i)] = state
        own = table.listing.of(m)
        there = table.people[own][place[own] == track].tolist()
        who = there[0] if there else STRANGER
        if who not in both:
            continue
        values = np.array([model.value(place) for model in models])
        top = values if top is None else top
        sums[:, both.index(who)] += np.exp(values - top)
    odds = np.log10(sums[:, 0] / sums[:, 1])
    assert weighed.strength()[m] == pytest.approx(odds[0] - odds[1], abs=1e-6)


def cost_of_exchange(found, m):
    model, best = found.posterior.model, found.posterior.best
    worth = []
    for bit in (int(best[m]), 1 - int(best[m])):
        x = best.copy()
        x[m] = bit
        both = x[model.first] * x[model.second]
        worth.append(model.field @ x + model.coupling @ both + model.prior.log_odds @ x)
    return (worth[0] - worth[1]) / LN10


def test_no_voice_tells_an_unresolvable_call(tmp_path):
    """Its pieces may be strong, but its mirror image takes all of it away."""
    found = assign(
        TABLE[-1:] * 1 + [{"conversation": "c5", "participants": "e;f"}], twins, tmp_path
    )
    weighed = weigh(found.evidence, found.answer)
    assert weighed.links.max() > 1.0
    assert weighed.total == pytest.approx([0.0, 0.0], abs=1e-9)


def twins(one, two):
    return 3.0 if one[1] == two[1] else -3.0

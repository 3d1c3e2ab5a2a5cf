"""Attributes of people as evidence: right where voices tell them, silent where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from spklink.cues.attributes import AttributeCue, Voices, small_voices
from spklink.cues.cue import chances_of_odds, odds_in, seat_layout
from spklink.cues.speakers import Attribute, read_attributes
from spklink.database.conversations import read_conversations
from spklink.errors import SpklinkError

PEOPLE, CALLS = 60, 200


class World:
    """Calls of two, with vectors of their sides: a person's own, and what his sex adds."""

    def __init__(
        self, seed: int, apart: float, people: int = PEOPLE, calls: int = CALLS, pairs: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.sex = rng.integers(2, size=people)
        own = rng.normal(size=(people, 12))
        own[:, 0] += apart * (2 * self.sex - 1)
        chosen = [rng.choice(people, 2, replace=False) for _ in range(calls)]
        if pairs:  # people who only call each other, so often
            chosen = [(a, a + 1) for a in range(0, people, 2) for _ in range(pairs)]
            calls = len(chosen)
        self.table = read_conversations(
            [
                {"conversation": f"c{m}", "participants": f"p{a};p{b}"}
                for m, (a, b) in enumerate(chosen)
            ]
        )
        self.turned = rng.integers(2, size=calls)
        names = {name: int(name[1:]) for name in self.table.speakers}
        self.number = np.array([names[name] for name in self.table.speakers])
        vector = np.zeros((2 * calls, 12))
        for m, (a, b) in enumerate(chosen):
            on = (b, a) if self.turned[m] else (a, b)
            for k, who in enumerate(on):
                vector[2 * m + k] = own[who] + 0.5 * rng.normal(size=12)
        order = rng.permutation(2 * calls)
        self.voices = Voices(vector, np.ones(2 * calls, np.bool_), order)
        self.mixed = np.array([self.sex[a] != self.sex[b] for a, b in chosen])

    def attribute(self, values) -> Attribute:
        return Attribute("sex", ["f", "m"], np.asarray(values)[self.number].astype(np.int64))

    def voices_say(self, strength: float) -> np.ndarray:
        return chances_of_odds(self.table, np.where(self.turned == 1, strength, -strength))


@pytest.mark.parametrize("elsewhere", [None, 4.0])
def test_what_voices_tell_is_told_and_calibrated(elsewhere):
    wrong = expected = told = 0.0
    for seed in range(4):
        world = World(seed, 2.0)
        cue = AttributeCue(world.table, world.attribute(world.sex), world.voices)
        said = None if elsewhere is None else world.voices_say(elsewhere)
        odds = odds_in(world.table, cue.terms(world.table, said).seat)
        assert not odds[~world.mixed].any()
        here = odds[world.mixed]
        told += np.abs(here).mean() / 4
        wrong += ((here > 0) != (world.turned[world.mixed] == 1)).sum()
        expected += (1.0 / (1.0 + np.exp(np.abs(here)))).sum()
    assert told > 2.0
    assert wrong < 0.1 * 4 * CALLS / 2
    assert 0.4 * wrong - 4 < expected < 2.5 * wrong + 4


@pytest.mark.parametrize("elsewhere", [None, 4.0])
def test_an_attribute_that_means_nothing_changes_nothing(elsewhere):
    """Voices differ by sex, the attribute is drawn by lot: no call moves, in nearly every world."""
    moved = 0
    for seed in range(30):
        world = World(seed, 2.0)
        lot = np.random.default_rng([seed, 9]).integers(2, size=PEOPLE)
        cue = AttributeCue(world.table, world.attribute(lot), world.voices)
        said = None if elsewhere is None else world.voices_say(elsewhere)
        moved += bool(odds_in(world.table, cue.terms(world.table, said).seat).any())
    assert moved <= 1


def test_it_does_not_learn_people():
    """Few people with many calls and voices of their own: what is learned of the ones says nothing
    of the others, however often each is heard."""
    moved = 0
    for seed in range(20):
        world = World(seed, 0.0, people=14, calls=300)
        cue = AttributeCue(world.table, world.attribute(world.sex), world.voices)
        odds = odds_in(world.table, cue.terms(world.table, world.voices_say(6.0)).seat)
        moved += bool(odds.any())
    assert moved <= 1


def test_many_calls_of_two_people_are_not_many_witnesses():
    """An unusual voice is unusual in every call: what all calls of a pair say together is no surer
    than it may be."""
    wrong = expected = told = 0.0
    for seed in range(4):
        world = World(seed, 1.0, people=80, pairs=8)
        cue = AttributeCue(world.table, world.attribute(world.sex), world.voices)
        odds = odds_in(world.table, cue.terms(world.table).seat)
        right = np.where(world.turned == 1, odds, -odds).reshape(-1, 8).sum(axis=1)
        right = right[right != 0.0]
        told += len(right)
        wrong += (right < 0.0).sum()
        expected += (1.0 / (1.0 + np.exp(np.abs(right)))).sum()
    assert told > 30
    assert wrong < expected + 3.0 * np.sqrt(expected)


class Meetings:
    """Three people on three tracks of meetings, with vectors of their sides."""

    def __init__(self, seed: int, apart: float, participants: str = "") -> None:
        rng = np.random.default_rng(seed)
        self.sex = rng.integers(2, size=PEOPLE)
        own = rng.normal(size=(PEOPLE, 12))
        own[:, 0] += apart * (2 * self.sex - 1)
        self.people = [rng.choice(PEOPLE, 3, replace=False) for _ in range(CALLS)]
        rows = [
            {
                "conversation": f"c{m}",
                "participants": ";".join(f"p{p}" for p in some) + participants,
                "tracks": "3",
                "audio": f"{m}.wav",
            }
            for m, some in enumerate(self.people)
        ]
        self.table = read_conversations(rows)
        self.number = np.array([int(name[1:]) for name in self.table.speakers])
        self.place = [rng.permutation(3) for _ in range(CALLS)]
        vector = np.zeros((3 * CALLS, 12))
        for m, (some, place) in enumerate(zip(self.people, self.place, strict=True)):
            vector[3 * m + place] = own[some] + 0.5 * rng.normal(size=(3, 12))
        self.voices = Voices(vector, np.ones(3 * CALLS, np.bool_), rng.permutation(3 * CALLS))

    def attribute(self, values) -> Attribute:
        return Attribute("sex", ["f", "m"], np.asarray(values)[self.number].astype(np.int64))

    def known(self, sure: float) -> np.ndarray:
        """What a witness says who is right."""
        seat = np.full(9 * CALLS, (1.0 - sure) / 2.0)
        for m, place in enumerate(self.place):
            seat_layout(self.table).seats(seat, m)[np.arange(3), place] = sure
        return seat


@pytest.mark.parametrize("participants", ["", ";*"])
def test_more_tracks_are_told_by_seats(participants):
    """Whoever differs from the two others is found; those who are alike have the same terms. Where
    anybody else may be there, a witness has to say who is where."""
    world = Meetings(1, 2.5, participants)
    cue = AttributeCue(world.table, world.attribute(world.sex), world.voices)
    terms, layout = cue.terms(world.table, world.known(0.95)), seat_layout(world.table)
    right = count = 0
    for m, (some, place) in enumerate(zip(world.people, world.place, strict=True)):
        own, sex = layout.seats(terms.seat, m), world.sex[some]
        if len(set(sex)) == 1:
            assert not own.any()
            continue
        odd = int(np.flatnonzero(sex != np.bincount(sex).argmax())[0])
        alike = np.flatnonzero(sex == np.bincount(sex).argmax())
        np.testing.assert_allclose(own[alike[0]], own[alike[1]])
        right += own[odd].argmax() == place[odd]
        count += 1
    assert right > 0.9 * count > 50
    silent = not cue.terms(world.table).seat.any()
    assert silent == bool(participants)  # no conversation is known to be of one sex


def test_by_lot_more_tracks_change_nothing_either():
    moved = 0
    for seed in range(15):
        world = Meetings(seed, 2.0)
        lot = np.random.default_rng([seed, 9]).integers(2, size=PEOPLE)
        cue = AttributeCue(world.table, world.attribute(lot), world.voices)
        moved += bool(cue.terms(world.table, world.known(0.95)).seat.any())
    assert moved <= 1


def test_few_people_say_nothing():
    world = World(1, 3.0, people=8, calls=30)
    cue = AttributeCue(world.table, world.attribute(world.sex), world.voices)
    assert not cue.terms(world.table).seat.any()


def test_several_values():
    world = World(2, 2.5)
    values = world.sex + (np.random.default_rng(1).random(PEOPLE) < 0.1) * (2 - world.sex)
    attribute = Attribute("kind", ["f", "m", "x"], values[world.number].astype(np.int64))
    cue = AttributeCue(world.table, attribute, world.voices)
    found = cue.terms(world.table)
    assert "f m" in found.about
    assert found.about["f m"]["slope"] > 0.0


def test_the_order_of_rows_does_not_matter():
    world = World(3, 2.0)
    cue = AttributeCue(world.table, world.attribute(world.sex), world.voices)
    plain = odds_in(world.table, cue.terms(world.table).seat)
    # Exchanging the two channels of every call turns the answer around.
    swap = np.arange(2 * CALLS) ^ 1
    other = Voices(world.voices.vector[swap], world.voices.usable, swap[world.voices.order])
    turned = odds_in(
        world.table,
        AttributeCue(world.table, world.attribute(world.sex), other).terms(world.table).seat,
    )
    np.testing.assert_allclose(turned, -plain, atol=1e-8)


def test_vectors_are_made_small():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(50, 3)) @ rng.normal(size=(3, 400))).astype(np.float32)
    usable = np.ones(50, np.bool_)
    usable[7] = False
    found = small_voices(lambda sides: vectors[sides], usable, np.arange(50))
    assert found.vector.shape == (50, 3)
    assert not found.vector[7].any()
    kept = vectors[usable] - vectors[usable].mean(axis=0)
    np.testing.assert_allclose(
        found.vector[usable] @ found.vector[usable].T, kept @ kept.T, rtol=1e-3, atol=1e-2
    )


TABLE = [{"conversation": "c", "participants": "a;b"}]


def test_speakers_are_read():
    table = read_conversations(TABLE)
    rows = [
        {"speaker": "a", "sex": "f", "region": ""},
        {"speaker": "z", "sex": "m", "region": "n"},
        {"speaker": "b", "sex": "m", "region": "s"},
    ]
    sex, region = read_attributes(rows, "sex, region", table)
    assert (sex.values, sex.value.tolist()) == (["f", "m"], [0, 1])
    assert (region.values, region.value.tolist()) == (["s"], [-1, 0])
    assert read_attributes(None, None, table) == []


@pytest.mark.parametrize(
    ("rows", "asked", "message"),
    [
        ([{"speaker": "a", "sex": "f"}] * 2, "sex", "row 3: speaker 'a' is already in row 2"),
        ([{"speaker": "", "sex": "f"}], "sex", "row 2: an empty speaker"),
        ([{"speaker": "a", "sex": "f"}], "age", "no column 'age'"),
        ([{"speaker": "a", "sex": "f"}], None, "--attribute"),
        (None, "sex", "--speakers FILE is missing"),
        ([{"speaker": "a", "sex": "f"}], "sex,sex", "a column twice"),
    ],
)
def test_what_is_wrong_with_them_is_named(rows, asked, message):
    with pytest.raises(SpklinkError, match=message):
        read_attributes(rows, asked, read_conversations(TABLE))

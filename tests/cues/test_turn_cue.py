"""Turns as evidence: right, bounded, as sure as they may be, whatever is wrong with them."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from made_turns import made_levels, made_turns
from spklink.cues.cue import nothing, odds_in, seat_layout
from spklink.cues.turn_chain import expected, likelihoods
from spklink.cues.turn_model import TurnModel, decide, learn
from spklink.cues.turn_votes import Voter, contrasts, offsets, spoken, voters
from spklink.cues.turns import Spoken, TurnCue, of_table
from spklink.database.conversations import read_conversations
from spklink.errors import SpklinkError
from spklink.formats.turns import read_turns

CALLS, SECONDS = 120, 40.0


@pytest.fixture(scope="module")
def world():
    """Calls of two: levels, turns, whether they are exchanged."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(CALLS):
        turned = int(rng.integers(2))
        turns = made_turns(rng, 2, SECONDS)
        levels = made_levels(rng, turns, [turned, 1 - turned], 2, SECONDS)
        found.append((levels, turns, turned))
    return found


def shifted(turns, by):
    return [(who, max(start + by, 0.0), end + by) for who, start, end in turns if end + by > 0.0]


def worse(kind: str, turns, rng):
    if kind == "jitter":
        return [one for t in turns for one in shifted([t], float(rng.normal(0.0, 1.5)))]
    if kind == "offset":
        return shifted(turns, float(rng.uniform(-10.0, 10.0)))
    if kind == "dropped":
        kept = [t for t in turns if rng.random() < 0.15]
        return kept or turns[:1]
    if kind == "other":
        return [(1 - w if rng.random() < 0.3 else w, a, b) for w, a, b in turns]
    if kind == "one":
        return [turns[int(rng.integers(len(turns)))]]
    if kind == "random":
        return made_turns(rng, 2, SECONDS)
    return turns


def judged(world, kind, seed=1):
    """(calls,) log-odds of exchanged, the truth, and the model."""
    rng = np.random.default_rng(seed)
    each = [
        voters(m, contrasts(levels), worse(kind, turns, rng), pair=True)
        for m, (levels, turns, _) in enumerate(world)
    ]
    every = [voter for one in each for voter in one]
    model = learn(every)
    odds = np.array([chance[1] - chance[0] for chance in decide(every, model)])
    truth = np.array([world[voter.conversation][2] for voter in every])
    return odds, truth, model


@pytest.mark.parametrize("kind", ["exact", "jitter", "offset", "dropped", "other", "one", "random"])
def test_as_many_are_wrong_as_it_says(world, kind):
    odds, truth, _ = judged(world, kind)
    chance = 1.0 / (1.0 + np.exp(np.abs(odds)))
    wrong = ((odds > 0) != (truth == 1)).sum()
    spread = 3.5 * np.sqrt((chance * (1.0 - chance)).sum()) + 1.0
    assert abs(wrong - chance.sum()) <= spread
    if kind in ("exact", "offset"):
        assert wrong == 0
        assert (np.abs(odds) > np.log(99.0)).mean() > 0.97
    if kind == "random":
        assert np.abs(odds).mean() < 1.5


def test_no_turns_are_believed_beyond_the_rate_of_wrong_ones(world):
    odds, _, model = judged(world, "exact")
    assert np.abs(odds).max() <= np.log((1.0 - model.wrong) / model.wrong) + 1e-6


def test_tracks_the_other_way_round_say_the_opposite(world):
    levels, turns, _ = world[0]
    [one], [two] = (voters(0, contrasts(some), turns, pair=True) for some in (levels, levels[::-1]))
    model = TurnModel()
    a, b = (decide([voter], model)[0] for voter in (one, two))
    np.testing.assert_allclose(a, b[::-1], atol=1e-9)


def test_rows_of_words_are_worth_no_more_than_the_turn(world):
    levels, turns, _ = world[0]
    words = []
    for who, start, end in turns:
        cuts = np.linspace(start, end, 1 + max(1, int((end - start) / 0.3)))
        words += [(who, a, b) for a, b in pairwise(cuts.tolist())]
    [one], [two] = (voters(0, contrasts(levels), some, pair=True) for some in (turns, words))
    assert len(words) > 2 * len(turns)
    assert one.value.shape == two.value.shape


def test_offsets_are_found(world):
    late = [
        voters(m, contrasts(w[0]), shifted(w[1], -4.0), pair=True)[0] for m, w in enumerate(world)
    ]
    model = learn(late)
    prior = model.offset_prior()
    assert prior[np.abs(offsets()) < 0.3].sum() < 0.1
    odds = np.array([chance[1] - chance[0] for chance in decide(late, model)])
    assert ((odds > 0) == np.array([w[2] for w in world])).all()


def test_voices_teach_that_transcripts_name_the_wrong_people(world):
    each = []
    for m, (levels, turns, _) in enumerate(world):
        named = [(1 - w, a, b) for w, a, b in turns] if m % 5 == 0 else turns
        each += voters(m, contrasts(levels), named, pair=True)
    voices = [np.array([1e-4, 1.0 - 1e-4])[:: 1 if w[2] else -1] for w in world]
    alone, together = learn(each), learn(each, voices)
    assert alone.wrong < 0.002
    assert 0.04 < together.wrong < 0.2


def test_overlapping_turns_and_nothing_at_all():
    assert spoken([]) == {}
    both = spoken([(0, 1.0, 5.0), (1, 1.0, 5.0)])
    assert both == {}  # nobody alone
    part = spoken([(0, 1.0, 5.0), (1, 3.0, 5.0)])
    assert list(part) == [0]
    begin, end = part[0].begin, part[0].end
    assert (begin[0], end[0]) == (20, 60)
    assert learn([]) == TurnModel()


@pytest.fixture(scope="module")
def meetings():
    """Three people on four tracks; the fourth is somebody's who is not listed."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(30):
        place = rng.permutation(4).tolist()
        turns = made_turns(rng, 4, 60.0)
        found.append((made_levels(rng, turns, place, 4, 60.0), turns, place))
    return found


def test_a_chain_is_what_enumeration_says():
    """Likelihoods and expectations of a chain of turns, against all ways to be right or not."""
    rng = np.random.default_rng(4)
    value = rng.normal(0.0, 1.5, (5, 1)).astype(np.float32)
    variance, chance, odd = rng.uniform(0.2, 0.6, 5), rng.uniform(0.5, 2.0, 5), np.full(5, 0.2)
    mean, other, stays = 1.3, 0.2, 0.4
    start, chain = np.array([0, 5]), (mean, other, stays)

    def normal(x, v):
        return np.exp(-0.5 * x * x / v) / np.sqrt(2.0 * np.pi * v)

    x = value[:, 0].astype(float)
    total, own, given = 0.0, np.zeros(5), np.zeros(5)
    for states in product((0, 1), repeat=5):
        weight = other if states[0] else 1.0 - other
        for a, b in pairwise(states):
            weight *= stays * (a == b) + (1.0 - stays) * (other if b else 1.0 - other)
        right = np.where(states, normal(x + mean, variance), normal(x - mean, variance))
        right *= 0.8 / normal(x, chance)
        weight *= (right + odd).prod()
        total += weight
        own += weight * np.where(states, 0.0, right / (right + odd))
        given += weight * np.where(states, right / (right + odd), 0.0)
    found, anybody = np.zeros((2, 1, 1))
    given_to = (value, variance, chance, odd, start, chain)
    likelihoods(*given_to, np.ones((1, 1), bool), found, anybody)
    assert found[0, 0] == pytest.approx(np.log(total))
    sums, drawn = np.zeros((5, 7)), np.zeros(4)
    expected(*given_to, np.ones((1, 1)), sums, drawn)
    np.testing.assert_allclose(sums[:, 0], own / total)
    np.testing.assert_allclose(sums[:, 3], given / total)
    np.testing.assert_allclose(sums[:, [0, 3, 6]].sum(axis=1), 1.0)
    np.testing.assert_allclose(sums[:, 5], given / total * x * x)
    assert drawn[0] + drawn[1] == pytest.approx(1.0 + drawn[2])
    assert drawn[3] == pytest.approx(4.0)


@pytest.mark.parametrize(("spread", "short"), [(0.4, 0.1), (0.1, 0.6)])
def test_how_much_values_vary_is_learned_for_brief_and_for_long_turns(spread, short):
    rng, every = np.random.default_rng(5), []
    on_time = np.abs(offsets()) < 0.25
    for m in range(100):
        seconds = np.exp(rng.uniform(np.log(0.3), np.log(6.0), 12))
        value = rng.normal(0.0, 1.0, (12, len(on_time)))
        own = 1.6 + rng.normal(0.0, np.sqrt(spread + short / seconds))
        value[:, on_time] = own[:, None]
        both = np.stack([value, -value][:: 1 if m % 2 else -1]).astype(np.float32)
        every.append(Voter(m, (0, 1), both, np.ones((2, 12)), seconds))
    model = learn(every)
    for seconds in (0.5, 5.0):
        learned = model.spread + model.short / seconds
        assert learned == pytest.approx(spread + short / seconds, rel=0.25)


def test_brief_turns_say_little(world):
    """A tenth of a second in the right place is not worth what two seconds are."""
    levels, turns, turned = world[0]
    who, start, _ = next(t for t in turns if t[2] - t[1] > 2.0)
    brief, long = (
        decide(voters(0, contrasts(levels), [(who, start, start + s)], pair=True), TurnModel())[0]
        for s in (0.1, 2.0)
    )
    assert abs(brief[1] - brief[0]) < 0.3 * abs(long[1] - long[0])
    assert (long[1] > long[0]) == bool(turned)


def diarized(rng, people=3, meetings=25, seconds=60.0):
    """Meetings whose tracks are the segments of one channel; turns with the names of people."""
    rows, segments, said, places = [], [], [], []
    for m in range(meetings):
        place = rng.permutation(people).tolist()
        turns = made_turns(rng, people, seconds)
        names = ";".join(f"p{m}.{k}" for k in range(people))
        rows.append({"conversation": f"m{m}", "participants": names, "audio": f"{m}.wav"})
        segments += [
            {"conversation": f"m{m}", "track": str(place[w] + 1), "start": a, "end": b}
            for w, a, b in turns
        ]
        said.append(turns)
        places.append(place)
    return read_conversations(rows, segments), said, places


def test_tracks_that_are_diarized():
    """Levels say nothing there; turns are held against segments, and may be late and jittered."""
    rng = np.random.default_rng(5)
    table, said, places = diarized(rng)
    silent = [np.zeros(6000, np.uint8)] * 3
    right = 0
    for worse_by in (0.0, 0.5):
        given = [
            shifted([(w, a + rng.normal(0.0, worse_by), b) for w, a, b in one], 3.0) for one in said
        ]
        given = [Spoken(one, (), ("row",) * len(one)) for one in given]
        cue = TurnCue(table, given, lambda m: silent)
        seat, layout = cue.terms(table).seat, seat_layout(table)
        for m, place in enumerate(places):
            right += layout.seats(seat, m).argmax(axis=1).tolist() == place
    assert right >= 48


def test_unrelated_turns_of_diarized_tracks_are_not_believed():
    rng = np.random.default_rng(6)
    table, said, _ = diarized(rng)
    other = [Spoken(made_turns(rng, 3, 60.0), (), ("row",) * 99) for _ in said]
    cue = TurnCue(table, other, lambda m: [np.zeros(6000, np.uint8)] * 3)
    assert np.abs(cue.terms(table).seat).max() < 1.0


def test_whoever_never_speaks_alone_counts_where_tracks_can_overlap():
    turns = [(0, 0.0, 20.0), (1, 5.0, 9.0)]
    assert list(spoken(turns)) == [0]
    both = spoken(turns, at_once=True)
    assert (both[1].begin[0], both[1].end[0]) == (100, 180)


def test_a_witness_teaches_of_more_tracks(meetings):
    """Transcripts that name the wrong people: by themselves nobody can tell, others can."""
    rows = [
        {"conversation": f"m{k}", "participants": "a;b;c;d", "tracks": "4", "audio": "x.wav"}
        for k in range(len(meetings))
    ]
    table = read_conversations(rows)
    layout, wrong = seat_layout(table), nothing(table) + 1e-3
    said = []
    for m, (_, turns, place) in enumerate(meetings):
        turn = 1 if m % 3 == 0 else 0
        said.append(Spoken([((w + turn) % 4, a, b) for w, a, b in turns]))
        layout.seats(wrong, m)[np.arange(4), place] = 1.0 - 3e-3
    cue = TurnCue(table, said, lambda m: meetings[m][0])
    alone = cue.terms(table).about["wrong"]
    together = cue.terms(table, wrong).about["wrong"]
    assert alone < 0.01
    assert together > 0.1


def test_more_tracks_and_people_who_are_not_listed(meetings):
    rows = [
        {"conversation": f"m{k}", "participants": "a;b;c;*", "tracks": "4", "audio": "x.wav"}
        for k in range(len(meetings))
    ]
    rows.append({"conversation": "other", "participants": "d;e", "tracks": "", "audio": "y.wav"})
    table = read_conversations(rows)
    said = [
        Spoken([(w if w < 3 else -1, a, b) for w, a, b in turns], ("d",), ("row",) * len(turns))
        for _, turns, _ in meetings
    ]
    cue = TurnCue(table, [*said, Spoken([])], lambda m: meetings[m][0])
    seat, layout = cue.terms(table).seat, seat_layout(table)
    for m, (_, _, place) in enumerate(meetings):
        own = layout.seats(seat, m)
        assert own.argmax(axis=1).tolist() == place[:3]
        assert (own[:, place[3]] < -3.0).all()
    assert not layout.seats(seat, len(meetings)).any()
    assert any("d has turns but is not in the participant list" in text for _, text in cue.problems)


def table_of(tmp_path, text):
    (tmp_path / "turns.csv").write_text("conversation,speaker,start,end\n" + text)
    return read_turns(tmp_path / "turns.csv")


TABLE = [
    {"conversation": "c1", "participants": "a;b", "audio": "x/one.wav"},
    {"conversation": "c2", "participants": "a;c", "audio": "x/two.wav"},
]


def test_names_that_nobody_knows(tmp_path):
    table = read_conversations(TABLE)
    given = table_of(tmp_path, "c1,a,1,2\nc1,bb,2,3\nc1,bb,3,4\nc9,a,1,2\n")
    with pytest.raises(SpklinkError, match=r"turns\.csv: 2 problems: row 3: turns of 'bb'.*row 5"):
        of_table(given, table)
    ok = of_table(table_of(tmp_path, "one,b,1,2\nc2,b,2,3\n"), table)
    assert ok[0].turns == [(1, 1.0, 2.0)]
    assert ok[1].turns == [(-1, 2.0, 3.0)]
    assert ok[1].unlisted == ("b",)


def test_turns_beyond_the_end_are_told_and_harmless(tmp_path, world):
    table = read_conversations(TABLE)
    levels, turns, turned = world[0]
    late = "".join(f"c1,{'ab'[w]},{a},{b}\n" for w, a, b in turns) + "c1,a,1e9,2e9\nc2,a,500,501\n"
    cue = TurnCue(table, of_table(table_of(tmp_path, late), table), lambda m: levels)
    texts = dict(cue.problems)
    assert "1 of" in texts[0]
    assert f"turns.csv: row {len(turns) + 2}" in texts[0]
    assert "1 of 1 begin after its end at 40.0 s" in texts[1]
    odds = odds_in(table, cue.terms(table).seat)
    assert (odds[0] > 0) == bool(turned)
    assert odds[1] == 0.0


def test_a_recording_without_sound_says_nothing(tmp_path):
    table = read_conversations(TABLE)
    cue = TurnCue(table, of_table(table_of(tmp_path, "c1,a,1,2\n"), table), lambda m: [])
    assert not cue.terms(table).seat.any()
    assert "not used" in cue.problems[0][1]

"""Turns as a cue: a track is loud while its person has the turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spklink.cues.cue import Floats, Terms, from_odds, nothing, pairs, seat_layout
from spklink.cues.turn_model import TurnModel, decide, learn
from spklink.cues.turn_votes import REACH, Turns, Voter, activities, contrasts, voters
from spklink.database.conversations import Conversations
from spklink.database.segments import Finder
from spklink.errors import Problems, problems_in
from spklink.formats.turns import GivenTurns
from spklink.sound.levels import Level
from spklink.sound.speech import FRAME_SECONDS

NAME = "turns"
LATE = 1.0  # seconds that a turn may end after the sound without a remark
ENOUGH = 300  # conversations to learn from: more teach nothing new. A choice
TOGETHER = 200  # conversations decided at a time
CONFUSED = 0.05  # rate of turns on others' tracks, before any is seen: diarizers mix people up
UNTOLD = 1e-9  # probability of a place that other evidence rules out
BOUND = 0.999  # what turns of somebody who is not listed can say against those who are


@dataclass(frozen=True)
class Spoken:
    """Who has the turn when, in one conversation of a table."""

    turns: Turns  # places in the list; negative for others
    unlisted: tuple[str, ...] = ()  # names of those, -1 first
    where: tuple[str, ...] = ()  # a turn: file and row


def of_table(given: GivenTurns, table: Conversations) -> list[Spoken]:
    """The turns of every conversation; conversations and names that nobody knows are an error."""
    find, everybody = Finder(table.ids, table.audio), set(table.speakers)
    found: list[list[tuple[str, float, float, str]]] = [[] for _ in table.ids]
    for one in given.files:
        problems, told = Problems(), set[str]()
        for turn in one.turns:
            m = find(turn.conversation)
            wrong = m if isinstance(m, str) else ""
            if not wrong and turn.speaker not in everybody:
                wrong = (
                    f"turns of {turn.speaker!r} (conversation {turn.conversation!r}), who is in no "
                    "participant list; correct the name, or leave these turns out"
                )
            if wrong and wrong not in told:
                told.add(wrong)
                problems.append(f"{turn.place}: {wrong}")
            elif not wrong:
                place = f"{one.path.name}: {turn.place}"
                found[int(m)].append((turn.speaker, turn.start, turn.end, place))
        if problems:
            raise problems_in(one.path, problems)
    return [_spoken(table, m, rows) for m, rows in enumerate(found)]


def _spoken(table: Conversations, m: int, rows: list[tuple[str, float, float, str]]) -> Spoken:
    rows = sorted(rows, key=lambda row: (row[1], row[2], row[0]))
    listed = list(table.names(m))
    others = sorted({who for who, *_ in rows} - set(listed))
    number = {who: k for k, who in enumerate(listed)} | {
        who: -1 - k for k, who in enumerate(others)
    }
    turns = [(number[who], start, end) for who, start, end, _ in rows]
    return Spoken(turns, tuple(others), tuple(place for *_, place in rows))


class TurnCue:
    """What turns say of a database whose recordings have been listened to."""

    name = NAME

    def __init__(
        self,
        table: Conversations,
        spoken: Sequence[Spoken],
        levels: Callable[[int], list[Level]],
    ) -> None:
        self.problems: list[tuple[int, str]] = []  # conversation, what is odd about its turns
        self.voters: list[list[Voter]] = []  # a conversation each, in an order of their own
        self.model: TurnModel | None = None  # as it was learned last: where learning goes on
        pair = pairs(table)
        for m, one in enumerate(spoken):
            if not one.turns:
                continue
            found = levels(m)
            self.problems += [(m, text) for text in _odd(one, found)]
            kept = _within(one.turns, found)
            if kept:
                course, at_once = _course(table, m, found), bool(table.diarized)
                self.voters.append(voters(m, course, kept, pair=bool(pair[m]), at_once=at_once))
        self.voters = sorted(filter(None, self.voters), key=_looks)

    def terms(self, table: Conversations, elsewhere: Floats | None = None) -> Terms:
        step = max(1, -(-len(self.voters) // ENOUGH))
        some = [voter for one in self.voters[::step] for voter in one]
        beliefs = None if elsewhere is None else [_belief(table, elsewhere, one) for one in some]
        guess = TurnModel(other=CONFUSED) if table.diarized else TurnModel()
        self.model = model = learn(some, beliefs, self.model, first=guess)
        odds, seat = np.zeros(len(table)), nothing(table)
        for first in range(0, len(self.voters), TOGETHER):
            some = [voter for one in self.voters[first : first + TOGETHER] for voter in one]
            for voter, chance in zip(some, decide(some, model), strict=True):
                if len(voter.people) > 1:
                    odds[voter.conversation] = chance[1] - chance[0]
                else:
                    _seat(table, seat, voter, chance, model)
        said = {"conversations": len(self.voters), **model.as_json()}
        return Terms(self.name, seat + from_odds(table, odds), said)


def _course(table: Conversations, m: int, levels: Sequence[Level]) -> Floats:
    """(tracks, steps) how far each track is its own person's, moment by moment."""
    if table.diarized:
        return activities(table.diarized[m].turns, int(table.sides.counts[m]), _seconds(levels))
    return contrasts(levels)


def _looks(one: Sequence[Voter]) -> tuple[float, float]:
    """What conversations are put in order by, so that the order of rows does not count."""
    seconds = sum(float(voter.seconds.sum()) for voter in one)
    return seconds, sum(float(voter.spread.sum()) for voter in one)


def _belief(table: Conversations, elsewhere: Floats, voter: Voter) -> Floats:
    """(options,) how probable other evidence makes them. Whoever is not listed may be where no
    listed person is."""
    chance = seat_layout(table).seats(elsewhere, voter.conversation)
    who = voter.people[0]
    found = chance[who] if who >= 0 else np.maximum(1.0 - chance.sum(axis=0), 0.0)
    found = found + UNTOLD
    return np.asarray(found / found.sum())


def _seat(
    table: Conversations, seat: Floats, voter: Voter, chance: Floats, model: TurnModel
) -> None:
    """What one person's turns say of his tracks; of somebody who is not listed, that they are
    none of the others'. Names are exchanged by two, so that each has half of what bounds it."""
    own = seat_layout(table).seats(seat, voter.conversation)
    share = np.exp(chance - np.logaddexp.reduce(chance)) + np.sqrt(model.wrong)
    share /= share.sum()
    (person,) = voter.people
    if person >= 0:
        own[person] += np.log(len(chance) * share)
    else:
        own += np.log1p(-BOUND * share)


def _within(turns: Turns, levels: Sequence[Level]) -> Turns:
    """Those that can be in a recording if the transcript is late or early."""
    last = _seconds(levels) + REACH
    return [(who, start, min(end, last)) for who, start, end in turns if levels and start < last]


def _seconds(levels: Sequence[Level]) -> float:
    return max(map(len, levels), default=0) * FRAME_SECONDS


def _odd(one: Spoken, levels: Sequence[Level]) -> Iterator[str]:
    """What a person should look at."""
    if levels:
        yield from beyond_the_end(one, _seconds(levels))
    else:
        yield "turns: not used, as its sound cannot be"
    yield from unlisted(one)


def beyond_the_end(one: Spoken, seconds: float) -> Iterator[str]:
    """Turns that a recording of so many seconds does not have."""
    beyond = [k for k, (_, start, _) in enumerate(one.turns) if start >= seconds]
    if beyond:
        yield (
            f"turns: {len(beyond)} of {len(one.turns)} begin after its end at {seconds:.1f} s "
            f"({one.where[beyond[0]]}); are they of this recording?"
        )
    elif max(end for _, _, end in one.turns) > seconds + LATE:
        k = int(np.argmax([end for _, _, end in one.turns]))
        yield (
            f"turns: up to {one.turns[k][2]:.1f} s ({one.where[k]}), sound up to {seconds:.1f} s"
        )


def unlisted(one: Spoken) -> Iterator[str]:
    """People with turns whom the list does not have."""
    if one.unlisted:
        yield f"turns: {', '.join(one.unlisted)} has turns but is not in the participant list"

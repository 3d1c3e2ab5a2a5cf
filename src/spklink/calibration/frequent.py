"""Voices of people with very many conversations: what each says of every seat, from sums.

Of a frequent person (module `database.frequent`) no pair of conversations is listed. What the pairs
would say together for his being on a track is

  gain(track u of i) = w(n) x sum over his other conversations j and their tracks v of
                       P(he is on v in j) x llr(u, v),

a sum that costs as much as his sides, not as their pairs (`recognizers.sums`). With these gains at
the seats the listed links are solved as always, which gives new probabilities, and so on until
nothing moves: the pieces that listed links hold together are solved jointly, frequent people join
them through means (a mean-field posterior). Each pair of his conversations counts 2/n, so that
what the means leave out is of the order 1/n.

The value that is compared between starts, and reported as evidence, is that of the mean-field
approximation, a lower bound on the log of the sum but for rounding.

Index conventions: seats are numbered as in `Conversations.cues`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.calibration.curves import SHORTEST, USUAL, Calibration, Line
from spklink.database.conversations import Conversations
from spklink.database.frequent import Frequent, listed_pairs
from spklink.database.links import Links, links_between
from spklink.database.sides import seat_numbers
from spklink.errors import SpklinkError
from spklink.posterior.likelihood import Weight
from spklink.recognizers.sums import Comparison, SideLine, Summing
from spklink.threads import in_order, one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SAMPLE = 50_000  # links drawn to calibrate with; a choice: four side pairs of each are looked at
SPEED = 2e9  # multiplications a second: for predictions, never measured


@dataclass(frozen=True)
class FrequentVoices:
    """Frequent people, and how their sides are compared."""

    table: Conversations
    frequent: Frequent  # in the order of the sound
    comparisons: Callable[[int], tuple[Comparison, ...]]  # by which a person's sides are compared
    usable: Mask  # (S,)
    seconds: Floats | None  # (S,) of speech; None where nobody knows
    width: int  # multiplications a pair of sides
    threads: int = 1

    def gains(
        self,
        curve: Calibration,
        weight: Weight,
        chance: Floats,
        some: Iterable[int] | None = None,
    ) -> Floats:
        """(seats,) what frequent voices add to every seat, where each is with these chances; only
        those of `some` people, if that is asked for."""
        line = side_line(curve, self.seconds, len(self.usable))
        found = np.zeros(len(chance))
        people = range(len(self.frequent)) if some is None else some
        with one_blas_thread():
            work = in_order(lambda f: self._of(f, line, weight, chance), people, self.threads)
            for seats, gain in work:
                found[seats] = gain
        return found

    def _of(self, f: int, line: SideLine, weight: Weight, chance: Floats) -> tuple[Ints, Floats]:
        seats = self.seats[f]
        return seats, self.one(f, line, weight, chance[seats])

    def one(self, f: int, line: SideLine, weight: Weight, chance: Floats) -> Floats:
        """What the voice of one person adds to his seats, where he is on each with these
        chances."""
        together = self.together[f]
        usable = self.usable[together.sides]
        each = weight.of(self.frequent.calls[f : f + 1].astype(np.int32))[0]
        return np.where(usable, each * together(line, np.where(usable, chance, 0.0)), 0.0)

    @cached_property
    def together(self) -> list[Summing]:
        """The sides of each, as they are summed."""
        people = self.table.people[self.frequent.entry[self.frequent.start[:-1]]].tolist()
        places = (self.places(f) for f in range(len(self.frequent)))
        return [
            Summing(self.comparisons(person), sides, start)
            for person, (_, sides, start) in zip(people, places, strict=True)
        ]

    @cached_property
    def seats(self) -> list[Ints]:
        """The seats of each."""
        return [self.places(f)[0] for f in range(len(self.frequent))]

    def places(self, f: int) -> tuple[Ints, Ints, Ints]:
        """The seats of one person, their sides, and where those of a conversation begin."""
        entries = self.frequent.of(f)
        calls = self.table.listing.conversation_of(entries)
        tracks = self.table.sides.counts[calls]
        start = np.concatenate([[0], np.cumsum(tracks)])
        sides = ranges(self.table.sides.start[calls], tracks)
        return ranges(self.first_seat[entries], tracks), sides, start

    @cached_property
    def first_seat(self) -> Ints:
        """(entries,) the first seat of each."""
        tracks = self.table.sides.counts[self.table.listing.conversation]
        return np.asarray(np.cumsum(tracks) - tracks, np.int64)

    @cached_property
    def uniform(self) -> Floats:
        """(seats,) chances before anything is known."""
        entry, _ = seat_numbers(self.table)
        tracks = self.table.sides.counts[self.table.listing.conversation]
        return np.asarray(1.0 / tracks[entry], np.float64)

    @cached_property
    def predicted(self) -> float:
        """Seconds that computing all gains may take."""
        sides = sum(len(seats) for seats in self.seats)
        return 8.0 * sides * self.width / SPEED


def by_sound(table: Conversations, frequent: Frequent, place: Ints) -> Frequent:
    """The same people and entries in the order of their sound: place (S,) is that of each side."""
    first = np.minimum.reduceat(place, table.sides.start[:-1])
    own = first[table.listing.conversation_of(frequent.entry)]
    if not len(own):
        return frequent
    # Two people may have the same first conversation: then all of them tell who comes first.
    earliest, total = (of.reduceat(own, frequent.start[:-1]) for of in (np.minimum, np.add))
    people = np.lexsort([total, earliest])
    rank = np.argsort(people)
    order = np.lexsort([own, np.repeat(rank, frequent.calls)])
    start = np.concatenate([[0], np.cumsum(frequent.calls[people])])
    return Frequent(frequent.person[people], start, frequent.entry[order], frequent.most)


def sampled_links(
    table: Conversations, frequent: Frequent, rng: np.random.Generator
) -> tuple[Links, Floats]:
    """Some links of frequent people, and (L,) for how many each stands; of everybody about as many
    as his share of all."""
    pairs = listed_pairs(frequent.calls)
    count = np.minimum(np.ceil(SAMPLE * pairs / max(int(pairs.sum()), 1)), pairs).astype(np.int64)
    who = np.repeat(np.arange(len(frequent)), count)
    calls = frequent.calls[who]
    one = rng.integers(0, calls)
    two = (one + 1 + rng.integers(0, calls - 1)) % calls
    begin = frequent.start[who]
    ends = np.sort(np.stack([frequent.entry[begin + one], frequent.entry[begin + two]]), axis=0)
    return links_between(table, ends[0], ends[1], calls), (pairs / np.maximum(count, 1))[who]


def candidate_chances(table: Conversations, links: Links, chance: Floats) -> Floats:
    """(C,) how probable each candidate of sampled links is its speaker twice: two conversations of
    a frequent person are taken to be independent."""
    listing, tracks = table.listing, table.sides.counts
    every = tracks[listing.conversation]
    seat = np.cumsum(every) - every
    ends = []
    for call, position in (
        (links.first, links.position_first),
        (links.second, links.position_second),
    ):
        m = call[links.pair]
        ends.append((seat[listing.start[m] + position], tracks[m]))
    (first, rows), (second, columns) = ends
    one = np.repeat(ranges(first, rows), np.repeat(columns, rows))
    two = ranges(np.repeat(second, rows), np.repeat(columns, rows))
    return np.asarray(chance[one] * chance[two])


def side_line(curve: Calibration, seconds: Floats | None, count: int) -> SideLine:
    """A line of log-likelihood-ratios, half of it to either side. Beyond the speech it was fitted
    to its ends serve, a side at a time."""
    refuse_bent(curve)
    assert isinstance(curve, Line)
    speech = np.zeros(count)
    if curve.needs_speech:
        if seconds is None:
            raise SpklinkError(
                f"this calibration ({curve.kind}) needs the seconds of speech of every side; "
                "give --sides sides.csv, or calibrate with --kind lr"
            )
        known = np.log(np.maximum(seconds, SHORTEST) / USUAL)
        speech = np.clip(known, curve.speech_low, curve.speech_high)
    slope = np.maximum(curve.scale + curve.scale_speech * speech, 0.0) / 2.0
    return SideLine(slope, (curve.offset + curve.offset_speech * speech) / 2.0)


def is_straight(curve: Calibration) -> bool:
    """Whether what it says can be summed."""
    return isinstance(curve, Line) and curve.floor is None


def refuse_bent(curve: Calibration) -> None:
    """Only straight lines can be summed."""
    if not is_straight(curve):
        raise SpklinkError(
            f"a calibration of kind {curve.kind} is no straight line: what it says of people with "
            "very many conversations cannot be summed; use --kind lr, lr-dur or cmlg"
        )

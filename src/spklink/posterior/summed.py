"""Posteriors where the voices of some people were summed: what their figures can promise.

Listed links are solved given what frequent voices add to the seats (`Conversations.sums`): that is
exact, certified or sampled as always, but it takes the other conversations of frequent people as
they are on average. How far that may be off is a *slack*: with a probability of at least 1 - tail,
whatever happens in other conversations shifts the log-odds between any two states of a conversation
by no more. The log-odds of an event in a piece that links hold together then shift by no more than
the slacks of its conversations together, so that an interval which is widened by that contains the
truth. Where no slack could be proved it is infinite, and figures are estimates.

Index conventions: m = conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.cliques import held_together
from spklink.posterior.answer import Answer, answer_of_bits
from spklink.posterior.inference.beliefs import CERTAINTIES, CERTIFIED, ESTIMATED
from spklink.posterior.posterior import Posterior
from spklink.posterior.states.solve import SeatBeliefs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
METHOD = "sums"
BELOW_ONE = 1.0 - 2.0**-53  # a probability that is rounded to 1 may be as low as this


@dataclass(frozen=True)
class Slack:
    """How far frequent voices may be off, (M,) each; 0 where none takes part."""

    shift: Floats  # of log-odds; infinite: nothing is known
    tail: Floats  # probability that it is more
    most: int  # conversations of people whose links are listed

    @property
    def reason(self) -> str:
        text = f"voices of people with more than {self.most} conversations are summed"
        if np.isinf(self.shift).any():
            text += "; of some, how far that is off at most was not proved"
            text += " (a larger --budget-seconds may do)"
        return text

    def of(self, calls: Ints) -> Slack:
        """That of some conversations."""
        return Slack(self.shift[calls], self.tail[calls], self.most)

    def of_pieces(self, piece: Ints, count: int) -> tuple[Floats, Floats]:
        """(pieces,) of events in pieces that links hold together."""
        return sums(piece, self.shift, count), np.minimum(sums(piece, self.tail, count), 1.0)


def unknown_slack(touched: Mask, most: int) -> Slack:
    """Where nothing is known of how far conversations of frequent people are off."""
    return Slack(np.where(touched, np.inf, 0.0), np.zeros(len(touched)), most)


def widened(low: Floats, high: Floats, shift: Floats, tail: Floats) -> tuple[Floats, Floats]:
    """Intervals of probabilities whose log-odds may shift."""
    known = np.isfinite(shift)
    by = np.where(known, shift, 0.0)
    lowest = np.where(by > 0.0, np.minimum(low, BELOW_ONE), low)
    lower = np.maximum(_moved(lowest, -by) - tail, 0.0)
    upper = np.minimum(_moved(high, by) + tail, 1.0)
    return np.where(known, lower, 0.0), np.where(known, upper, 1.0)


def _moved(chance: Floats, by: Floats) -> Floats:
    """Probabilities with so much added to their log-odds."""
    p = np.clip(chance, 0.0, 1.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        odds = p / (1.0 - p) * np.exp(by)
        moved = np.where(np.isinf(odds), 1.0, odds / (1.0 + odds))
    return np.asarray(np.where(p >= 1.0, 1.0, moved))


def loosened(answer: Answer, slack: Slack) -> Answer:
    """The answer with what it can promise."""
    if answer.binary:
        bits = _loosened_bits(answer.bits, slack)
        return answer_of_bits(answer.table, answer.cliques, bits, answer.make_seats)
    return answer.with_beliefs(_loosened_states(answer, slack))


def _loosened_bits(posterior: Posterior, slack: Slack) -> Posterior:
    """One bit per conversation."""
    model = posterior.model
    label, count = model.cliques.label, len(model.cliques)
    piece = _pieces(posterior)
    number = int(piece.max(initial=-1)) + 1
    shift, tail = (values[piece] for values in slack.of_pieces(piece, number))
    low, high = widened(posterior.exchanged_low, posterior.exchanged_high, shift, tail)
    of_pair = shift[model.first], tail[model.first]
    both = widened(posterior.both_low, posterior.both_high, *of_pair)
    touched = np.bincount(label, slack.shift > 0.0, count) > 0
    lost = np.bincount(label, np.isinf(slack.shift), count) > 0
    open_low, open_high = _open_bits(low, high, np.bincount(piece)[piece] == 1, tail)
    open_low[posterior.bits >= 0], open_high[posterior.bits >= 0] = 0.0, 0.0
    return replace(
        posterior,
        proved=posterior.proved & ~touched[label],
        exchanged_low=low,
        exchanged_high=high,
        both_low=both[0],
        both_high=both[1],
        log_evidence_low=np.where(touched, -np.inf, posterior.log_evidence_low),
        log_evidence_high=np.where(touched, np.inf, posterior.log_evidence_high),
        entropy_low=np.where(touched, sums(label, open_low, count), posterior.entropy_low),
        entropy_high=np.where(touched, sums(label, open_high, count), posterior.entropy_high),
        ties=np.where(touched, 0, posterior.ties),
        method=np.where(touched, METHOD, posterior.method),
        certainty=_worse(posterior.certainty, touched, lost),
        reason=np.where(touched, slack.reason, posterior.reason),
    )


def _open_bits(low: Floats, high: Floats, alone: Mask, tail: Floats) -> tuple[Floats, Floats]:
    """(M,) bits that are open of each conversation: no fewer, as what is open of it given all
    others; no more, as what is open of it by itself."""
    ends = np.stack([_entropy(low), _entropy(high)])
    across = (low <= 0.5) & (high >= 0.5)
    return np.where(alone, (1.0 - tail) * ends.min(axis=0), 0.0), np.where(
        across, 1.0, ends.max(axis=0)
    )


def _entropy(p: Floats) -> Floats:
    q = 1.0 - p
    with np.errstate(divide="ignore", invalid="ignore"):
        return -(np.where(p > 0.0, p * np.log2(p), 0.0) + np.where(q > 0.0, q * np.log2(q), 0.0))


def _worse(certainty: NDArray[np.object_], touched: Mask, lost: Mask) -> NDArray[np.object_]:
    """(K,) no more certain than the sums are."""
    rank = np.array([CERTAINTIES.index(name) for name in certainty.tolist()], np.int64)
    least = np.where(lost, CERTAINTIES.index(ESTIMATED), CERTAINTIES.index(CERTIFIED))
    return np.array(CERTAINTIES, object)[np.where(touched, np.maximum(rank, least), rank)]


def _pieces(posterior: Posterior) -> Ints:
    """(M,) the piece of every conversation: what couplings hold together."""
    model = posterior.model
    there = model.coupling != 0.0
    found = held_together(model.first[there], model.second[there], len(model.field))
    return found.astype(np.int64)


def _loosened_states(answer: Answer, slack: Slack) -> SeatBeliefs:
    """Any lists and tracks. Where no slack is known figures are estimates, with their ends as they
    are."""
    beliefs = answer.beliefs
    shift, tail = slack.of_pieces(beliefs.piece, len(beliefs.method))
    piece = beliefs.piece[answer.events.node]
    touched, lost = shift > 0.0, np.isinf(shift)
    low, high = widened(beliefs.low, beliefs.high, np.where(lost, 0.0, shift)[piece], tail[piece])
    certainty = _worse(np.array(beliefs.certainty, object), touched, lost)
    said = zip((beliefs.method, beliefs.reason), (METHOD, slack.reason), strict=True)
    method, reason = (np.where(touched, new, np.array(old, object)).tolist() for old, new in said)
    return replace(
        beliefs,
        low=low,
        high=high,
        log_sum=np.where(touched, np.array([[-np.inf], [np.inf]]), beliefs.log_sum),
        method=method,
        certainty=certainty.tolist(),
        reason=reason,
        proved=beliefs.proved & ~touched,
    )

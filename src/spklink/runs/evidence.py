"""What a posterior is computed from: the table, its links, log-likelihood-ratios, what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.choice import Calibrated
from spklink.cues.cue import Terms, with_cues
from spklink.database.cliques import Cliques, find_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import Links
from spklink.posterior.answer import Answer, answer_of_bits, certain_calls, said_about, seat
from spklink.posterior.likelihood import Model, Prior, Weight, build_model, combine_prior
from spklink.posterior.posterior import Options, Posterior, Tell, solve
from spklink.posterior.states.seats import Seats, build_seats
from spklink.posterior.summed import Slack, loosened
from spklink.scores.needed import Scores, SideScores, needed_and


@dataclass(frozen=True)
class Evidence:
    """Everything but how it is solved."""

    conversations: Conversations
    links: Links
    scores: Scores  # log-likelihood-ratios
    weight: Weight
    known: Labels | None = None
    cues: tuple[Terms, ...] = ()  # what the table knows of them is their sum
    # How far figures may be off where voices were summed: those of bits, and of the answer in full.
    slack: Slack | None = None
    seat_slack: Slack | None = None

    @cached_property
    def cliques(self) -> Cliques:
        return find_cliques(self.conversations, certain_calls(self.conversations, self.known))

    @cached_property
    def model(self) -> Model:
        """One bit a conversation: of two certain people on two channels, lists taken at their
        word."""
        prior = combine_prior(self.conversations, self.known)
        return build_model(
            self.conversations,
            self.cliques,
            self.links,
            self.scores.needed,
            weight=self.weight,
            prior=prior,
        )

    def told(self, usable: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """(sides,) those of which something can be said, by voices that can be used or by cues."""
        if usable is None or not self.cues:
            return usable
        table = self.conversations
        said = np.any([one.said(table) for one in self.cues], axis=0)
        return np.asarray(usable | said[table.sides.conversation])

    def calibrated(self, found: Calibrated) -> Evidence:
        """With the log-likelihood-ratios that a calibration made, and what it found on the way."""
        scores = replace(self.scores, needed=found.llr, non_targets=found.non_targets)
        return replace(self, scores=scores, weight=found.weight).with_sums(found.sums)

    def with_sums(self, sums: NDArray[np.float64] | None) -> Evidence:
        """The same with what frequent voices say, where there are any."""
        if sums is None:
            return self
        return replace(self, conversations=replace(self.conversations, sums=sums))

    def answered(
        self,
        rate: float | None,
        how: Options,
        *,
        right: Answer | None = None,
        start: NDArray[np.int64] | None = None,
        near: bool = False,
        tell: Tell | None = None,
    ) -> Answer:
        """Who is where, with what that can promise; without a rate of list errors it is estimated.
        `right` is the answer given that the lists are right, where it is known; it is where the
        search begins, unless there is a better `start` (entries,), even `near` to the best."""
        table = self.conversations
        if table.plain and rate == 0.0:
            return right or self.lists_right(how, tell)
        if right is not None and start is None:
            start = right.place
        given = partial(self.lists_right, how) if right is None else lambda: right
        found = seat(
            *(table, self.cliques, self.links, self.scores.needed),
            weight=self.weight,
            rate=rate,
            said=said_about(table, self.known),
            start=start,
            options=how,
            near=near,
            tell=tell,
            right=given,
        )
        return self.promised(found)

    def lists_right(self, how: Options, tell: Tell | None = None) -> Answer:
        """Who is where, given that the lists are right: of two certain people on two tracks each
        conversation is one bit."""
        if not self.conversations.plain:
            return self.answered(0.0, how, tell=tell)
        return self.promised(self.of_bits(solve(self.model, options=how, tell=tell)))

    def of_bits(self, posterior: Posterior) -> Answer:
        """The answer that was found as bits."""
        return answer_of_bits(self.conversations, self.cliques, posterior, cache(self.seats))

    def seats(self, rate: float = 0.0) -> Seats:
        """The states of all conversations, under a rate of list errors."""
        table, said = self.conversations, said_about(self.conversations, self.known)
        needed = self.scores.needed
        return build_seats(table, self.links, needed, weight=self.weight, rate=rate, said=said)

    def promised(self, answer: Answer) -> Answer:
        """What an answer found with this evidence can promise."""
        slack = self.slack if answer.binary else self.seat_slack
        return answer if slack is None else loosened(answer, slack)

    def unaided(self) -> Evidence:
        """The same without what somebody knew of channels."""
        return replace(self, known=None)

    def with_cues(self, cues: Sequence[Terms]) -> Evidence:
        """The same with other cues, or with none."""
        table = with_cues(replace(self.conversations, cues=np.zeros(0)), cues)
        return replace(self, conversations=table, cues=tuple(cues))

    def hiding_everything(self) -> Model:
        """The model without what is known for certain; what is only probable stays."""
        prior = self.model.prior
        nothing = Prior(prior.log_odds, np.full(len(self.conversations), -1, np.int8))
        table = self.conversations
        return build_model(
            table,
            find_cliques(table),
            self.links,
            self.scores.needed,
            weight=self.weight,
            prior=nothing,
        )

    def ratios(self) -> SideScores:
        """The log-likelihood-ratios: of the needed pairs, then of known non-targets."""
        return needed_and(
            self.conversations, self.links, self.scores.needed, self.scores.non_targets
        )

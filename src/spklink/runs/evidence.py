"""What a posterior is computed from: the table, its links, log-likelihood-ratios, what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spklink.cues.cue import Terms, with_cues
from spklink.database.cliques import Cliques, find_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import Links
from spklink.posterior.likelihood import Model, Prior, Weight, build_model, combine_prior
from spklink.posterior.posterior import Options, Posterior, Tell, solve
from spklink.posterior.seating import Seating, certain_calls
from spklink.posterior.summed import Slack, loosened, loosened_seats
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

    def with_sums(self, sums: NDArray[np.float64] | None) -> Evidence:
        """The same with what frequent voices say, where there are any."""
        if sums is None:
            return self
        return replace(self, conversations=replace(self.conversations, sums=sums))

    def solved(self, options: Options, tell: Tell | None = None) -> Posterior:
        """One bit a conversation: the posterior, with what it can promise."""
        return self.promised(solve(self.model, options=options, tell=tell))

    def promised(self, posterior: Posterior) -> Posterior:
        """What bits solved with this evidence can promise."""
        return posterior if self.slack is None else loosened(posterior, self.slack)

    def promised_seats(self, seating: Seating) -> Seating:
        """The same of the answer in full."""
        return seating if self.seat_slack is None else loosened_seats(seating, self.seat_slack)

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

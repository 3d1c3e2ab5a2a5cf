"""What a posterior is computed from: the table, its links, log-likelihood-ratios, what is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from spklink.database.cliques import find_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import Links
from spklink.posterior.likelihood import Model, Weight, build_model, combine_prior
from spklink.scores.needed import Scores, SideScores, needed_and


@dataclass(frozen=True)
class Evidence:
    """Everything but how it is solved."""

    conversations: Conversations
    links: Links
    scores: Scores  # log-likelihood-ratios
    weight: Weight
    known: Labels | None = None

    @cached_property
    def model(self) -> Model:
        prior = combine_prior(self.conversations, self.known)
        cliques = find_cliques(self.conversations, prior.clamped >= 0)
        return build_model(
            self.conversations,
            cliques,
            self.links,
            self.scores.needed,
            weight=self.weight,
            prior=prior,
        )

    def unaided(self) -> Evidence:
        """The same without what somebody knew of channels."""
        return replace(self, known=None)

    def ratios(self) -> SideScores:
        """The log-likelihood-ratios: of the needed pairs, then of known non-targets."""
        return needed_and(
            self.conversations, self.links, self.scores.needed, self.scores.non_targets
        )

"""How probable a given truth is under a posterior, and whether the best answers agree with it.

For a clique, cross entropy = -log2 P(true configuration). A clique is wrong when the truth is not
among its most probable configurations (ties, as in every unresolvable clique, are no errors).
Conversations without a key are left out: the probability of the keyed ones, whatever the others
are, is what counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.posterior.inference.network import TIE
from spklink.posterior.posterior import Options, Posterior, solve

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]


@dataclass(frozen=True)
class CliqueScores:
    """One entry a clique that has a key for at least one conversation."""

    clique: NDArray[np.int64]
    size: NDArray[np.int64]
    keyed: NDArray[np.int64]
    resolvable: NDArray[np.bool_]
    cross_low: Floats  # -log2 P(truth): both ends, equal where the posterior is exact
    cross_high: Floats
    wrong: NDArray[np.bool_]
    best_low: Floats  # probability of the maximum, all tied configurations together
    best_high: Floats

    @property
    def per_low(self) -> Floats:
        """Bits a conversation, low end."""
        return self.cross_low / self.keyed

    @property
    def per_high(self) -> Floats:
        return self.cross_high / self.keyed

    @property
    def per_conversation(self) -> Floats:
        """Bits a conversation, the middle of the interval."""
        return (self.per_low + self.per_high) / 2.0


def score_cliques(
    posterior: Posterior, truth: Bits, *, options: Options | None = None
) -> CliqueScores:
    """Cross entropy and error of every clique with a key."""
    model = posterior.model
    cliques = model.cliques
    # The same sum with the keyed conversations at the truth.
    given = solve(model, truth, options=options)
    keyed = sums(cliques.label, truth >= 0, len(cliques)).astype(np.int64)
    denied = (truth >= 0) & (model.prior.clamped >= 0) & (truth != model.prior.clamped)
    impossible = sums(cliques.label, denied, len(cliques)) > 0
    low = np.maximum(posterior.log_evidence_low - given.log_evidence_high, 0.0) / np.log(2.0)
    high = np.maximum(posterior.log_evidence_high - given.log_evidence_low, 0.0) / np.log(2.0)
    best_low, best_high = posterior.best_probability()
    ties = np.maximum(posterior.ties, 1)
    k = np.flatnonzero(keyed)
    return CliqueScores(
        clique=k,
        size=cliques.size[k],
        keyed=keyed[k],
        resolvable=cliques.resolvable[k],
        cross_low=np.where(impossible, np.inf, low)[k],
        cross_high=np.where(impossible, np.inf, high)[k],
        wrong=(impossible | (given.best_value < posterior.best_value - TIE))[k],
        best_low=np.minimum(best_low * ties, 1.0)[k],
        best_high=np.minimum(best_high * ties, 1.0)[k],
    )

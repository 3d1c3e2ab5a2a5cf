"""The answer: who is on which channel, how sure, and by which method.

Bits as everywhere: 0 = as listed, 1 = exchanged. Arrays over conversations are in table order,
arrays over cliques in the order of their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.inference.network import Networks, condition
from spklink.likelihood import Model
from spklink.links import Links

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """Exact posterior of every clique of a database."""

    model: Model
    best: NDArray[np.int8]  # (M,) the most probable joint configuration
    exchanged: Floats  # (M,) P(x = 1)
    both_exchanged: Floats  # (E,) P(x_i = x_j = 1) for the pairs of the model
    log_evidence: Floats  # (K,) log of the sum over configurations of prior x likelihood
    best_value: Floats  # (K,) the largest term of that sum
    entropy_bits: Floats  # (K,)
    relative_probability: Floats  # (K,) of the best or, if unresolvable, of it and its mirror
    ties: NDArray[np.int64]  # (K,) configurations within 1e-9 of the best; > 1 is a tie
    method: list[str]  # (K,)

    @property
    def best_probability(self) -> Floats:
        """(K,) joint probability of the best configuration."""
        return np.exp(np.minimum(self.best_value - self.log_evidence, 0.0))

    def confidence(self) -> Floats:
        """(M,) marginal probability of what `best` says about each conversation."""
        return np.where(self.best == 1, self.exchanged, 1.0 - self.exchanged)

    def best_configurations(self, clique: int, k: int) -> tuple[NDArray[np.int8], Floats]:
        """The k most probable configurations of a clique: (k, size) bits, (k,) probabilities."""
        from spklink.inference.enumeration import k_best

        networks = condition(self.model)
        members = self.model.cliques.members(clique)
        bits, log_probability = k_best(networks.one(clique), k)
        full = np.repeat(networks.bits[members][None, :], len(bits), axis=0)
        full[:, networks.bits[members] < 0] = bits
        return full, np.exp(log_probability)

    def link_probabilities(self, links: Links) -> Floats:
        """(L, 2, 2): P(its speaker is on channel u of the first call and v of the second)."""
        both = self.both_exchanged[links.pair]
        i = self.exchanged[links.first[links.pair]]
        j = self.exchanged[links.second[links.pair]]
        table = np.stack([1.0 - i - j + both, j - both, i - both, both], axis=1)
        table = np.clip(table, 0.0, 1.0).reshape(-1, 2, 2)
        rows = np.arange(len(table))[:, None, None]
        u = links.position_first[:, None, None] ^ np.array([[0], [1]])
        v = links.position_second[:, None, None] ^ np.array([[0, 1]])
        return np.asarray(table[rows, u, v])


def solve(model: Model, bits: NDArray[np.int8] | None = None) -> Posterior:
    """Posterior of every clique; `bits` (≥ 0) fixes further conversations."""
    from spklink.inference.enumeration import LIMIT, enumerate_all

    networks = condition(model, bits)
    _refuse_large(networks, model, LIMIT)
    found = enumerate_all(networks)
    best = networks.bits.copy()
    best[networks.node] = found.best
    exchanged = np.maximum(networks.bits, 0).astype(np.float64)
    exchanged[networks.node] = found.one
    both = exchanged[model.first] * exchanged[model.second]  # right where an end is known
    both[networks.edge] = found.both
    together = np.logaddexp(found.best_value, found.mirror_value) - found.log_sum
    alone = found.best_value - found.log_sum
    # With no open conversation left there is no mirror; a known channel excludes it too.
    mirrored = ~model.cliques.resolvable & (networks.sizes() == model.cliques.size)
    return Posterior(
        model=model,
        best=best,
        exchanged=exchanged,
        both_exchanged=both,
        log_evidence=found.log_sum,
        best_value=found.best_value,
        entropy_bits=np.maximum(found.entropy, 0.0) / np.log(2.0),
        relative_probability=np.exp(np.minimum(np.where(mirrored, together, alone), 0.0)),
        ties=found.ties,
        method=["enumerate"] * len(networks),
    )


def _refuse_large(networks: Networks, model: Model, limit: int) -> None:
    sizes = networks.sizes()
    large = np.flatnonzero(sizes > limit)
    if len(large):
        k = int(large[np.argmax(sizes[large])])
        raise SpklinkError(
            f"clique {k + 1} has {sizes[k]} conversations with open channels; more than {limit} "
            f"in one clique are not supported yet ({len(large)} of {len(networks)} cliques)"
        )

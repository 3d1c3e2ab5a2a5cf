"""From log-likelihood-ratios to the likelihood of every configuration.

A configuration gives every conversation one bit x: 0 = as listed, 1 = exchanged (module `labels`).
Its log-likelihood relative to "all sides are different speakers" is

    sum over speakers s  of  w(M_s) * sum over i < j  of  lambda(side of s in i, side of s in j)

with i, j the conversations of s (the paper's equations for one pair, for many and for other links
with w = 2/n; its chain with w = 1 and neighbours only). That is a pairwise binary model

    constant + sum_i field_i x_i + sum_{i<j} coupling_ij x_i x_j

whose fields also take up the prior. Everything downstream works on this form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import sums
from spklink.database.cliques import Cliques, number_cliques
from spklink.database.conversations import Conversations
from spklink.database.labels import Labels
from spklink.database.links import Links
from spklink.database.sides import refuse_more_than_bits, squares, track_of, turned_odds
from spklink.errors import SpklinkError

Floats = NDArray[np.float64]
WEIGHTS = ("paper", "chain", "book")
AUTO = "auto"


@dataclass(frozen=True)
class Weight:
    """How much each pair of a speaker's n conversations counts: the rule w(n)."""

    rule: str = "paper"
    beta: float | None = None  # between-/within-speaker variance ratio, for `book`

    def __post_init__(self) -> None:
        if self.rule not in WEIGHTS:
            raise SpklinkError(f"weight {self.rule!r} is not one of {', '.join(WEIGHTS)}")
        if self.rule == "book" and self.beta is None:
            raise SpklinkError("weight 'book' needs --beta, the between/within variance ratio")
        if self.rule != "book" and self.beta is not None:
            raise SpklinkError(f"--beta belongs to weight 'book', not to {self.rule!r}")
        if self.beta is not None and not 0.0 <= self.beta < float("inf"):
            raise SpklinkError(f"--beta {self.beta} is not a number of 0 or more")

    @property
    def consecutive(self) -> bool:
        """The chain links only neighbours in table order."""
        return self.rule == "chain"

    def of(self, calls: NDArray[np.int32]) -> Floats:
        """w(n): 2/n in the paper, 1 in a chain, (1 + 2 beta) / (1 + n beta) by the book of PLDA."""
        n = calls.astype(np.float64)
        if self.rule == "paper":
            return 2.0 / n
        if self.rule == "chain":
            return np.ones_like(n)
        beta = float(self.beta or 0.0)
        if beta > 1e100:  # the limit, where the products are no numbers any more
            return 2.0 / n
        return (1.0 + 2.0 * beta) / (1.0 + n * beta)


def asked_weight(name: str, beta: float | None) -> Weight | None:
    """The rule that options ask for: `auto` leaves it to calibration, and a beta alone asks for the
    rule that has one."""
    if name == AUTO:
        return None if beta is None else Weight("book", beta)
    return Weight(name, beta)


@dataclass(frozen=True)
class Prior:
    """What is known before listening, a conversation at a time."""

    log_odds: Floats  # (M,) of exchanged against as listed; 0 where clamped
    clamped: NDArray[np.int8]  # (M,) 0 or 1 where certain, -1 elsewhere


def combine_prior(conversations: Conversations, known: Labels | None = None) -> Prior:
    """The `prior` column; what a known channel says about a conversation replaces it. Cues are
    added to either."""
    exchanged = 1.0 - conversations.prior
    if known is not None:
        exchanged = np.where(np.isnan(known.exchanged), exchanged, known.exchanged)
    clamped = Labels(exchanged).bits
    open_ = np.where(clamped < 0, exchanged, 0.5)
    odds = np.log(open_) - np.log1p(-open_)
    if len(conversations.cues) or len(conversations.sums):
        odds = np.where(clamped < 0, odds + turned_odds(conversations), odds)
    return Prior(odds, clamped)


@dataclass(frozen=True)
class Model:
    """The posterior of a whole database as a pairwise binary model, in table order."""

    cliques: Cliques
    prior: Prior
    first: NDArray[np.int32]  # (E,) pairs of conversations, i < j
    second: NDArray[np.int32]
    field: Floats  # (M,) from the scores alone
    coupling: Floats  # (E,)
    constant: Floats  # (K,) a clique's log-likelihood with all channels as listed

    def scaled(self, factor: float) -> Model:
        """The same database with every log-likelihood-ratio multiplied; the prior stays."""
        return replace(
            self,
            field=self.field * factor,
            coupling=self.coupling * factor,
            constant=self.constant * factor,
        )


def link_terms(links: Links, llr: Floats, weight: Weight) -> Floats:
    """(L, 2, 2) what each link adds to the log-likelihood for the bits of its two conversations."""
    of_pair = squares(llr)
    terms = np.empty((len(links.pair), *of_pair.shape[1:]))
    w = weight.of(links.calls)
    for x in (0, 1):
        for y in (0, 1):
            u, v = track_of(links.position_first, x), track_of(links.position_second, y)
            terms[:, x, y] = w * of_pair[links.pair, u, v]
    return terms


def build_model(
    conversations: Conversations,
    cliques: Cliques,
    links: Links,
    llr: Floats,
    *,
    weight: Weight | None = None,
    prior: Prior | None = None,
) -> Model:
    """Fields and couplings from the log-likelihood-ratios of the needed side pairs of `links`."""
    refuse_more_than_bits(conversations)
    terms = link_terms(links, llr, weight or Weight())
    base = terms[:, 0, 0]
    size, pairs = len(conversations), len(links.first)
    i, j = links.first[links.pair], links.second[links.pair]
    return Model(
        cliques=cliques,
        prior=prior or combine_prior(conversations),
        first=links.first,
        second=links.second,
        field=sums(i, terms[:, 1, 0] - base, size) + sums(j, terms[:, 0, 1] - base, size),
        coupling=sums(links.pair, terms[:, 1, 1] - terms[:, 1, 0] - terms[:, 0, 1] + base, pairs),
        constant=sums(cliques.label[i], base, len(cliques)),
    )


def restrict(model: Model, wanted: NDArray[np.bool_]) -> tuple[Model, NDArray[np.int64]]:
    """The model of some cliques only, and the conversations (of the full table) it is about."""
    old = model.cliques
    kept = np.flatnonzero(wanted[old.label])
    place = np.full(len(old.label), -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    pairs = np.flatnonzero(place[model.first] >= 0)
    number = (np.cumsum(wanted) - 1).astype(np.int32)
    return (
        Model(
            cliques=number_cliques(
                number[old.label[kept]], old.speakers[wanted], old.resolvable[wanted]
            ),
            prior=Prior(model.prior.log_odds[kept], model.prior.clamped[kept]),
            first=place[model.first[pairs]],
            second=place[model.second[pairs]],
            field=model.field[kept],
            coupling=model.coupling[pairs],
            constant=model.constant[wanted],
        ),
        kept,
    )


def join(models: list[Model]) -> Model:
    """Several databases as one: conversations and cliques one after the other."""
    calls = np.cumsum([0] + [len(m.field) for m in models]).astype(np.int32)
    cliques = np.cumsum([0] + [len(m.cliques) for m in models]).astype(np.int32)

    def chain(get: Callable[[Model], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([get(m) for m in models])

    def shifted(get: Callable[[Model], NDArray[Any]], by: NDArray[np.int32]) -> NDArray[Any]:
        return np.concatenate([get(m) + by[k] for k, m in enumerate(models)])

    return Model(
        cliques=number_cliques(
            shifted(lambda m: m.cliques.label, cliques),
            chain(lambda m: m.cliques.speakers),
            chain(lambda m: m.cliques.resolvable),
        ),
        prior=Prior(chain(lambda m: m.prior.log_odds), chain(lambda m: m.prior.clamped)),
        first=shifted(lambda m: m.first, calls),
        second=shifted(lambda m: m.second, calls),
        field=chain(lambda m: m.field),
        coupling=chain(lambda m: m.coupling),
        constant=chain(lambda m: m.constant),
    )

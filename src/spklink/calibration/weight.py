"""How the calls of one speaker count together, learned where known channels can tell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options, Posterior
from spklink.posterior.truth import score_cliques

Floats = NDArray[np.float64]
FEWEST_CLIQUES = 30  # with known channels: fewer hardly tell one rule from another. A choice
BETAS = (0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 4.0)  # a choice: a grid of factors of two to three


def learn_weight(
    solve: Callable[[Weight], Posterior],
    truth: NDArray[np.int8],
    options: Options | None = None,
) -> Weight | None:
    """How the calls of one speaker count together, w(n; beta), where known channels can tell.

    `solve` gives the posterior under a weight rule without those channels; `truth` has them, and -1
    elsewhere. The beta under which the known channels are most probable, on cliques that it was not
    chosen on, is taken if it beats the paper's 2/n there by two standard errors; else None. Without
    any known channel nothing tells: a posterior is always most content with its own confidence.
    """
    paper = score_cliques(solve(Weight()), truth, options=options)
    telling = np.flatnonzero(paper.resolvable & np.isfinite(paper.cross_high))
    if len(telling) < FEWEST_CLIQUES:
        return None

    def cost(weight: Weight) -> Floats:
        scores = score_cliques(solve(weight), truth, options=options)
        return np.asarray((scores.cross_low + scores.cross_high)[telling] / 2.0)

    base = cost(Weight())
    gain = np.stack([base - cost(Weight("book", beta)) for beta in BETAS])
    fold, held_out = np.arange(len(telling)) % 2, np.empty(len(telling))
    for f in (0, 1):
        held_out[fold == f] = gain[np.argmax(gain[:, fold != f].sum(axis=1))][fold == f]
    if held_out.mean() <= 2.0 * held_out.std(ddof=1) / np.sqrt(len(telling)):
        return None
    return Weight("book", BETAS[int(np.argmax(gain.sum(axis=1)))])

"""A node taken case by case: the rest is solved for each of its states, the answers are mixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.states.beliefs import StateBeliefs
from spklink.posterior.states.network import StateNetwork, fix

Floats = NDArray[np.float64]


def case(network: StateNetwork, t: int, s: int) -> StateNetwork:
    """The network left when node t is in state s."""
    states = np.full(len(network), -1, np.int64)
    states[t] = s
    return fix(network, states)[0]


def mixed(
    network: StateNetwork, t: int, found: Sequence[StateBeliefs | None], share: Floats
) -> tuple[Floats, Floats]:
    """Marginals and pairs of the whole network; found[s] has probability share[s].

    None stands for a case of no weight.
    """
    begin, width = int(network.start[t]), int(network.size[t])
    given = np.zeros((width, len(network.unary) - width))
    rest = np.repeat((network.a != t) & (network.b != t), np.diff(network.table_start))
    marginal, pair = np.empty(len(network.unary)), np.zeros(len(network.table))
    for s, one in enumerate(found):
        if one is not None:
            given[s] = one.marginal
            pair[rest] += share[s] * one.pair
    joint = share[:, None] * given
    marginal[begin : begin + width] = share
    marginal[:begin], marginal[begin + width :] = np.split(joint.sum(0), [begin])
    row, column = (end[~rest] for end in network.ends())
    at_row = (row >= begin) & (row < begin + width)
    own, other = np.where(at_row, row, column), np.where(at_row, column, row)
    pair[~rest] = joint[own - begin, other - width * (other > begin)]
    return marginal, pair

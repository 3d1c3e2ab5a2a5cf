"""Exact answers for networks that single nodes hold together.

A node whose removal would leave the network in parts (an articulation point) is all that these have
in common. So the network is cut there into blocks, each block is solved exactly for every state of
the node that ties it to the rest, and the answers are chained. Dense blocks that no tree could hold
cost what each costs by itself, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.posterior.inference.beliefs import BEYOND, EXACT, Cost
from spklink.posterior.inference.blocks import NAME, Blocks, find_blocks
from spklink.posterior.states.beliefs import (
    StateBeliefs,
    StatePiece,
    StateProposal,
    exact_beliefs,
    mean_value,
)
from spklink.posterior.states.cases import case, mixed
from spklink.posterior.states.enumeration import SMALL, enumerate_cost
from spklink.posterior.states.network import StateNetwork, turned
from spklink.posterior.states.pieces import Solve
from spklink.posterior.states.trace import trace_cost
from spklink.posterior.states.tree import find_bags, tree_cost

Floats = NDArray[np.float64]
OVERHEAD = 5e5  # seconds x 1e9 on one core, to hand out a case of a block
Message = Callable[[StateNetwork, StateBeliefs], float]


class _Blocks:
    name, certainty = NAME, EXACT

    def propose(self, piece: StatePiece) -> StateProposal | None:
        network, cut = piece.network, find_blocks(piece.network.graph())
        if len(cut.nodes) < 2:
            return None  # the block is the whole piece: nothing is gained
        largest = block_bits(network, cut).max()
        return StateProposal(
            blocks_cost(network, cut),
            f"{len(cut.nodes)} blocks of at most 2^{largest:.1f} configurations",
            lambda: solve_blocks(network, cut, piece.solve),
            silence="a block cannot be solved exactly",
        )


METHOD = _Blocks()


def blocks_cost(network: StateNetwork, blocks: Blocks) -> Cost:
    """Operations and bytes: every case of every block twice, for the sums and for the optimum."""
    bits, joint = block_bits(network, blocks), np.array(blocks.joint)
    cases = np.where(joint < 0, 1, network.size[joint])
    left = bits - np.log2(cases)  # in one case
    operations, memory = 0.0, 0.0
    for k, (many, rest) in enumerate(zip(cases.tolist(), left.tolist(), strict=True)):
        one, room = enumerate_cost(rest) if rest <= SMALL else _case_cost(network, blocks, k)
        operations += 2.0 * many * (one + OVERHEAD)
        memory = max(memory, room)
    return operations, memory


def block_bits(network: StateNetwork, blocks: Blocks) -> Floats:
    """log2 of the configurations of each block."""
    first = np.cumsum([0, *map(len, blocks.nodes)])[:-1]
    bits = np.log2(network.size[np.concatenate(blocks.nodes)])
    return np.asarray(np.add.reduceat(bits, first), np.float64)


def _case_cost(network: StateNetwork, blocks: Blocks, k: int) -> Cost:
    """What one case of a block costs."""
    nodes, joint = blocks.nodes[k], blocks.joint[k]
    size = network.size[nodes[nodes != joint]]
    cost = min(enumerate_cost(float(np.log2(size).sum())), trace_cost(size))
    if cost != BEYOND:
        return cost
    block = _block(network, blocks, k, network.unary)  # a large one may still be a narrow tree
    return tree_cost(find_bags(block if joint < 0 else case(block, _at(blocks, k), 0)))


@dataclass(frozen=True)
class _Chain:
    """All blocks solved, each with what hangs on it."""

    block: list[StateNetwork]
    found: list[list[StateBeliefs]]  # by block and state of its joint
    constant: float


def solve_blocks(network: StateNetwork, blocks: Blocks, solve: Solve) -> StateBeliefs | None:
    """Chain the blocks; None if an answer of `solve` to one of them is not exact."""
    sums = _chain(network, blocks, solve, lambda _, found: found.log_sum[0])
    maxima = _chain(network, blocks, solve, lambda rest, found: rest.value(found.best), sums)
    if sums is None or maxima is None:
        return None
    best = np.zeros(len(network), np.int64)
    marginal, pair = np.zeros(len(network.unary)), np.zeros(len(network.table))
    for k, nodes in enumerate(blocks.nodes):  # from the first block outwards
        joint, block = blocks.joint[k], sums.block[k]
        states = ranges(network.start[nodes], network.size[nodes])
        cells = ranges(network.table_start[blocks.edges[k]], np.diff(block.table_start))
        if joint < 0:
            found = sums.found[k][0]
            marginal[states], pair[cells] = found.marginal, found.pair
            best[nodes] = maxima.found[k][0].best
            continue
        share = marginal[network.start[joint] : network.start[joint + 1]]
        own, pair[cells] = mixed(block, _at(blocks, k), sums.found[k], share)
        marginal[states] = own
        best[nodes[nodes != joint]] = maxima.found[k][best[joint]].best
    log_sum = network.constant + sums.constant + sums.found[0][0].log_sum[0]
    mean = mean_value(turned(network, best), marginal, pair)
    entropy = max(0.0, log_sum - network.value(best) - mean)
    return exact_beliefs(NAME, best, marginal, pair, log_sum, entropy)


def _chain(
    network: StateNetwork,
    blocks: Blocks,
    solve: Solve,
    message: Message,
    known: _Chain | None = None,
) -> _Chain | None:
    """From the last block inwards: seen from the rest, a block is a unary term of its joint.

    Blocks on which nothing hangs have been solved if another chain is known.
    """
    unary, constant, touched = network.unary.copy(), 0.0, np.zeros(len(network), np.bool_)
    inner: list[StateNetwork] = []
    answers: list[list[StateBeliefs]] = []
    for k in range(len(blocks.nodes) - 1, -1, -1):
        nodes, joint = blocks.nodes[k], blocks.joint[k]
        block = _block(network, blocks, k, unary)
        cases = [block]
        if joint >= 0:
            cases = [case(block, _at(blocks, k), s) for s in range(network.size[joint])]
        leaf = not touched[nodes[nodes != joint]].any()
        found = known.found[k] if known and leaf else _all_exact(solve, cases)
        if found is None:
            return None
        inner.append(block)
        answers.append(found)
        if joint >= 0:
            terms = np.array([message(*pair) for pair in zip(cases, found, strict=True)])
            unary[network.start[joint] : network.start[joint + 1]] += terms - terms.max()
            constant += float(terms.max())
            touched[joint] = True
    return _Chain(inner[::-1], answers[::-1], constant)


def _all_exact(solve: Solve, cases: list[StateNetwork]) -> list[StateBeliefs] | None:
    answers = []
    for one in cases:
        found = solve(one)
        if found is None or found.certainty != EXACT:
            return None
        answers.append(found)
    return answers


def _at(blocks: Blocks, k: int) -> int:
    """Place of the joint among the nodes of its block."""
    return int(np.searchsorted(blocks.nodes[k], blocks.joint[k]))


def _block(network: StateNetwork, blocks: Blocks, k: int, unary: Floats) -> StateNetwork:
    """One block; the unary terms of its joint belong to the earlier block."""
    nodes, edges = blocks.nodes[k], blocks.edges[k]
    size = network.size[nodes]
    own = unary[ranges(network.start[nodes], size)]
    if blocks.joint[k] >= 0:
        own[np.repeat(nodes == blocks.joint[k], size)] = 0.0
    count = np.diff(network.table_start)[edges]
    return StateNetwork(
        size=size,
        unary=own,
        a=np.searchsorted(nodes, network.a[edges]),
        b=np.searchsorted(nodes, network.b[edges]),
        table=network.table[ranges(network.table_start[edges], count)],
        constant=0.0,
    )

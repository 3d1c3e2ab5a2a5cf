"""Exact answers for cliques that single conversations hold together.

A conversation whose removal would leave the clique in parts (an articulation point) is all that
these have in common. So the clique is cut there into blocks, each block is solved exactly for every
state of the conversation that ties it to the rest, and the answers are chained: a block of 30 calls
of two states costs 2^30 steps wherever it hangs, however large the clique.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import (
    BEYOND,
    EXACT,
    Beliefs,
    Cost,
    Optimum,
    Piece,
    Proposal,
    exact_beliefs,
    mean_value,
)
from spklink.posterior.inference.enumeration import LIMIT, enumerate_cost
from spklink.posterior.inference.network import TIE, Network, alone, fix, slots_of, starts
from spklink.posterior.inference.trace import trace_cost
from spklink.posterior.inference.tree import find_bags, tree_cost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NAME = "blocks"
# Seconds x 1e9 on one core, to hand out a block of bits, and a case of a block of several states.
OVERHEAD, OVERHEAD_CASE = 3e5, 5e5
Solve = Callable[[Network], Beliefs | None]
Message = Callable[[Network, Beliefs], float]


@dataclass(frozen=True)
class Blocks:
    """Blocks of a connected clique, every block after the one it hangs on."""

    edges: list[Ints]  # edges of each block
    nodes: list[Ints]  # its nodes, ascending
    joint: list[int]  # the node that ties it to an earlier block; -1 for the first

    def largest(self) -> int:
        return max((len(nodes) for nodes in self.nodes), default=0)


class _Blocks:
    name, certainty = NAME, EXACT

    def propose(self, piece: Piece) -> Proposal | None:
        network, cut = piece.network, find_blocks(piece.network)
        count, largest = len(cut.nodes), f"{cut.largest()} conversations"
        if count == 1 and not piece.by_name:
            return None  # the block is the whole piece: nothing is gained
        if not network.binary:
            largest = f"2^{block_doublings(network, cut).max():.1f} configurations"

        def run() -> Beliefs | None:
            optimum = piece.optimum() if network.binary else None
            return solve_blocks(network, cut, piece.solve, optimum)

        return Proposal(
            blocks_cost(network, cut),
            f"{count} block{'s' * (count > 1)} of at most {largest}",
            run,
            silence="a block cannot be solved exactly",
        )


METHOD = _Blocks()


def block_doublings(network: Network, blocks: Blocks) -> Floats:
    """log2 of the configurations of each block."""
    return np.array([np.log2(network.size[nodes]).sum() for nodes in blocks.nodes])


def blocks_cost(network: Network, blocks: Blocks) -> Cost:
    """Operations and bytes, every block solved by the cheapest method for it.

    Of several states every case is solved twice, for the sums and for the optimum.
    """
    if network.binary:
        parts = [_cost_of_bits(len(nodes)) for nodes in blocks.nodes]
        operations = sum(cost for cost, _ in parts) + OVERHEAD * len(parts)
        return operations, max(memory for _, memory in parts)
    operations, memory = 0.0, 0.0
    for k, joint in enumerate(blocks.joint):
        one, room = _case_cost(network, blocks, k)
        cases = 1.0 if joint < 0 else float(network.size[joint])
        operations += 2.0 * cases * (one + OVERHEAD_CASE)
        memory = max(memory, room)
    return operations, memory


@cache
def _cost_of_bits(n: int) -> Cost:
    return _any_cost(np.full(n, 2))


def _any_cost(size: Ints) -> Cost:
    """Of the cheaper of the two methods for any graph."""
    doublings, binary = float(np.log2(size).sum()), bool((size == 2).all())
    return min(enumerate_cost(doublings, binary=binary), trace_cost(size))


def _case_cost(network: Network, blocks: Blocks, k: int) -> Cost:
    """What one case of a block costs."""
    nodes, joint = blocks.nodes[k], blocks.joint[k]
    size = network.size[nodes[nodes != joint]]
    doublings = float(np.log2(size).sum())
    if doublings <= LIMIT:
        return enumerate_cost(doublings, binary=False)
    cost = _any_cost(size)
    if cost != BEYOND:
        return cost
    block = _block(network, blocks, k, network.field)  # a large one may still be a narrow tree
    return tree_cost(find_bags(block if joint < 0 else _case(block, _at(blocks, k), 0)))


def find_blocks(network: Network) -> Blocks:
    """Cut a connected network at its articulation points."""
    n, edges, slots = len(network), len(network.a), slots_of(network, uncoupled=True)
    block, joint = _biconnected(n, slots.start, slots.other, slots.edge, edges)
    count = len(joint)
    # Blocks are closed innermost first; turned round, each comes after the one it hangs on.
    block = count - 1 - block
    edges_of = np.argsort(block, kind="stable")
    # All ends of all edges, each once a block, ascending.
    ends = np.unique(np.concatenate([block * n + network.a, block * n + network.b]))
    members = _runs(edges_of, block, count)
    ties = joint[::-1].tolist()
    return Blocks(members, _runs(ends % max(n, 1), ends // max(n, 1), count), [-1, *ties[1:]])


def _runs(values: Ints, run: Ints, count: int) -> list[Ints]:
    """The values of each of `count` runs, in which they stand one after the other."""
    at = starts(np.bincount(run, minlength=count)).tolist()
    return [values[at[k] : at[k + 1]] for k in range(count)]


@dataclass(frozen=True)
class _Chain:
    """All blocks solved, each with what hangs on it."""

    block: list[Network]
    found: list[list[Beliefs]]  # by block and state of its joint
    constant: float


def solve_blocks(
    network: Network, blocks: Blocks, solve: Solve, optimum: Optimum | None = None
) -> Beliefs | None:
    """Chain the blocks; None if an answer of `solve` to one of them is not exact.

    A second chain, of maxima, finds the optimum where none is given.
    """
    sums = _chain(network, blocks, solve, lambda _, found: found.log_sum[0])
    if sums is None:
        return None
    one, both = _marginals(network, blocks, sums)
    log_sum = network.constant + sums.constant + sums.found[0][0].log_sum[0]
    if optimum is None:
        top = _chain(network, blocks, solve, lambda case, found: case.value(found.best), sums)
        if top is None:
            return None
        best = _best(network, blocks, top)
        sure = np.ones(len(network), np.bool_)
    else:
        best = optimum.best.astype(np.int64)
        # What holds more than half of all probability is the optimum.
        sure = optimum.proved | (network.value(best) - log_sum > -np.log(2.0) + TIE)
    entropy = max(0.0, log_sum - mean_value(network, one, both))
    found = exact_beliefs(network, NAME, best, one, both, log_sum, entropy)
    return replace(found, proved=sure)


def _chain(
    network: Network,
    blocks: Blocks,
    solve: Solve,
    message: Message,
    known: _Chain | None = None,
) -> _Chain | None:
    """From the last block inwards: seen from the rest, a block is a field of its joint.

    Blocks on which nothing hangs have been solved if another chain is known.
    """
    field, constant, touched = network.field.copy(), 0.0, np.zeros(len(network), np.bool_)
    inner: list[Network] = []
    answers: list[list[Beliefs]] = []
    for k in range(len(blocks.nodes) - 1, -1, -1):
        nodes, joint = blocks.nodes[k], blocks.joint[k]
        block = _block(network, blocks, k, field)
        cases = [block]
        if joint >= 0:
            cases = [_case(block, _at(blocks, k), s) for s in range(int(network.size[joint]))]
        leaf = not touched[nodes[nodes != joint]].any()
        found = known.found[k] if known and leaf else _all_exact(solve, cases)
        if found is None:
            return None
        inner.append(block)
        answers.append(found)
        if joint >= 0:
            terms = np.array([message(*pair) for pair in zip(cases, found, strict=True)])
            field[network.start[joint] : network.start[joint + 1]] += terms[1:] - terms[0]
            constant += float(terms[0])
            touched[joint] = True
    return _Chain(inner[::-1], answers[::-1], constant)


def _all_exact(solve: Solve, cases: list[Network]) -> list[Beliefs] | None:
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


def _block(network: Network, blocks: Blocks, k: int, field: Floats) -> Network:
    """One block with all that hangs on it; the field of its joint belongs to the earlier block."""
    nodes, edges, whole = blocks.nodes[k], blocks.edges[k], alone(network)
    own = field[whole.entries(nodes)]
    if blocks.joint[k] >= 0:
        own[np.repeat(nodes == blocks.joint[k], network.size[nodes] - 1)] = 0.0
    return Network(
        field=own,
        a=np.searchsorted(nodes, network.a[edges]).astype(np.int32),
        b=np.searchsorted(nodes, network.b[edges]).astype(np.int32),
        coupling=network.coupling[whole.cells(edges)],
        constant=0.0,
        size=network.size[nodes],
    )


def _case(block: Network, t: int, s: int) -> Network:
    """What is left of a block when node t is in state s."""
    states = np.full(len(block), -1, np.int64)
    states[t] = s
    return fix(block, states)[0]


def _marginals(network: Network, blocks: Blocks, sums: _Chain) -> tuple[Floats, Floats]:
    """From the first block outwards: mix the answers of a block as its joint says."""
    one, both, whole = np.zeros(len(network.field)), np.zeros(len(network.coupling)), alone(network)
    for k, (nodes, edges) in enumerate(zip(blocks.nodes, blocks.edges, strict=True)):
        joint, block, found = blocks.joint[k], sums.block[k], sums.found[k]
        entries, cells = whole.entries(nodes), whole.cells(edges)
        if joint < 0:
            one[entries], both[cells] = found[0].one, found[0].both
            continue
        t = _at(blocks, k)
        own = one[network.start[joint] : network.start[joint + 1]]
        share = np.concatenate([[max(1.0 - own.sum(), 0.0)], own])
        given = np.stack([case.one for case in found])
        mine = slice(block.start[t], block.start[t + 1])
        others = np.delete(np.arange(len(block.field)), mine)
        one[entries[others]] = share @ given
        row, column = block.ends
        tied = (block.a == t) | (block.b == t)
        apart = ~np.repeat(tied, np.diff(block.cell_start))
        both[cells[apart]] = sum(p * case.both for p, case in zip(share, found, strict=True))
        first = (row >= mine.start) & (row < mine.stop)
        at, other = np.where(first, row, column)[~apart], np.where(first, column, row)[~apart]
        place = np.searchsorted(others, other)
        state = at - mine.start + 1
        both[cells[~apart]] = share[state] * given[state, place]
    return one, both


def _best(network: Network, blocks: Blocks, maxima: _Chain) -> Ints:
    best = np.zeros(len(network), np.int64)
    for nodes, joint, found in zip(blocks.nodes, blocks.joint, maxima.found, strict=True):
        best[nodes[nodes != joint]] = found[0 if joint < 0 else best[joint]].best
    return best


@nb.njit(cache=True, nogil=True)
def _biconnected(n, start, other, edge, edges):  # type: ignore[no-untyped-def]
    """Hopcroft and Tarjan without recursion: block of every edge, and the node each block hangs on.

    Blocks are numbered as they are closed, so a block comes before the one it hangs on.
    """
    depth, low = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    cursor, came = start[:-1].copy(), np.full(n, -1, np.int64)
    block, joint = np.full(edges, -1, np.int64), np.empty(edges + 1, np.int64)
    path, stack = np.empty(n + 1, np.int64), np.empty(edges + 1, np.int64)
    seen = np.zeros(edges, np.bool_)
    count, length, height = 0, 0, 0
    if n > 0:
        path[0], length, depth[0] = 0, 1, 0
    while length > 0:
        v = path[length - 1]
        if cursor[v] < start[v + 1]:
            slot = cursor[v]
            cursor[v] += 1
            e, w = edge[slot], other[slot]
            if seen[e]:
                continue
            seen[e] = True
            stack[height] = e
            height += 1
            if depth[w] < 0:
                depth[w] = low[w] = depth[v] + 1
                came[w] = e
                path[length] = w
                length += 1
            else:
                low[v] = min(low[v], depth[w])
        else:
            length -= 1
            if length == 0:
                break
            u = path[length - 1]
            low[u] = min(low[u], low[v])
            if low[v] >= depth[u]:  # nothing beyond v reaches above u: a block ends here
                while True:
                    height -= 1
                    block[stack[height]] = count
                    if stack[height] == came[v]:
                        break
                joint[count] = u
                count += 1
    return block, joint[:count]

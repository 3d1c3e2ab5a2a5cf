"""Exact answers for cliques that single conversations hold together.

A conversation whose removal would leave the clique in parts (an articulation point) carries only
one bit between them. So the clique is cut there into blocks, each block is solved exactly for both
values of the conversation that ties it to the rest, and the answers are chained: a block of 30
calls costs 2^30 steps wherever it hangs, however large the clique.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.posterior.inference.beliefs import (
    EXACT,
    Beliefs,
    Cost,
    Optimum,
    Piece,
    Proposal,
    exact_beliefs,
    mean_value,
)
from spklink.posterior.inference.enumeration import enumerate_cost
from spklink.posterior.inference.network import TIE, Network, fix, slots_of, starts
from spklink.posterior.inference.trace import trace_cost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NAME = "blocks"
OVERHEAD = 3e5  # seconds x 1e9 on one core, to hand out a block


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
        cut = find_blocks(piece.network)
        count, largest = len(cut.nodes), cut.largest()
        if count == 1 and not piece.by_name:
            return None  # the block is the whole piece: nothing is gained
        return Proposal(
            blocks_cost(cut),
            f"{count} block{'s' * (count > 1)} of at most {largest} conversations",
            lambda: solve_blocks(piece.network, cut, piece.optimum(), piece.solve),
            silence="a block cannot be solved exactly",
        )


METHOD = _Blocks()


def blocks_cost(blocks: Blocks) -> Cost:
    """Operations and bytes, every block solved by the cheaper of the two methods for any graph."""
    parts = [min(enumerate_cost(n), trace_cost(n)) for n in map(len, blocks.nodes)]
    operations = sum(cost for cost, _ in parts) + OVERHEAD * len(parts)
    return operations, max(memory for _, memory in parts)


def find_blocks(network: Network) -> Blocks:
    """Cut a connected network at its articulation points."""
    n, edges, slots = len(network), len(network.coupling), slots_of(network, uncoupled=True)
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


def solve_blocks(
    network: Network, blocks: Blocks, optimum: Optimum, solve: Callable[[Network], Beliefs]
) -> Beliefs | None:
    """Chain the blocks; None if an answer of `solve` to one of them is not exact."""
    field, constant = network.field.copy(), network.constant
    answers: list[tuple[Beliefs, ...]] = []
    for k in range(len(blocks.nodes) - 1, -1, -1):
        block, joint = _block(network, blocks, k, field), blocks.joint[k]
        if joint < 0:
            answers.append((solve(block),))
            continue
        at = int(np.searchsorted(blocks.nodes[k], joint))
        pair = tuple(solve(_fixed(block, at, bit)) for bit in (0, 1))
        answers.append(pair)
        # Seen from the rest, the whole block is a field on the conversation that holds it.
        constant += pair[0].log_sum[0]
        field[joint] += pair[1].log_sum[0] - pair[0].log_sum[0]
    if any(found.certainty != EXACT for pair in answers for found in pair):
        return None
    answers.reverse()
    one, both = _marginals(network, blocks, answers)
    log_sum = constant + answers[0][0].log_sum[0]
    entropy = max(0.0, log_sum - mean_value(network, one, both))
    found = exact_beliefs(network, NAME, optimum.best, one, both, log_sum, entropy)
    # What holds more than half of all probability is the optimum.
    sure = optimum.proved | (network.value(optimum.best) - log_sum > -np.log(2.0) + TIE)
    return replace(found, proved=sure)


def _block(network: Network, blocks: Blocks, k: int, field: Floats) -> Network:
    """One block with all that hangs on it; the field of its joint belongs to the earlier block."""
    nodes, edges = blocks.nodes[k], blocks.edges[k]
    own = field[nodes]
    if blocks.joint[k] >= 0:
        own[np.searchsorted(nodes, blocks.joint[k])] = 0.0
    return Network(
        field=own,
        a=np.searchsorted(nodes, network.a[edges]).astype(np.int32),
        b=np.searchsorted(nodes, network.b[edges]).astype(np.int32),
        coupling=network.coupling[edges],
        constant=0.0,
    )


def _fixed(block: Network, at: int, bit: int) -> Network:
    bits = np.full(len(block), -1, np.int8)
    bits[at] = bit
    return fix(block, bits)[0]


def _marginals(
    network: Network, blocks: Blocks, answers: list[tuple[Beliefs, ...]]
) -> tuple[Floats, Floats]:
    """From the first block outwards: mix the two answers of a block as its joint says."""
    one, both = np.zeros(len(network)), np.zeros(len(network.coupling))
    for nodes, edges, joint, found in zip(
        blocks.nodes, blocks.edges, blocks.joint, answers, strict=True
    ):
        if joint < 0:
            one[nodes], both[edges] = found[0].one, found[0].both
            continue
        p = one[joint]
        rest = nodes[nodes != joint]
        one[rest] = (1.0 - p) * found[0].one + p * found[1].one
        at_joint = (network.a[edges] == joint) | (network.b[edges] == joint)
        both[edges[~at_joint]] = (1.0 - p) * found[0].both + p * found[1].both
        tied = edges[at_joint]
        other = np.where(network.a[tied] == joint, network.b[tied], network.a[tied])
        both[tied] = p * found[1].one[np.searchsorted(rest, other)]
    return one, both


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

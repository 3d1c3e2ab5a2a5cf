"""Which method solves a clique.

The cheapest exact one that fits the budget, else a certified one, else a sampled one, else an
estimate. Costs are counted operations, never measured times, so the same clique and budget always
take the same path; a second is SPEED operations. The method and the reason travel with the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.posterior.inference.beliefs import Beliefs, exact_beliefs
from spklink.posterior.inference.blocks import Blocks, find_blocks, solve_blocks
from spklink.posterior.inference.certified import certified
from spklink.posterior.inference.elimination import LIMIT as WIDEST_TREE
from spklink.posterior.inference.elimination import Elimination, elimination
from spklink.posterior.inference.enumeration import LIMIT, enumerate_all
from spklink.posterior.inference.network import Network, alone
from spklink.posterior.inference.propagation import propagate
from spklink.posterior.inference.roof import Optimum, find_optimum
from spklink.posterior.inference.sampling import sample, sample_cost
from spklink.posterior.inference.simplify import solve_in_pieces
from spklink.posterior.inference.trace import trace, trace_cost
from spklink.posterior.inference.tree import tree, tree_cost

METHODS = ("auto", "enumerate", "trace", "tree", "certified", "sample", "bp")
SPEED = 1e9  # operations a second, one core
ENUMERATED_AT_MOST = 20  # nodes, where enumeration is asked for by name
TRACED_AT_MOST = 36  # nodes; beyond, the matrices alone exceed any budget
WIDE = 0.05  # certified intervals wider than this anywhere are left for sampling to better
SAMPLES = 4000
BEYOND = (float("inf"), float("inf"))  # the cost of what cannot be done at all
BLOCK_OVERHEAD = 3e5  # operations of handing out one block


@dataclass(frozen=True)
class Budget:
    """What one clique may cost."""

    seconds: float = 60.0
    gigabytes: float = 4.0

    def __post_init__(self) -> None:
        if not (self.seconds > 0.0 and self.gigabytes > 0.0):
            raise SpklinkError("--budget-seconds and --budget-gb must be positive numbers")

    def fits(self, cost: tuple[float, float]) -> bool:
        operations, memory = cost
        return operations <= self.seconds * SPEED and memory <= self.gigabytes * 2**30


@dataclass(frozen=True)
class Solved:
    """Beliefs about a clique, and why this method gave them."""

    beliefs: Beliefs
    reason: str
    seconds: float = 0.0  # predicted


@dataclass(frozen=True)
class Exact:
    """An exact way to solve a connected piece, and what it costs."""

    method: str
    cost: tuple[float, float]
    why: str
    order: Elimination | None = None
    blocks: Blocks | None = None


def solve_network(
    network: Network, *, method: str = "auto", budget: Budget | None = None, seed: int = 0
) -> Solved:
    """Solve one clique of any size."""
    if method not in METHODS:
        raise SpklinkError(f"method {method!r} is not one of {', '.join(METHODS)}")
    allowed = budget or Budget()
    reasons: dict[str, None] = {}  # in order, without repetition
    operations = 0.0

    def solve(piece: Network) -> Beliefs:
        nonlocal operations
        found, reason, cost = _solve_piece(piece, method, allowed, seed)
        reasons[reason] = None
        operations += cost
        return found

    beliefs = solve_in_pieces(network, solve, enumerate_small=method in ("auto", "enumerate"))
    why = "; ".join(list(reasons)[:3]) or f"pieces of at most {LIMIT} open conversations"
    return Solved(beliefs, why, operations / SPEED)


def _solve_piece(
    piece: Network, method: str, budget: Budget, seed: int
) -> tuple[Beliefs, str, float]:
    if method in ("auto", "enumerate", "trace", "tree"):
        ways = exact_ways(piece, method, budget)
        chosen = _cheapest(ways, budget)
        if chosen is not None:
            return run_exact(piece, chosen, budget, seed), chosen.why, chosen.cost[0]
        if method != "auto":
            raise SpklinkError(
                f"method '{method}' cannot solve a piece of {len(piece)} open conversations within "
                f"the budget ({'; '.join(way.why for way in ways) or 'too large'}); "
                "use --method auto or a larger budget"
            )
        why_not = " and ".join(way.why for way in ways) + " exceeds the budget"
    else:
        why_not = f"method '{method}' was asked for"
    found, why = _inexact(piece, method, budget, seed, why_not)
    return found, why, 0.0


def exact_ways(piece: Network, method: str, budget: Budget) -> list[Exact]:
    """The exact methods that apply to a connected piece; one only if it is asked for by name."""
    n, ways = len(piece), []
    if method == "enumerate" or (method == "auto" and n <= LIMIT):
        if n <= ENUMERATED_AT_MOST:
            ways.append(Exact("enumerate", enumerate_cost(n), f"{n} open conversations"))
        return ways
    if method in ("auto", "trace"):
        cost = trace_cost(n) if n <= TRACED_AT_MOST else BEYOND
        ways.append(Exact("trace", cost, f"2^{n} configurations"))
    if method in ("auto", "tree"):
        order = elimination(piece)
        cost = tree_cost(order) if order.complete else BEYOND
        width = f"of width {order.width}" if order.complete else f"wider than {WIDEST_TREE}"
        ways.append(Exact("tree", cost, f"a tree {width}", order=order))
    if method == "auto":
        cut = find_blocks(piece)
        if len(cut.nodes) > 1:
            cost = _blocks_cost(cut) if cut.largest() <= TRACED_AT_MOST else BEYOND
            why = f"{len(cut.nodes)} blocks of at most {cut.largest()} conversations"
            ways.append(Exact("blocks", cost, why, blocks=cut))
    return ways


def enumerate_cost(n: int) -> tuple[float, float]:
    return (10.0 + n) * 2.0**n, 16.0 * 2.0**n


def _blocks_cost(blocks: Blocks) -> tuple[float, float]:
    parts = [min(enumerate_cost(n), trace_cost(n)) for n in map(len, blocks.nodes)]
    operations = sum(cost for cost, _ in parts) + BLOCK_OVERHEAD * len(parts)
    return operations, max(memory for _, memory in parts)


def _cheapest(ways: list[Exact], budget: Budget) -> Exact | None:
    fitting = [way for way in ways if budget.fits(way.cost)]
    return min(fitting, key=lambda way: way.cost[0], default=None)


def run_exact(piece: Network, way: Exact, budget: Budget, seed: int) -> Beliefs:
    if way.method == "enumerate":
        return enumerate_one(piece)
    if way.method == "tree":
        return tree(piece, elimination=way.order, seed=seed)
    if way.method == "trace":
        return trace(piece, seed=seed)
    assert way.blocks is not None
    optimum = find_optimum(piece, seed=seed)

    def solve(block: Network, start: NDArray[np.int8]) -> Beliefs:
        return solve_in_pieces(block, lambda part: _solve_piece(part, "auto", budget, seed)[0])

    return solve_blocks(piece, way.blocks, optimum.best, optimum.proved, solve, "blocks")


def enumerate_one(piece: Network) -> Beliefs:
    """Enumeration of a single piece, as beliefs."""
    found = enumerate_all(alone(piece))
    return exact_beliefs(
        piece,
        "enumerate",
        found.best,
        found.one,
        found.both,
        float(found.log_sum[0]),
        max(0.0, float(found.entropy[0])),
        ties=int(found.ties[0]),
    )


def _inexact(
    piece: Network, method: str, budget: Budget, seed: int, why_not: str
) -> tuple[Beliefs, str]:
    optimum = find_optimum(piece, seed=seed)
    bounds = None
    if method in ("auto", "certified"):
        bounds = certified(piece, optimum=optimum, seed=seed)
        if bounds is not None and (method == "certified" or _narrow(bounds)):
            return bounds, why_not
        if method == "certified":
            raise SpklinkError(
                f"no certificate for a piece of {len(piece)} open conversations: the scores leave "
                "too much open; use --method auto"
            )
        why_not += "; certified intervals are wide" if bounds is not None else "; no certificate"
    if method in ("auto", "sample"):
        drawn = _sampled(piece, optimum, budget, seed)
        if drawn is not None:
            return drawn, why_not
        if method == "sample":
            raise SpklinkError(
                f"perfect sampling does not settle on a piece of {len(piece)} open conversations; "
                "use --method auto"
            )
        why_not += "; sampling does not settle"
    if bounds is not None:
        return bounds, why_not
    return propagate(piece, start=optimum.best, proved=optimum.proved, seed=seed), why_not


def _sampled(piece: Network, optimum: Optimum, budget: Budget, seed: int) -> Beliefs | None:
    if not budget.fits(sample_cost(piece, SAMPLES)):
        return None
    return sample(
        piece,
        start=optimum.best,
        proved=optimum.proved,
        samples=SAMPLES,
        work=budget.seconds * SPEED,
        seed=seed,
    )


def _narrow(bounds: Beliefs) -> bool:
    return bool((bounds.one_high - bounds.one_low).max(initial=0.0) <= WIDE)

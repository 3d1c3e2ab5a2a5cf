"""Which method solves a network of several states a node.

As in `inference/plan.py`: pieces are solved apart, each by the cheapest exact method that fits the
budget, else by the first of the surest others in `table` that has an answer. Costs are counted, so
the same network and budget always take the same path; the reason travels with the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from spklink.posterior.inference.beliefs import CERTAINTIES, EXACT, proposals
from spklink.posterior.inference.plan import REASONS, SPEED, Budget
from spklink.posterior.states import table
from spklink.posterior.states.beliefs import (
    StateBeliefs,
    StatePiece,
    StateProposal,
)
from spklink.posterior.states.enumeration import SMALL
from spklink.posterior.states.network import StateNetwork
from spklink.posterior.states.pieces import solve_in_pieces, with_ties


@dataclass(frozen=True)
class StateSolved:
    """Beliefs about a network, or None where no method fits, and why."""

    beliefs: StateBeliefs | None
    reason: str
    operations: float = 0.0  # predicted; those of the exact methods alone

    @property
    def seconds(self) -> float:
        return self.operations / SPEED


def solve_exact(network: StateNetwork, budget: Budget | None = None) -> StateBeliefs | None:
    """The posterior by exact methods alone, or None if it does not fit the budget."""
    return solve_states(network, budget=budget, certainties=(EXACT,)).beliefs


def solve_states(
    network: StateNetwork,
    *,
    budget: Budget | None = None,
    certainties: tuple[str, ...] = CERTAINTIES,
    seed: int = 0,
    threads: int = 1,
) -> StateSolved:
    """Solve one network of any size by methods of these certainties."""
    network.check()
    planner = _Planner(budget or Budget(), certainties, seed, threads)
    reasons: dict[str, None] = {}  # in order, without repetition
    operations = 0.0

    def solve(piece: StateNetwork) -> StateBeliefs | None:
        nonlocal operations
        found = planner.solve(piece)
        reasons[found.reason] = None
        operations += found.operations
        return None if found.beliefs is None else with_ties(piece, found.beliefs)

    beliefs = solve_in_pieces(network, solve)
    if beliefs is None:  # the piece that failed was the last
        return StateSolved(None, list(reasons)[-1])
    alone = f"pieces of at most 2^{SMALL:.0f} configurations"
    return StateSolved(beliefs, "; ".join(list(reasons)[:REASONS]) or alone, operations)


@dataclass(frozen=True)
class _Planner:
    """Solves connected pieces within a budget."""

    budget: Budget
    certainties: tuple[str, ...]
    seed: int
    threads: int

    def solve(self, network: StateNetwork) -> StateSolved:
        """The cheapest exact answer, or the surest of the others."""
        piece = self._piece(network)
        ways = [way for _, way in proposals(table.load_all(), piece, EXACT)]
        for way in sorted(filter(self._fits, ways), key=lambda way: way.cost[0]):
            found = way.run()
            if found is not None:
                return StateSolved(found, way.why, way.cost[0])
        whys = dict.fromkeys(way.why for way in ways)
        return self._inexact(piece, " and ".join(whys) + " exceeds the budget")

    def _inexact(self, piece: StatePiece, why_not: str) -> StateSolved:
        """Down from certified to estimated."""
        others = [one for one in self.certainties if one != EXACT]
        for _, way in proposals(table.load_all(), piece, *others):
            found = way.run() if self._fits(way) else None
            if found is not None:
                return StateSolved(found, why_not)
            why_not += f"; {way.silence}"
        return StateSolved(None, why_not)

    def _piece(self, network: StateNetwork) -> StatePiece:
        def part(inner: StateNetwork) -> StateBeliefs | None:
            exact = _Planner(self.budget, (EXACT,), self.seed, self.threads)
            return solve_in_pieces(inner, lambda piece: exact.solve(piece).beliefs)

        operations = self.budget.seconds * SPEED
        return StatePiece(network, self.seed, self.threads, operations, part)

    def _fits(self, way: StateProposal) -> bool:
        return self.budget.fits(way.cost)

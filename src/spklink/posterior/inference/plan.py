"""Which method solves a clique.

The cheapest exact one that fits the budget, else a certified one, else a sampled one, else an
estimate; which there are says `table`. Costs are counted operations, never measured times, so the
same clique and budget always take the same path; a second is SPEED operations. The method and the
reason travel with the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from spklink.errors import SpklinkError
from spklink.memory import ALLOTMENT, GB
from spklink.posterior.inference import enumeration, table
from spklink.posterior.inference.beliefs import (
    BEYOND,
    CERTAINTIES,
    CERTIFIED,
    ESTIMATED,
    EXACT,
    Beliefs,
    Cost,
    Method,
    Piece,
    Proposal,
    proposals,
)
from spklink.posterior.inference.network import Network
from spklink.posterior.inference.roof import find_optimum
from spklink.posterior.inference.simplify import solve_in_pieces, with_ties

SPEED = 1e9  # operations a second, one core
WIDE = 0.05  # certified intervals wider than this anywhere are left for sampling to better
BOUNDING = 2000.0  # operations a pair of conversations: an optimum, and bounds on flips from it
REASONS = 3  # of the pieces of one clique, at most


@dataclass(frozen=True)
class Budget:
    """What one clique may cost."""

    seconds: float = 60.0
    gigabytes: float = 4.0

    def __post_init__(self) -> None:
        if not (self.seconds > 0.0 and self.gigabytes > 0.0):
            raise SpklinkError("--budget-seconds and --budget-gb must be positive numbers")

    def fits(self, cost: Cost) -> bool:
        operations, memory = cost
        return operations <= self.seconds * SPEED and memory <= self.gigabytes * 2**30


@dataclass(frozen=True)
class Solved:
    """Beliefs about a clique, and why this method gave them."""

    beliefs: Beliefs
    reason: str
    operations: float = 0.0  # predicted

    @property
    def seconds(self) -> float:
        return self.operations / SPEED


def small(method: str) -> int:
    """Open conversations up to which a piece is enumerated, with others, without being planned."""
    return enumeration.LIMIT if method in (table.AUTO, enumeration.NAME) else 1


def solve_network(
    network: Network,
    *,
    method: str = table.AUTO,
    budget: Budget | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Solved:
    """Solve one clique of any size."""
    table.check_name(method)
    network.check()
    planner = _Planner(budget or Budget(), seed, threads)
    reasons: dict[str, None] = {}  # in order, without repetition
    operations = 0.0

    def solve(piece: Network) -> Beliefs:
        nonlocal operations
        found = planner.solve(piece, method)
        reasons[found.reason] = None
        operations += found.operations
        return with_ties(piece, found.beliefs) if not piece.binary else found.beliefs

    beliefs = solve_in_pieces(network, solve, small=small(method))
    assert beliefs is not None  # every piece has an answer
    alone = f"pieces of at most {enumeration.LIMIT} open conversations"
    return Solved(beliefs, "; ".join(list(reasons)[:REASONS]) or alone, operations)


def solve_exact(network: Network, budget: Budget | None = None) -> Beliefs | None:
    """The posterior by exact methods alone, or None if it does not fit the budget."""
    network.check()
    planner = _Planner(budget or Budget(), 0, 1)

    def solve(piece: Network) -> Beliefs | None:
        found, _ = planner.exactly(planner.piece(piece))
        return None if found is None else with_ties(piece, found.beliefs)

    return solve_in_pieces(network, solve)


@dataclass(frozen=True)
class _Planner:
    """Solves connected pieces within a budget."""

    budget: Budget
    seed: int
    threads: int

    def solve(self, network: Network, method: str) -> Solved:
        if method != table.AUTO:
            return self._by_name(self.piece(network, by_name=True), table.load(method))
        piece = self.piece(network)
        found, why_not = self.exactly(piece)
        return found or self._inexact(piece, why_not)

    def piece(self, network: Network, *, by_name: bool = False) -> Piece:
        """A connected network, and what a method may use for it."""

        def part(inner: Network) -> Beliefs | None:
            def solve(piece: Network) -> Beliefs | None:
                found, _ = self.exactly(self.piece(piece))
                return None if found is None else found.beliefs

            return solve_in_pieces(inner, solve)

        return Piece(
            network=network,
            seed=self.seed,
            threads=self.threads,
            operations=self.budget.seconds * SPEED,
            by_name=by_name,
            optimum=cache(lambda: find_optimum(network, seed=self.seed)),
            solve=part,
        )

    def exactly(self, piece: Piece) -> tuple[Solved | None, str]:
        """The cheapest exact answer, and why there is none where there is none."""
        ways = [way for _, way in proposals(table.load_all(), piece, EXACT)]
        for way in sorted(filter(self._fits, ways), key=lambda way: way.cost[0]):
            found = self._run(way)
            if found is not None:
                return Solved(found, way.why, way.cost[0]), ""
        return None, " and ".join(dict.fromkeys(way.why for way in ways)) + " exceeds the budget"

    def _by_name(self, piece: Piece, method: Method) -> Solved:
        """What this method says, and no other."""
        proposal = method.propose(piece)
        cannot = f"method '{method.name}' cannot solve a piece of {len(piece)} open conversations"
        if proposal is None or proposal.cost == BEYOND:
            why = "too many" if proposal is None else proposal.why
            raise SpklinkError(f"{cannot} ({why}); use --method auto")
        if not self._fits(proposal):
            raise SpklinkError(
                f"{cannot} within the budget ({proposal.why}); use --method auto or a larger budget"
            )
        found = self._run(proposal)
        if found is None:
            raise SpklinkError(
                f"{cannot}: {proposal.silence}, the scores do not allow it; use --method auto"
            )
        if method.certainty == EXACT:
            return Solved(found, proposal.why, proposal.cost[0])
        return Solved(found, f"method '{method.name}' was asked for")

    def _inexact(self, piece: Piece, why_not: str) -> Solved:
        """Down from certified to estimated; wide bounds are better than an estimate."""
        bounds, operations = None, BOUNDING * len(piece.network.a)
        for method, way in proposals(table.load_all(), piece, *CERTAINTIES[1:]):
            if bounds is not None and method.certainty == ESTIMATED:
                break
            found = self._run(way) if self._fits(way) else None
            operations += way.cost[0] if self._fits(way) else 0.0
            if found is None:
                why_not += f"; {way.silence}"
            elif method.certainty == CERTIFIED and not _narrow(found):
                bounds, why_not = found, f"{why_not}; certified intervals are wide"
            else:
                return Solved(found, why_not, operations)
        if bounds is None:
            raise SpklinkError(f"no method solves a piece of {len(piece)} open conversations")
        return Solved(bounds, why_not, operations)

    def _run(self, way: Proposal) -> Beliefs | None:
        """Cliques that are solved side by side share the memory of one."""
        with ALLOTMENT.of(way.cost[1], self.budget.gigabytes * GB):
            return way.run()

    def _fits(self, way: Proposal) -> bool:
        return self.budget.fits(way.cost)


def _narrow(bounds: Beliefs) -> bool:
    return bool((bounds.one_high - bounds.one_low).max(initial=0.0) <= WIDE)

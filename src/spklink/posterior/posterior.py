"""The answer: who is on which channel, how sure, and by which method.

Bits as everywhere: 0 = as listed, 1 = exchanged. Arrays over conversations are in table order,
arrays over cliques in the order of their numbers. Every figure of a clique that was not solved
exactly has a low and a high end (module `inference.beliefs` says what they promise); where it was
solved exactly the two are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spklink.database.links import Links
from spklink.database.sides import squares, track_of
from spklink.errors import SpklinkError
from spklink.hands import Hands, Here
from spklink.posterior.inference.beliefs import EXACT
from spklink.posterior.inference.enumeration import LARGEST, LIMIT, NAME, enumerate_all, k_best
from spklink.posterior.inference.network import Network, Networks, condition, take
from spklink.posterior.inference.plan import Budget, Solved, small, solve_network
from spklink.posterior.inference.table import AUTO, check_name
from spklink.posterior.likelihood import Model, restrict

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
Tell = Callable[[int, int], None]  # hears (cliques done, cliques in all)
SEED_STRIDE = 1_000_003  # between the seeds of two runs
QUICK_SECONDS = 2.0  # a clique
PER_CLIQUE, PER_PAIR = 1e-3, 1e-5  # seconds of a core, roughly
MOST_TIES = 2**62  # counted: where nobody says anything there are two to the number of calls
SETTLED = 0.99  # a conversation whose low end is this probable, or more, counts as settled


@dataclass(frozen=True)
class Options:
    """How to solve cliques. The number of workers never changes an answer."""

    method: str = AUTO
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    workers: int = 1
    cluster: Hands | None = field(default=None, compare=False, repr=False)  # beside this machine

    def __post_init__(self) -> None:
        check_name(self.method)
        if self.workers < 1:
            raise SpklinkError("--workers must be 1 or more")

    @property
    def hands(self) -> Hands:
        """Whoever does the work."""
        return self.cluster or Here(self.workers)

    def quick(self) -> Options:
        """For a first look that is taken many times."""
        seconds = min(QUICK_SECONDS, self.budget.seconds)
        return replace(self, budget=Budget(seconds, self.budget.gigabytes))

    def as_json(self) -> dict[str, str | float]:
        """What an answer depends on; the number of workers is not among it."""
        return {
            "method": self.method,
            "budget_seconds": self.budget.seconds,
            "budget_gb": self.budget.gigabytes,
        }


@dataclass(frozen=True)
class Posterior:
    """The posterior of every clique of a database."""

    model: Model
    bits: Bits  # (M,) 0 or 1 where the channels were known beforehand, -1 elsewhere
    best: Bits  # (M,) the most probable joint configuration found
    proved: NDArray[np.bool_]  # (M,) the bit is the same in a proved optimum
    exchanged: Floats  # (M,) P(x = 1)
    exchanged_low: Floats
    exchanged_high: Floats
    both_exchanged: Floats  # (E,) P(x_i = x_j = 1) for the pairs of the model
    both_low: Floats
    both_high: Floats
    log_evidence_low: Floats  # (K,) log of the sum over configurations of prior x likelihood
    log_evidence_high: Floats
    best_value: Floats  # (K,) the term of the best configuration
    mirror_value: Floats  # (K,) the term of the best configuration with every bit turned
    entropy_low: Floats  # (K,) bits
    entropy_high: Floats
    ties: NDArray[np.int64]  # (K,) configurations within 1e-9 of the best; 0 where not counted
    method: NDArray[np.object_]  # (K,) text
    certainty: NDArray[np.object_]  # (K,) exact, certified, sampled or estimated
    reason: NDArray[np.object_]  # (K,) why this method
    seconds: Floats  # (K,) predicted, never measured

    @property
    def exact(self) -> NDArray[np.bool_]:
        """(K,) whether all figures of a clique are exact."""
        return np.asarray(self.certainty == EXACT, np.bool_)

    @property
    def log_evidence(self) -> Floats:
        """(K,) the middle of the interval; infinite or NaN where nothing is known."""
        with np.errstate(invalid="ignore"):
            return (self.log_evidence_low + self.log_evidence_high) / 2.0

    @property
    def entropy_bits(self) -> Floats:
        return (self.entropy_low + self.entropy_high) / 2.0

    def best_probability(self) -> tuple[Floats, Floats]:
        """(K,) low and high end of the joint probability of the best configuration."""
        return _ratio(self.best_value, self.log_evidence_low, self.log_evidence_high)

    def relative_probability(self) -> tuple[Floats, Floats]:
        """(K,) the same, together with the mirror image where a clique is unresolvable."""
        both = np.logaddexp(self.best_value, self.mirror_value)
        value = np.where(self._mirrored(), both, self.best_value)
        return _ratio(value, self.log_evidence_low, self.log_evidence_high)

    def _mirrored(self) -> NDArray[np.bool_]:
        """Unresolvable cliques in which nothing is known: their mirror image is as probable."""
        cliques = self.model.cliques
        known = np.bincount(cliques.label, self.bits >= 0, len(cliques)) > 0
        return np.asarray(~cliques.resolvable & ~known)

    def proved_optimal(self) -> NDArray[np.bool_]:
        """(K,) whether the best configuration is proved to be an optimum."""
        cliques = self.model.cliques
        return np.asarray(np.bincount(cliques.label, ~self.proved, len(cliques)) == 0)

    def confidence(self) -> tuple[Floats, Floats, Floats]:
        """(M,) marginal probability of what `best` says of a conversation; its low and high end."""
        turned = self.best == 1
        return (
            np.where(turned, self.exchanged, 1.0 - self.exchanged),
            np.where(turned, self.exchanged_low, 1.0 - self.exchanged_high),
            np.where(turned, self.exchanged_high, 1.0 - self.exchanged_low),
        )

    def settled(self) -> NDArray[np.bool_]:
        """(M,) conversations that need no further listening."""
        return np.asarray(self.confidence()[1] >= SETTLED)

    def best_configurations(self, clique: int, k: int) -> tuple[Bits, Floats]:
        """The k most probable configurations of a clique: (k, size) bits, (k,) probabilities."""
        networks = take(condition(self.model, self.bits), np.array([clique]))
        members = self.model.cliques.members(clique)
        if len(networks.field) > LARGEST:
            raise SpklinkError(
                f"clique {clique + 1} has {len(networks.field)} open conversations; its best "
                f"configurations are listed up to {LARGEST}"
            )
        bits, log_probability = k_best(networks.one(0), k)
        full = np.repeat(self.bits[members][None, :], len(bits), axis=0)
        full[:, self.bits[members] < 0] = bits
        return full, np.exp(log_probability)

    def candidate_probabilities(self, links: Links) -> Floats:
        """(C,) how probable each candidate of every link (module `links`) is its speaker twice."""
        both = self.both_exchanged[links.pair]
        i = self.exchanged[links.first[links.pair]]
        j = self.exchanged[links.second[links.pair]]
        table = np.stack([1.0 - i - j + both, j - both, i - both, both], axis=1)
        table = squares(np.clip(table, 0.0, 1.0))
        rows = np.arange(len(table))[:, None, None]
        # Whose bits put the speaker on tracks u and v: a track and a bit change places here.
        x = track_of(links.position_first[:, None, None], np.array([[0], [1]], np.int8))
        y = track_of(links.position_second[:, None, None], np.array([[0, 1]], np.int8))
        return np.asarray(table[rows, x, y]).ravel()

    def given(self, channels: Mapping[int, int], *, options: Options | None = None) -> Posterior:
        """The posterior once more conversations are known: {conversation: 0 or 1}.

        Only the cliques that these conversations belong to are solved again.
        """
        bits = self.bits.copy()
        bits[list(channels)] = list(channels.values())
        cliques = self.model.cliques
        touched = np.zeros(len(cliques), np.bool_)
        touched[cliques.label[bits != self.bits]] = True
        part, calls = restrict(self.model, touched)
        fresh = solve(part, bits[calls], options=options)
        where = {
            CALLS: calls,
            PAIRS: np.flatnonzero(touched[cliques.label[self.model.first]]),
            CLIQUES: np.flatnonzero(touched),
        }
        arrays = {}
        for name, kind in KIND.items():
            arrays[name] = getattr(self, name).copy()
            arrays[name][where[kind]] = getattr(fresh, name)
        return Posterior(model=self.model, **arrays)

    def of_clique(self, k: int) -> Posterior:
        """The posterior of one clique alone."""
        only = np.arange(len(self.model.cliques)) == k
        part, calls = restrict(self.model, only)
        pairs = np.flatnonzero(only[self.model.cliques.label[self.model.first]])
        where = {CALLS: calls, PAIRS: pairs, CLIQUES: np.array([k])}
        return Posterior(
            model=part, **{name: getattr(self, name)[where[kind]] for name, kind in KIND.items()}
        )


CALLS, PAIRS, CLIQUES = "calls", "pairs", "cliques"
KIND = {
    **dict.fromkeys(("bits", "best", "proved"), CALLS),
    **dict.fromkeys(("exchanged", "exchanged_low", "exchanged_high"), CALLS),
    **dict.fromkeys(("both_exchanged", "both_low", "both_high"), PAIRS),
    **dict.fromkeys(("log_evidence_low", "log_evidence_high"), CLIQUES),
    **dict.fromkeys(("best_value", "mirror_value", "entropy_low", "entropy_high"), CLIQUES),
    **dict.fromkeys(("ties", "method", "certainty", "reason", "seconds"), CLIQUES),
}


def solve(
    model: Model,
    bits: Bits | None = None,
    *,
    options: Options | None = None,
    tell: Tell | None = None,
) -> Posterior:
    """Posterior of every clique; `bits` (≥ 0) fixes further conversations."""
    chosen = options or Options()
    networks = condition(model, bits)
    at_once = networks.sizes() <= small(chosen.method)
    draft = _Draft(model, networks)
    draft.store_enumerated(np.flatnonzero(at_once))
    jobs = [(int(k), networks.one(int(k))) for k in np.flatnonzero(~at_once)]
    for done, (k, solved) in enumerate(_run(jobs, chosen), start=1):
        draft.store(k, solved)
        if tell is not None:
            tell(done, len(jobs))
    return draft.posterior()


def _run(jobs: list[tuple[int, Network]], options: Options) -> Iterator[tuple[int, Solved]]:
    """Solve cliques one by one or side by side; always in the same order."""
    seconds = sum(PER_CLIQUE + PER_PAIR * len(network.coupling) for _, network in jobs)
    hands = options.hands.worth(seconds if len(jobs) > 1 else 0.0)
    threads = hands.count if len(jobs) == 1 else 1
    one = partial(_solve_one, replace(options, workers=threads, cluster=None))
    yield from hands.each(one, jobs)


def _solve_one(options: Options, job: tuple[int, Network]) -> tuple[int, Solved]:
    k, network = job
    try:
        return k, solve_network(
            network,
            method=options.method,
            budget=options.budget,
            seed=options.seed * SEED_STRIDE + k,  # cliques that shared them would err together
            threads=options.workers,
        )
    except SpklinkError as error:
        raise SpklinkError(f"clique {k + 1}: {error}") from None


def _ratio(value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """exp(value - log_sum) for both ends of log_sum, as probabilities."""
    return np.exp(np.minimum(value - high, 0.0)), np.exp(np.minimum(value - low, 0.0))


class _Draft:
    """The arrays of a posterior while its cliques are being solved."""

    def __init__(self, model: Model, networks: Networks) -> None:
        self.model, self.networks = model, networks
        calls, pairs, cliques = len(model.field), len(model.first), len(networks)
        self.best, self.proved = np.maximum(networks.bits, 0), np.ones(calls, np.bool_)
        self.one = [np.maximum(networks.bits, 0).astype(np.float64) for _ in range(3)]
        self.both = [np.full(pairs, np.nan) for _ in range(3)]
        self.log_sum, self.entropy = np.zeros((2, cliques)), np.zeros((2, cliques))
        self.value, self.mirror = np.zeros(cliques), np.zeros(cliques)
        self.ties, self.seconds = np.zeros(cliques, np.int64), np.zeros(cliques)
        self.method, self.certainty, self.reason = (np.full(cliques, "", object) for _ in range(3))

    def store_enumerated(self, chosen: NDArray[np.int64]) -> None:
        part = take(self.networks, chosen)
        found = enumerate_all(part)
        self.best[part.node] = found.best
        for array in self.one:
            array[part.node] = found.one
        for array in self.both:
            array[part.edge] = found.both
        self.log_sum[:, chosen] = found.log_sum
        self.entropy[:, chosen] = np.maximum(found.entropy, 0.0)
        self.value[chosen], self.mirror[chosen] = found.best_value, found.mirror_value
        self.ties[chosen] = found.ties
        self.method[chosen], self.certainty[chosen] = NAME, EXACT
        self.reason[chosen] = f"at most {LIMIT} open conversations"

    def store(self, k: int, solved: Solved) -> None:
        networks, found = self.networks, solved.beliefs
        nodes = networks.node[networks.node_start[k] : networks.node_start[k + 1]]
        edges = networks.edge[networks.edge_start[k] : networks.edge_start[k + 1]]
        self.best[nodes], self.proved[nodes] = found.best, found.proved
        for array, new in zip(self.one, (found.one, found.one_low, found.one_high), strict=True):
            array[nodes] = new
        for array, new in zip(
            self.both, (found.both, found.both_low, found.both_high), strict=True
        ):
            array[edges] = new
        self.log_sum[:, k], self.entropy[:, k] = found.log_sum, found.entropy
        network = networks.one(k)
        self.value[k] = network.value(found.best)
        self.mirror[k] = network.value(1 - found.best)
        self.ties[k] = min(found.ties or 0, MOST_TIES)
        self.method[k], self.certainty[k] = found.method, found.certainty
        self.reason[k], self.seconds[k] = solved.reason, solved.seconds

    def posterior(self) -> Posterior:
        i, j = self.model.first, self.model.second
        for both, one in zip(self.both, self.one, strict=True):
            known = np.isnan(both)  # pairs with an end that was known
            both[known] = one[i[known]] * one[j[known]]
        return Posterior(
            model=self.model,
            bits=self.networks.bits,
            best=self.best,
            proved=self.proved,
            exchanged=self.one[0],
            exchanged_low=self.one[1],
            exchanged_high=self.one[2],
            both_exchanged=self.both[0],
            both_low=self.both[1],
            both_high=self.both[2],
            log_evidence_low=self.log_sum[0],
            log_evidence_high=self.log_sum[1],
            best_value=self.value,
            mirror_value=self.mirror,
            entropy_low=self.entropy[0] / np.log(2.0),
            entropy_high=self.entropy[1] / np.log(2.0),
            ties=self.ties,
            method=self.method,
            certainty=self.certainty,
            reason=self.reason,
            seconds=self.seconds,
        )

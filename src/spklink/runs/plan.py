"""What listening to a clique would tell: bits, conversations settled, listens still to go.

Where a clique is small, or falls into small pieces once its sure conversations are taken as they
are, all listens until the end are looked at (`posterior.listens`). Larger pieces are looked at one
listen ahead, and how many listens they take is only bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spklink.posterior.answer import Answer
from spklink.posterior.inference.network import Network, Networks, condition, split
from spklink.posterior.listens import NEVER, affordable, fewest, joint_of
from spklink.posterior.posterior import Posterior
from spklink.posterior.states.listing import MOST, Listing, listed, state_count
from spklink.posterior.states.seats import fix
from spklink.runs.part import Part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SMALL = 12  # conversations of a clique that is looked at as a whole
SURE = 0.9999  # conversations of a larger one that are taken as they are
MOST_STATES = 100  # probable ones of one conversation


@dataclass(frozen=True)
class Plan:
    """What listening to each conversation (n,) of some cliques (K,) would do."""

    open: Mask  # (n,) not certain enough
    bits: Floats  # (n,) that hearing it tells
    settles: Floats  # (n,) conversations that it is expected to make certain enough, and itself
    first: Floats  # (n,) listens expected for its piece where it is heard first; infinite: unknown
    listens: Floats  # (2, K) expected for all of a clique: low and high end
    exact: Mask  # (K,) whether that is so, and not taken from parts
    entropy: Floats  # (2, K) bits of all together: low and high end


def plan(part: Part, certainty: float) -> Plan:
    """By the posterior of cliques, until every conversation has this probability."""
    sure, label, cliques = figures(part)[1], part.label, len(part.evidence.cliques)
    open_, bits = sure < certainty, marginal_bits(part)
    listens, entropy = np.zeros((2, 2, cliques))
    if part.answer.binary:
        entropy[:] = part.answer.bits.entropy_low, part.answer.bits.entropy_high
    else:
        np.maximum.at(entropy[0], label, bits)
        np.add.at(entropy[1], label, bits)
    n, unknown = len(open_), np.full(len(open_), np.inf)
    exact = part.evidence.cliques.size <= SMALL
    found = Plan(open_, bits, open_.astype(np.float64), unknown, listens, exact, entropy)
    asked = np.bincount(label, open_, cliques) > 0
    exact |= ~asked
    kept = asked[label] & (exact[label] | (sure < SURE))
    if n and kept.any():
        _pieces(part, found, kept, certainty)
    return found


def _pieces(part: Part, found: Plan, kept: Mask, certainty: float) -> None:
    """Piece by piece of what is not taken as it is."""
    nodes, network = _network(part, kept)
    bits, whole = np.zeros(len(found.exact)), not part.answer.binary
    if network is None:
        return _bound(part, found, nodes)
    pieces = split(network)
    for k in range(len(pieces)):
        own = nodes[pieces.node[pieces.node_start[k] : pieces.node_start[k + 1]]]
        clique = part.label[own[0]]
        if not found.open[own].any():
            bits[clique] += found.bits[own].sum()
        elif not affordable(pieces.one(k).size):
            _bound(part, found, own)
        else:
            listens = fewest(joint_of(pieces.one(k)), certainty)
            found.bits[own], found.settles[own] = listens.entropy, listens.settled
            found.first[own] = listens.first
            found.listens[:, clique] += listens.expected
            bits[clique] += listens.joint_entropy
    if whole:
        seen = np.zeros(len(found.exact), np.bool_)
        seen[part.label[nodes]] = True
        found.entropy[:, seen & found.exact] = bits[seen & found.exact]


def _bound(part: Part, found: Plan, own: Ints) -> None:
    """Of what cannot be looked at until the end: one listen at least, at most one each."""
    count = np.bincount(part.label[own], found.open[own], len(found.exact))
    found.listens[0] += np.minimum(count, 1.0)
    found.listens[1] += count
    found.exact[count > 0] = False


def _network(part: Part, kept: Mask) -> tuple[Ints, Network | None]:
    """The conversations that are kept, and how they hang together given the others."""
    if part.answer.binary:
        return _of_bits(part.answer.bits, kept)
    return _of_seats(part.answer, kept)


def _of_bits(posterior: Posterior, kept: Mask) -> tuple[Ints, Network]:
    bits = np.where(kept, posterior.bits, posterior.best)
    networks = condition(posterior.model, bits)
    return networks.node, _together(networks)


def _together(networks: Networks) -> Network:
    """All cliques as one, which falls into pieces again."""
    first = np.repeat(networks.node_start[:-1], np.diff(networks.edge_start)).astype(np.int32)
    a, b = networks.a + first, networks.b + first
    return Network(networks.field, a, b, networks.coupling, 0.0)


def _of_seats(answer: Answer, kept: Mask) -> tuple[Ints, Network | None]:
    nodes, seats = np.flatnonzero(kept), answer.seats
    layout = seats.layout
    shapes = zip(layout.people[nodes].tolist(), layout.tracks[nodes].tolist(), strict=True)
    if answer.split is not None or any(state_count(*shape) > MOST for shape in set(shapes)):
        return nodes, None
    part, entries = fix(seats, answer.beliefs.place, kept)
    probable = _probable(listed(part, apart=True), answer, entries)
    if (np.diff(probable.start) > MOST_STATES).any():
        return nodes, None
    return nodes, probable.network()[0]


def _probable(listing: Listing, answer: Answer, entries: Ints) -> Listing:
    """Without states that are less probable than NEVER, as is the place of somebody in them."""
    seats, places = listing.seats, listing.places
    node = np.repeat(np.arange(len(seats)), np.diff(listing.start))
    most = np.ones(len(node))
    for p in range(places.shape[1]):
        here = np.flatnonzero(p < seats.layout.people[node])
        entry = entries[seats.person_start[node[here]] + p]
        chance = answer.beliefs.guess[answer.seats.place_start[entry] + places[here, p]]
        most[here] = np.minimum(most[here], chance)
    best = np.zeros(len(seats))
    np.maximum.at(best, node, most)
    kept = (most >= NEVER) | (most == best[node])
    start = np.concatenate([[0], np.cumsum(np.bincount(node[kept], minlength=len(seats)))])
    return replace(listing, start=start, which=listing.which[kept], unary=listing.unary[kept])


def figures(part: Part) -> tuple[Floats, Floats, Floats]:
    """(n,) how probable what is said of a conversation is, with both ends: of the answer in full,
    that of its least certain usable track."""
    if part.answer.binary:
        return part.answer.bits.confidence()
    sides, sure = part.table.sides, part.answer.confidence
    low = np.where(part.usable, sure.low, 2.0)  # what cannot be heard is not waited for
    order = np.lexsort((low, sides.conversation))
    worst = order[sides.start[:-1]]
    silent = ~part.usable[worst]
    found = sure[worst]
    one, two, three = (np.where(silent, 0.0, x) for x in (found.chance, found.low, found.high))
    return one, two, three


def marginal_bits(part: Part) -> Floats:
    """(n,) bits of every conversation by itself; in full no less than of any person in it."""
    if part.answer.binary:
        p = part.answer.bits.exchanged
        return np.asarray(_entropy(np.stack([p, 1.0 - p])).sum(axis=0))
    seats, beliefs = part.answer.seats, part.answer.beliefs
    of_place = _entropy(beliefs.guess[: int(seats.place_start[-1])])
    found = np.zeros(len(seats))
    if len(seats.node):
        of_person = np.add.reduceat(of_place, seats.place_start[:-1])
        np.maximum.at(found, seats.node, of_person)
    return found


def _entropy(p: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where((p > 0.0) & (p < 1.0), -p * np.log2(p), 0.0))

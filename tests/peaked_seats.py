"""Small databases with a truth that scores tell, and all of their states in one array."""

import numpy as np

from random_seats import as_table
from spklink.database.links import find_links, needed_sides
from spklink.posterior.states.listing import all_states

MOST = 4e5  # states of everything that are written down
NAMED = {"calls": (4, 7), "short": (3, 6), "meetings": (3, 5)}


def peaked_case(seed):
    """(table, links, llr of the needed side pairs, rate of list errors)."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(NAMED)))
    pool = int(rng.integers(3 if kind == "meetings" else 2, 6))
    maybe = rng.random() < 0.3
    calls, truth = [], []
    for _ in range(int(rng.integers(*NAMED[kind]))):
        tracks = {"calls": 2, "short": rng.integers(1, 3), "meetings": rng.integers(2, 4)}[kind]
        named = 2 if kind == "calls" else int(rng.integers(1, min(int(tracks) + 1, pool) + 1))
        who = rng.choice(pool, named, replace=False)
        unsure = [k >= tracks or (maybe and rng.random() < 0.4) for k in range(named)]
        presence = [float(rng.uniform(0.2, 0.9)) if some else None for some in unsure]
        people = [f"p{s}" for s in who]
        calls.append({"people": people, "presence": presence, "tracks": int(tracks), "unknown": 0})
        truth.append(dict(zip(rng.permutation(int(tracks)).tolist(), who.tolist(), strict=False)))
    table = as_table(calls)
    links = find_links(table)
    llr = _scores(table, links, truth, rng)
    return table, links, llr, float(rng.choice([0.0, 1e-4, 0.01, 0.01, 0.05, 0.2]))


def _scores(table, links, truth, rng):
    one, two = needed_sides(links, table.sides)
    sides = table.sides

    def speaker(side):
        return truth[sides.conversation[side]].get(int(sides.position[side]), -1 - int(side))

    same = np.array([speaker(a) == speaker(b) for a, b in zip(one, two, strict=True)], bool)
    mean = float(rng.choice([1.0, 2.2, 4.36, 8.0, 14.0]))
    noise = float(rng.choice([0.3, 1.0, 1.0, 1.5])) * np.sqrt(2.0 * mean)
    return np.where(same, mean, -mean) + noise * rng.normal(size=len(one))


def states_of(seats):
    """The states of every conversation."""
    shapes = zip(seats.layout.people.tolist(), seats.layout.tracks.tolist(), strict=True)
    return [all_states(p, k) for p, k in shapes]


def every_state(seats):
    """Probabilities of all events, log of the sum, and the largest value; None if too many."""
    states, n = states_of(seats), len(seats)
    if np.prod([float(len(own)) for own in states]) > MOST:
        return None
    total = np.zeros([len(own) for own in states])
    for i, own in enumerate(states):
        shape = [1] * n
        shape[i] = -1
        total = total + _own_values(seats, i, own).reshape(shape)
    for m in range(len(seats.first)):
        total = total + _link(seats, states, m)
    top = total.max()
    weight = np.exp(total - top)
    whole, constant = weight.sum(), seats.constant.sum()
    return _events(seats, states, weight / whole), top + np.log(whole) + constant, top + constant


def _own_values(seats, i, own):
    seat, count = seats.layout.seats(seats.seat, i), seats.layout.counts(seats.count, i)
    tracks, values = seats.layout.tracks[i], np.zeros(len(own))
    for z, state in enumerate(own):
        there = np.flatnonzero(state < tracks)
        values[z] = count[len(there)] + seat[there, state[there]].sum()
    return values


def _link(seats, states, m):
    e, f = seats.first[m], seats.second[m]
    a, b = seats.node[e], seats.node[f]
    rows, columns = seats.layout.tracks[a], seats.layout.tracks[b]
    table = np.zeros((rows + 1, columns + 1))
    llr = seats.llr[seats.offset[m] : seats.offset[m] + rows * columns]
    table[:rows, :columns] = seats.weight[m] * llr.reshape(rows, columns)
    x, y = states[a][:, e - seats.person_start[a]], states[b][:, f - seats.person_start[b]]
    shape = [1] * len(seats)
    shape[a], shape[b] = len(x), len(y)
    return table[np.ix_(x, y)].reshape(shape)


def _events(seats, states, chance):
    place, stranger, right = [], [], []
    for i, own in enumerate(states):
        alone = chance.sum(axis=tuple(j for j in range(len(states)) if j != i))
        tracks = int(seats.layout.tracks[i])
        for p in range(own.shape[1]):
            place += [alone[own[:, p] == k].sum() for k in range(tracks + 1)]
        stranger += [alone[~(own == k).any(axis=1)].sum() for k in range(tracks)]
        certain = seats.certain[seats.person_start[i] : seats.person_start[i + 1]]
        right.append(alone[~((own == tracks) & certain).any(axis=1)].sum())
    return np.array(place + stranger + right)

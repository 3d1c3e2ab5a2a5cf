"""A chain of partitions whose share of time is the posterior: its steps.

Two kinds of steps, both leaving the posterior as it is:
    one item   taken out and put into a block, or a new one, in proportion to what that gives
    split or   two items are drawn. In one block: it is split, the others going to either by turns,
    merge      in proportion to what that gives so far. In two: these are merged. Accepted by the
               ratio of the posteriors and of the ways there and back (Dahl 2005).
Which two items are drawn never depends on the partition. Items that may not be together never are.
"""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True)
def value_of(n, pairs, weight, prior):  # type: ignore[no-untyped-def]
    return weight[n] * pairs + prior[n]


@nb.njit(cache=True, nogil=True)
def begin(label, size, inside, between, apart, count, pairs, along, conflicts):  # type: ignore[no-untyped-def]
    """Fill what is kept of every block: sides, sum over its pairs, and of every item with it the
    sum over the pairs across and how many of it may not be together with that item."""
    items = len(label)
    count[:], pairs[:] = 0, 0.0
    along[:], conflicts[:] = 0.0, 0
    for i in range(items):
        b = label[i]
        count[b] += size[i]
        pairs[b] += inside[i] + along[b, i]
        for j in range(items):
            along[b, j] += between[i, j]
            conflicts[b, j] += apart[i, j]


@nb.njit(cache=True, nogil=True)
def _move(i, b, sign, size, inside, between, apart, count, pairs, along, conflicts):  # type: ignore[no-untyped-def]
    """Put item i into block b (sign 1), or take it out (-1)."""
    if sign > 0:
        pairs[b] += inside[i] + along[b, i]
    else:
        pairs[b] -= inside[i] + along[b, i]
    count[b] += sign * size[i]
    for j in range(len(size)):
        along[b, j] += sign * between[i, j]
        conflicts[b, j] += sign * apart[i, j]


@nb.njit(cache=True, nogil=True)
def _empty(count):  # type: ignore[no-untyped-def]
    for b in range(len(count)):
        if count[b] == 0:
            return b
    return -1


@nb.njit(cache=True, nogil=True)
def one_by_one(rng, label, blocks, tables, state):  # type: ignore[no-untyped-def]
    """Every item once, in a random order; the number of blocks comes back."""
    size, inside, between, apart, weight, prior, numbers = tables
    count, pairs, along, conflicts = state
    items = len(label)
    choice, gain = np.empty(items + 1, np.int64), np.empty(items + 1)
    for i in _shuffled(rng, np.arange(items)):
        own, found = label[i], 0
        alone = count[own] == size[i]
        others = blocks - 1 if alone else blocks  # blocks without item i
        for b in range(items):
            n = count[b] - (size[i] if b == own else 0)
            if n == 0 or conflicts[b, i] > 0:
                continue
            x = pairs[b] - (inside[i] + along[b, i] if b == own else 0.0)
            joined = value_of(n + size[i], x + inside[i] + along[b, i], weight, prior)
            choice[found], gain[found] = b, joined - value_of(n, x, weight, prior) + numbers[others]
            found += 1
        choice[found] = own if alone else -1
        gain[found] = value_of(size[i], inside[i], weight, prior) + numbers[others + 1]
        picked = choice[_picked(rng, gain[: found + 1])]
        if picked == own:
            continue
        _move(i, own, -1, size, inside, between, apart, count, pairs, along, conflicts)
        picked = _empty(count) if picked < 0 else picked
        _move(i, picked, 1, size, inside, between, apart, count, pairs, along, conflicts)
        blocks = others + (1 if count[picked] == size[i] else 0)
        label[i] = picked
    return blocks


@nb.njit(cache=True, nogil=True)
def _shuffled(rng, values):  # type: ignore[no-untyped-def]
    """In a random order. (The generator's own way takes a minute to compile.)"""
    for k in range(len(values) - 1, 0, -1):
        other = int(rng.random() * (k + 1))
        values[k], values[other] = values[other], values[k]
    return values


@nb.njit(cache=True, nogil=True)
def _picked(rng, gain):  # type: ignore[no-untyped-def]
    """One of these, in proportion to exp(gain)."""
    most = gain.max()
    chance = np.exp(gain - most)
    wanted, total = rng.random() * chance.sum(), 0.0
    for k in range(len(gain)):
        total += chance[k]
        if total > wanted:
            return k
    return int(gain.argmax())


@nb.njit(cache=True, nogil=True)
def _divide(rng, order, i, j, wanted, tables, side, sums):  # type: ignore[no-untyped-def]
    """The log-probability of dividing `order` between items i and j as `wanted` says (0, 1), or by
    chance where that is empty; -inf where it cannot be done. `side` is the outcome, `sums` are
    sides and pairs of both parts."""
    size, inside, between, apart, weight, prior, _ = tables
    n, x = np.array([size[i], size[j]]), np.array([inside[i], inside[j]])
    log_chance = 0.0
    with_part, clash = np.empty((2, len(order))), np.zeros((2, len(order)), np.bool_)
    for k in range(len(order)):
        with_part[0, k], with_part[1, k] = between[order[k], i], between[order[k], j]
        clash[0, k], clash[1, k] = apart[order[k], i], apart[order[k], j]
    gain = np.empty(2)
    for k in range(len(order)):
        item = order[k]
        for part in range(2):
            joined = x[part] + inside[item] + with_part[part, k]
            gain[part] = value_of(n[part] + size[item], joined, weight, prior)
            gain[part] -= value_of(n[part], x[part], weight, prior)
            if clash[part, k]:
                gain[part] = -np.inf
        if gain[0] == -np.inf and gain[1] == -np.inf:
            return -np.inf
        # Even chances mixed in: no way back is out of reach.
        first = 1.0 / (1.0 + np.exp(min(max(gain[1] - gain[0], -700.0), 700.0)))
        if gain[0] > -np.inf and gain[1] > -np.inf:
            first = 0.98 * first + 0.01
        part = wanted[k] if len(wanted) else (0 if rng.random() < first else 1)
        if gain[part] == -np.inf:
            return -np.inf
        log_chance += np.log(first if part == 0 else 1.0 - first)
        side[k] = part
        x[part] += inside[item] + with_part[part, k]
        n[part] += size[item]
        for later in range(k + 1, len(order)):
            with_part[part, later] += between[item, order[later]]
            clash[part, later] |= apart[item, order[later]]
    sums[0], sums[1], sums[2], sums[3] = n[0], x[0], n[1], x[1]
    return log_chance


@nb.njit(cache=True, nogil=True)
def split_or_merge(rng, i, j, label, blocks, tables, state):  # type: ignore[no-untyped-def]
    """One proposal about items i and j; the number of blocks comes back."""
    _, _, _, apart, weight, prior, numbers = tables
    count, pairs, along, conflicts = state
    a, b = label[i], label[j]
    if apart[i, j]:
        return blocks
    members = np.flatnonzero((label == a) | (label == b))
    order = _shuffled(rng, members[(members != i) & (members != j)])
    side, sums = np.zeros(len(order), np.int64), np.zeros(4)
    if a == b:
        chance = _divide(rng, order, i, j, side[:0], tables, side, sums)
        if chance == -np.inf:
            return blocks
        apart_value = value_of(int(sums[0]), sums[1], weight, prior)
        apart_value += value_of(int(sums[2]), sums[3], weight, prior)
        whole = value_of(count[a], pairs[a], weight, prior)
        accept = apart_value - whole + numbers[blocks + 1] - numbers[blocks] - chance
        if np.log(rng.random()) < accept:
            new = _empty(count)
            for k in range(len(order)):
                if side[k] == 1:
                    _give(order[k], a, new, label, tables, state)
            _give(j, a, new, label, tables, state)
            return blocks + 1
        return blocks
    across = 0.0
    for item in members:
        if label[item] == b:
            if conflicts[a, item] > 0:
                return blocks
            across += along[a, item]
    wanted = (label[order] == b).astype(np.int64)
    chance = _divide(rng, order, i, j, wanted, tables, side, sums)
    whole = value_of(count[a] + count[b], pairs[a] + pairs[b] + across, weight, prior)
    apart_value = value_of(count[a], pairs[a], weight, prior)
    apart_value += value_of(count[b], pairs[b], weight, prior)
    accept = whole - apart_value + numbers[blocks - 1] - numbers[blocks] + chance
    if np.log(rng.random()) < accept:
        for item in members:
            if label[item] == b:
                _give(item, b, a, label, tables, state)
        return blocks - 1
    return blocks


@nb.njit(cache=True, nogil=True)
def _give(item, a, b, label, tables, state):  # type: ignore[no-untyped-def]
    size, inside, between, apart, _, _, _ = tables
    count, pairs, along, conflicts = state
    _move(item, a, -1, size, inside, between, apart, count, pairs, along, conflicts)
    _move(item, b, 1, size, inside, between, apart, count, pairs, along, conflicts)
    label[item] = b


@nb.njit(cache=True, nogil=True)
def sweep(rng, sweeps, near, label, blocks, tables, state):  # type: ignore[no-untyped-def]
    """So many rounds: every item once, then as many splits and merges as a tenth of the items. Of
    the second item of such a step `near` (I, m) has some that are close, drawn half of the time."""
    items = len(label)
    for _ in range(sweeps):
        blocks = one_by_one(rng, label, blocks, tables, state)
        for _ in range(max(2, items // 10) if items > 1 else 0):
            i = int(rng.random() * items)
            j = near[i, int(rng.random() * near.shape[1])] if rng.random() < 0.5 else i
            while j == i:
                j = int(rng.random() * items)
            blocks = split_or_merge(rng, i, j, label, blocks, tables, state)
    return blocks


@nb.njit(cache=True, nogil=True)
def add_pairs(label, together, alone):  # type: ignore[no-untyped-def]
    """Count the pairs that are together, and the items that are alone."""
    items = len(label)
    members, used = np.empty(items, np.int64), np.zeros(items, np.bool_)
    for i in range(items):
        if used[label[i]]:
            continue
        used[label[i]] = True
        count = 0
        for j in range(i, items):
            if label[j] == label[i]:
                members[count] = j
                count += 1
        if count == 1:
            alone[i] += 1
        for x in range(count):
            for y in range(x + 1, count):
                together[members[x], members[y]] += 1

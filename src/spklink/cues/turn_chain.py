"""The turns of one option as a chain: kernels of the model of turns.

A turn is right or given to somebody else; the next one is so too with the rate `stays`, else it is
drawn anew. Right or not, a turn may be worth nothing (`odd`), and then its value is as at a random
place. All likelihoods are against values at random places, which are normal with variance `chance`.

rows = turns under one option of their voter, in order of time; columns = offsets. The rows of
option o are start[o] up to below start[o + 1]. A model is (mean, other, stays).
"""

import math

import numba as nb
import numpy as np

OWN, GIVEN, ODD = 0, 3, 6  # where sums begin: weight, weight x value, weight x value²; ODD: weight
SUMS = 7
LARGEST = 600.0  # exponent
LEAST = 1e-9  # weight of an option and offset that is added up


@nb.njit(cache=True, nogil=True)
def turn_values(total, begin, end, turn, shift, value, square, length):  # type: ignore[no-untyped-def]
    """From what a track adds up to (tracks, steps + 1), and the parts of turns, in steps: value
    (tracks, turns, offsets), the means of turns for every shift; square (tracks, turns), the mean
    square at all places of as many steps; length (turns,) in steps."""
    last = total.shape[1] - 1
    for i in range(len(begin)):
        length[turn[i]] += end[i] - begin[i]
        for k in range(len(total)):
            for t in range(len(shift)):
                low = min(max(begin[i] + shift[t], 0), last)
                high = min(max(end[i] + shift[t], 0), last)
                value[k, turn[i], t] += total[k, high] - total[k, low]
    for n in range(len(length)):
        window = min(length[n], last)
        for k in range(len(total)):
            for t in range(len(shift)):
                value[k, n, t] /= length[n]
            added = 0.0
            for at in range(last + 1 - window):
                added += (total[k, at + window] - total[k, at]) ** 2
            square[k, n] = added / (last + 1 - window) / length[n] ** 2


@nb.njit(cache=True, nogil=True, inline="always")
def _against(value, mean, variance, chance):  # type: ignore[no-untyped-def]
    """Density of a value if the turn is right, and if it is given away, against that at a random
    place."""
    scale, here = math.sqrt(chance / variance), value * value / chance
    up = 0.5 * (here - (value - mean) ** 2 / variance)
    down = 0.5 * (here - (value + mean) ** 2 / variance)
    return scale * math.exp(min(up, LARGEST)), scale * math.exp(min(down, LARGEST))


@nb.njit(cache=True, nogil=True)
def likelihoods(value, variance, chance, odd, start, model, wanted, found, anybody):  # type: ignore[no-untyped-def]
    """(options, offsets) log-likelihoods, where they are wanted; forwards along the chain. And the
    same if each turn were as likely anybody else's: values are of two kinds there, too."""
    mean, other, stays = model
    for o in range(len(start) - 1):
        for t in range(value.shape[1]):
            if not wanted[o, t]:
                continue
            right, given, total, either = 1.0 - other, other, 0.0, 0.0
            product, product_either = 1.0, 1.0  # their logarithms are taken now and then
            for k in range(start[o], start[o + 1]):
                if k > start[o]:
                    right = stays * right + (1.0 - stays) * (1.0 - other)
                    given = stays * given + (1.0 - stays) * other
                own = 1.0 - odd[k]
                one, two = _against(value[k, t], mean, variance[k], chance[k])
                one, two = own * one + odd[k], own * two + odd[k]
                right, given = right * one, given * two
                scale = right + given
                right, given = right / scale, given / scale
                product *= scale
                product_either *= 0.5 * (one + two)
                if not 1e-20 < product < 1e20 or not 1e-20 < product_either < 1e20:
                    total, either = total + math.log(product), either + math.log(product_either)
                    product, product_either = 1.0, 1.0
            found[o, t] = total + math.log(product)
            anybody[o, t] = either + math.log(product_either)


@nb.njit(cache=True, nogil=True)
def expected(value, variance, chance, odd, start, model, weight, sums, drawn):  # type: ignore[no-untyped-def]
    """Add up what each turn was expected to be, given the (options, offsets) weights: sums (rows,
    SUMS), and drawn: turns drawn anew as right, as given away, all but the first of a chain, and
    how many of these there are at all."""
    _, other, stays = model
    longest = 0
    for o in range(len(start) - 1):
        longest = max(longest, start[o + 1] - start[o])
    kept, own, away = np.empty((longest, 2)), np.empty((longest, 2)), np.empty((longest, 3))
    for o in range(len(start) - 1):
        first, count = start[o], start[o + 1] - start[o]
        for t in range(value.shape[1]):
            if weight[o, t] < LEAST:
                continue
            _forwards(value[first:, t], variance[first:], chance[first:], odd[first:], model,
                      count, kept, own, away)  # fmt: skip
            behind, after = 1.0, 1.0  # what follows, if this turn is right, if it is given away
            for k in range(count - 1, -1, -1):
                w, v, row = weight[o, t], value[first + k, t], sums[first + k]
                p, q = w * kept[k, 0] * behind, w * kept[k, 1] * after
                a, b = p * own[k, 0], q * own[k, 1]
                row[OWN] += a
                row[OWN + 1] += a * v
                row[OWN + 2] += a * v * v
                row[GIVEN] += b
                row[GIVEN + 1] += b * v
                row[GIVEN + 2] += b * v * v
                row[ODD] += p + q - a - b
                if k == 0:
                    drawn[0] += p
                    drawn[1] += q
                    continue
                one = away[k, 0] * behind / away[k, 2]
                two = away[k, 1] * after / away[k, 2]
                anew = (1.0 - stays) * ((1.0 - other) * one + other * two)
                drawn[0] += w * (1.0 - stays) * (1.0 - other) * one
                drawn[1] += w * (1.0 - stays) * other * two
                drawn[2] += w * anew
                drawn[3] += w
                behind, after = stays * one + anew, stays * two + anew


@nb.njit(cache=True, nogil=True)
def _forwards(value, variance, chance, odd, model, count, kept, own, away):  # type: ignore[no-untyped-def]
    """Of each turn of a chain: how probable it is, so far, that it is right and that it is given
    away; the share of either that is not odd; both likelihoods and the scale."""
    mean, other, stays = model
    right, given = 1.0 - other, other
    for k in range(count):
        if k > 0:
            right = stays * right + (1.0 - stays) * (1.0 - other)
            given = stays * given + (1.0 - stays) * other
        one, two = _against(value[k], mean, variance[k], chance[k])
        one, two = (1.0 - odd[k]) * one, (1.0 - odd[k]) * two
        own[k, 0], own[k, 1] = one / (one + odd[k]), two / (two + odd[k])
        away[k, 0], away[k, 1] = one + odd[k], two + odd[k]
        right, given = right * away[k, 0], given * away[k, 1]
        away[k, 2] = right + given
        right, given = right / away[k, 2], given / away[k, 2]
        kept[k, 0], kept[k, 1] = right, given

"""Every state of a small database in which people may be on two tracks, written down: a slow
reference that shares nothing with the package."""

from itertools import combinations, product
from math import exp, factorial, inf, log


def states_of(call):
    """All states of one conversation as dicts person -> tuple of one or two tracks."""
    tracks = range(call["tracks"])
    choices = [(), *((k,) for k in tracks), *combinations(tracks, 2)]
    for where in product(choices, repeat=len(call["people"])):
        taken = [k for own in where for k in own]
        if len(set(taken)) == len(taken):
            yield {p: own for p, own in zip(call["people"], where, strict=True) if own}


def prior(call, state, rate, split):
    """Unnormalised probability of a state before any listening."""
    chance = 1.0
    for person, sure in zip(call["people"], call["presence"], strict=True):
        there = 1.0 - rate if sure is None else sure
        if person not in state:
            chance *= 1.0 - there
        else:
            # Of an unordered pair of tracks there are half as many ways as of two people.
            chance *= there * (2.0 * split if len(state[person]) == 2 else 1.0 - split)
    strangers = call["tracks"] - sum(len(own) for own in state.values())
    chance *= factorial(strangers) / factorial(call["tracks"])
    missing = max(call["unknown"] - strangers, 0)
    return chance * (1.0 - rate) ** min(strangers, call["unknown"]) * rate**missing


def solve(calls, score, rate, split):
    """Exact figures: `score(i, k, j, l)` is the log-likelihood-ratio of two tracks."""
    listings = {}
    for call in calls:
        for person in call["people"]:
            listings[person] = listings.get(person, 0) + 1
    priors = []
    for call in calls:
        weights = [(state, prior(call, state, rate, split)) for state in states_of(call)]
        total = sum(weight for _, weight in weights)
        priors.append([(state, weight / total) for state, weight in weights if weight > 0.0])
    terms = []
    for combination in product(*priors):
        value = sum(log(weight) for _, weight in combination)
        for j in range(len(calls)):
            for i in range(j):
                one, two = combination[i][0], combination[j][0]
                for person in set(one) & set(two):
                    for k, m in product(one[person], two[person]):
                        value += 2.0 / listings[person] * score(i, k, j, m)
        terms.append((value, [state for state, _ in combination]))
    return summary(calls, terms)


def summary(calls, terms):
    top = max((value for value, _ in terms), default=-inf)
    whole = top + log(sum(exp(value - top) for value, _ in terms))
    place, stranger, right, states = {}, {}, {}, {}
    for value, combination in terms:
        chance = exp(value - whole)
        for i, (call, state) in enumerate(zip(calls, combination, strict=True)):
            key = i, tuple(sorted(state.items()))
            states[key] = states.get(key, 0.0) + chance
            taken = [k for own in state.values() for k in own]
            for person in call["people"]:
                for k in state.get(person, (None,)):
                    place[i, person, k] = place.get((i, person, k), 0.0) + chance
            for k in range(call["tracks"]):
                stranger[i, k] = stranger.get((i, k), 0.0) + chance * (k not in taken)
            certain = [
                person
                for person, sure in zip(call["people"], call["presence"], strict=True)
                if sure is None
            ]
            right[i] = right.get(i, 0.0) + chance * all(person in state for person in certain)
    return {
        "log_sum": whole,
        "best": max(states.values()),
        "place": place,
        "stranger": stranger,
        "right": right,
        "states": states,
    }

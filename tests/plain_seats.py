"""Every state of a small database, written down: a slow reference that shares nothing with the
package but the table of conversations."""

from itertools import product
from math import exp, factorial, inf, log


def states_of(call):
    """All states of one conversation as dicts person -> track."""
    people, tracks = call["people"], call["tracks"]
    for where in product([None, *range(tracks)], repeat=len(people)):
        taken = [k for k in where if k is not None]
        if len(set(taken)) == len(taken):
            yield {p: k for p, k in zip(people, where, strict=True) if k is not None}


def prior(call, state, rate):
    """Unnormalised probability of a state before any listening."""
    chance = 1.0
    for person, sure in zip(call["people"], call["presence"], strict=True):
        there = 1.0 - rate if sure is None else sure
        chance *= there if person in state else 1.0 - there
    strangers = call["tracks"] - len(state)
    chance *= factorial(strangers) / factorial(call["tracks"])
    missing = max(call["unknown"] - strangers, 0)
    return chance * (1.0 - rate) ** min(strangers, call["unknown"]) * rate**missing


def solve(calls, score, rate):
    """Exact figures: `score(i, k, j, l)` is the log-likelihood-ratio of two tracks."""
    listings = {}
    for call in calls:
        for person in call["people"]:
            listings[person] = listings.get(person, 0) + 1
    priors = []
    for call in calls:
        weights = [(state, prior(call, state, rate)) for state in states_of(call)]
        total = sum(weight for _, weight in weights)
        priors.append([(state, weight / total) for state, weight in weights if weight > 0.0])
    terms = []
    for combination in product(*priors):
        value = sum(log(weight) for _, weight in combination)
        for j in range(len(calls)):
            for i in range(j):
                one, two = combination[i][0], combination[j][0]
                for person in set(one) & set(two):
                    worth = score(i, one[person], j, two[person])
                    value += 2.0 / listings[person] * worth
        terms.append((value, [state for state, _ in combination]))
    return summary(calls, terms)


def summary(calls, terms):
    top = max((value for value, _ in terms), default=-inf)
    whole = top + log(sum(exp(value - top) for value, _ in terms))
    place, stranger, right = {}, {}, {}
    for value, states in terms:
        chance = exp(value - whole)
        for i, (call, state) in enumerate(zip(calls, states, strict=True)):
            for person in call["people"]:
                key = i, person, state.get(person)
                place[key] = place.get(key, 0.0) + chance
            for k in range(call["tracks"]):
                stranger[i, k] = stranger.get((i, k), 0.0) + chance * (k not in state.values())
            certain = [
                person
                for person, sure in zip(call["people"], call["presence"], strict=True)
                if sure is None
            ]
            right[i] = right.get(i, 0.0) + chance * all(person in state for person in certain)
    return {
        "log_sum": whole,
        "best": top,
        "place": place,
        "stranger": stranger,
        "right": right,
        "states": {i: _joint(terms, i, whole) for i in range(len(calls))},
    }


def _joint(terms, i, whole):
    found = {}
    for value, states in terms:
        key = tuple(sorted(states[i].items()))
        found[key] = found.get(key, 0.0) + exp(value - whole)
    return found

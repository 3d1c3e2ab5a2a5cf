"""Small random databases with lists of every kind."""

import numpy as np

from spklink.database.conversations import read_conversations
from spklink.database.links import find_links, needed_sides


def random_calls(rng, calls, *, most_tracks=3, people=5):
    """Conversations as plain dicts."""
    found = []
    for _ in range(calls):
        tracks = int(rng.integers(1, most_tracks + 1))
        named = int(rng.integers(0 if tracks > 1 else 1, min(people, tracks + 2) + 1))
        who = rng.choice(people, named, replace=False)
        unknown = int(rng.integers(0, 2))
        certain = int(rng.integers(0, max(min(named, tracks - unknown), 0) + 1))
        presence = [None if k < certain else float(rng.uniform(0.1, 0.9)) for k in range(named)]
        found.append(
            {
                "people": [f"p{k}" for k in who],
                "presence": presence,
                "tracks": tracks,
                "unknown": unknown,
            }
        )
    return found


def as_table(calls):
    """The same as a table that the package reads."""
    rows = []
    for m, call in enumerate(calls):
        shared = {"conversation": f"c{m}", "tracks": str(call["tracks"])}
        for person, sure in zip(call["people"], call["presence"], strict=True):
            status = "certain" if sure is None else "possible"
            chance = "" if sure is None else repr(sure)
            rows.append(shared | {"speaker": person, "status": status, "probability": chance})
        rows += [shared | {"speaker": "?", "status": "unknown", "probability": ""}] * call[
            "unknown"
        ]
        rows.append(shared | {"speaker": "*", "status": "open", "probability": ""})
    return read_conversations(rows)


def random_case(seed, calls, *, size=2.0, **how):
    """(calls, table, links, llr of the needed side pairs, score function)."""
    rng = np.random.default_rng(seed)
    made = random_calls(rng, calls, **how)
    table = as_table(made)
    links = find_links(table)
    one, two = needed_sides(links, table.sides)
    llr = rng.normal(0.5, size, len(one))
    worth = {}
    sides = table.sides
    for a, b, value in zip(one, two, llr, strict=True):
        i, k = int(sides.conversation[a]), int(sides.position[a])
        j, m = int(sides.conversation[b]), int(sides.position[b])
        worth[i, k, j, m] = float(value)
    return made, table, links, llr, lambda i, k, j, m: worth[i, k, j, m]

"""What is known of people, as evidence, in simulated databases: by sex, and by lot.

    python examples/simulated_attributes.py [--databases 10] [--people 120]

Every side has a vector: its person's own, what his sex adds, and the noise of that call. Three
shapes: pairs of people who only call each other, calls between anybody, and meetings of three. A
second attribute is drawn by lot: it must change nothing.
"""

from __future__ import annotations

import argparse

import numpy as np

from spklink import Result, link

WIDTH = 24
APART = 1.2  # half the difference between the sexes; people differ by 1 in every direction
# People of a conversation, conversations of a person, noise of a call.
SHAPES = {"pairs": (2, 2, 0.6), "calls": (2, 3, 1.8), "meetings": (3, 3, 1.3)}


def groups(shape: str, people: int, rng: np.random.Generator) -> list[list[int]]:
    """Who is in each conversation."""
    size, times, _ = SHAPES[shape]
    if shape == "pairs":
        order = rng.permutation(people)
        return [sorted(two) for two in order.reshape(-1, 2).tolist() for _ in range(times)]
    count = people * times // size
    return [sorted(rng.choice(people, size, replace=False).tolist()) for _ in range(count)]


def database(
    shape: str, people: int, rng: np.random.Generator
) -> tuple[list[dict[str, str]], np.ndarray, list[list[int]], list[dict[str, str]]]:
    """The table, the vectors of its sides, who is on them, and what is known of people."""
    noise = SHAPES[shape][2]
    sex, lot = rng.integers(2, size=(2, people))
    voice = rng.standard_normal((people, WIDTH))
    voice[:, 0] += APART * (2 * sex - 1)
    table, vectors, truth = [], [], []
    for m, some in enumerate(groups(shape, people, rng)):
        on = rng.permutation(some).tolist()
        names = ";".join(f"p{who}" for who in some)
        table.append({"conversation": f"c{m}", "participants": names, "tracks": str(len(some))})
        vectors += [voice[who] + noise * rng.standard_normal(WIDTH) for who in on]
        truth.append(on)
    known = [
        {"speaker": f"p{k}", "sex": "fm"[sex[k]], "lot": ("heads", "tails")[lot[k]]}
        for k in range(people)
    ]
    return table, np.array(vectors, np.float32), truth, known


def measured(found: Result, truth: list[list[int]]) -> np.ndarray:
    """Tracks, wrong ones, expected wrong ones, bits in all; a tie is wrong as often as it is."""
    where, table = found.conversations.index(), found.conversations
    count = wrong = expected = bits = 0.0
    for m, on in enumerate(truth):
        names = table.names(where[f"c{m}"])
        for track, who in enumerate(on):
            chance = [_chance(found, m, track, name) for name in names]
            right = chance[names.index(f"p{who}")]
            ties = sum(abs(p - max(chance)) < 1e-6 for p in chance)
            count += 1
            wrong += 1.0 - (right > max(chance) - 1e-6) / ties
            expected += 1.0 - max(chance)
            bits -= np.log2(max(right, 1e-12))
    return np.array([count, wrong, expected, bits])


def _chance(found: Result, m: int, track: int, name: str) -> float:
    """That somebody is on a track."""
    table = found.conversations
    if not found.answer.binary:
        return found.answer.chance_of(m, track, table.speakers.index(name))
    other = float(found.posterior.exchanged[m])
    return other if table.names(m).index(name) != track else 1.0 - other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--databases", type=int, default=10)
    parser.add_argument("--people", type=int, default=120)
    asked = parser.parse_args()
    print(f"{'shape':9} {'evidence':12} {'tracks':>6} {'wrong':>7} {'expected':>8} {'bits':>7}")
    for shape in SHAPES:
        sums = {name: np.zeros(4) for name in ("voices", "and sex", "and lot")}
        for seed in range(asked.databases):
            rng = np.random.default_rng([seed, len(shape)])
            table, vectors, truth, known = database(shape, asked.people, rng)
            for name in sums:
                more = {} if name == "voices" else {"speakers": known, "attribute": name[4:]}
                found = link(table, embeddings=vectors, list_errors=0.0, report=False, **more)
                sums[name] += measured(found, truth)
        for name, (count, wrong, expected, bits) in sums.items():
            print(
                f"{shape:9} {name:12} {count:6.0f} {wrong:7.1f} {expected:8.1f} {bits / count:7.4f}"
            )


if __name__ == "__main__":
    main()

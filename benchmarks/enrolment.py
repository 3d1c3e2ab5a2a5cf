"""Agents who are enrolled, thousands of calls without a list: time, memory, growth.

    python benchmarks/enrolment.py [--agents 200] [--calls 1000 2000 4000]

Every call is one of the agents and a customer whom nobody knows; vectors are simulated (an agent's,
a customer's, and noise) and given with --embeddings, so this is about all but listening.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from spklink import link
from spklink.cli.show import number
from timing import show

WIDTH = 64


def database(agents: int, calls: int, noise: float, rng: np.random.Generator):
    """Rows, vectors and who is on channel 1; one enrolment each."""
    own = rng.standard_normal((agents, WIDTH))
    who = rng.integers(agents, size=calls)
    sides = np.stack([own[who], rng.standard_normal((calls, WIDTH))], axis=1)
    turned = rng.random(calls) < 0.5
    sides[turned] = sides[turned][:, ::-1]
    vectors = np.concatenate([sides.reshape(-1, WIDTH), own])
    vectors += noise * rng.standard_normal(vectors.shape)
    names = [f"call{k}" for k in range(calls)]
    arrays = {
        "conversation": [*np.repeat(names, 2).tolist(), *(f"enrolled{k}" for k in range(agents))],
        "channel": [*np.tile([1, 2], calls).tolist(), *[1] * agents],
        "embedding": vectors.astype(np.float32),
    }
    enrol = [{"speaker": f"agent{k}", "recording": f"enrolled{k}"} for k in range(agents)]
    truth = {(names[k], 1 + int(turned[k])): f"agent{who[k]}" for k in range(calls)}
    return [{"conversation": name} for name in names], arrays, enrol, truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--calls", type=int, nargs="+", default=[1000, 2000, 4000])
    parser.add_argument("--noise", type=float, default=0.7)
    given = parser.parse_args()
    rows = []
    for calls in given.calls:
        made = database(given.agents, calls, given.noise, np.random.default_rng(calls))
        start = time.process_time()
        result = link(made[0], embeddings=made[1], enrol=made[2], workers=1)
        seconds = time.process_time() - start
        found = [(made[3].get((r[0], r[1]), "*"), r[2], float(r[3])) for r in result.assignments()]
        wrong = sum(truth != said for truth, said, _ in found)
        expected = sum(1.0 - chance for *_, chance in found)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        counts = [f"{calls:,}", number(seconds, 1), number(peak, 2), f"{wrong} ({expected:.1f})"]
        rows.append([*counts, number(result.summary()["naming"]["left_out_expected"], 3)])
    columns = ["calls", "processor seconds", "peak GB", "tracks wrong (expected)", "left out"]
    show(f"{given.agents} agents, one enrolment each", columns, rows)


if __name__ == "__main__":
    main()

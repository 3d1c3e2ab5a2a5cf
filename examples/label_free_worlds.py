"""How close calibration without labels comes to calibration with all of them, in simulated worlds.

    python examples/label_free_worlds.py [--databases 50]

Bits a conversation over the resolvable cliques of all databases: with a plain line fitted to the
truth, with a line and a floor fitted to the truth, and with those learned from the participant
lists alone, also where these are too few (`enough`).
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from spklink import build_model, find_cliques, solve
from spklink.calibration.choice import with_speakers
from spklink.calibration.fitting import stated_default
from spklink.calibration.label_free import label_free, what_is_missing
from spklink.calibration.pairs import make_pairs
from spklink.cli.show import number, table
from spklink.database.sides import speakers_on
from spklink.errors import SpklinkError
from spklink.posterior.truth import score_cliques
from spklink.worlds import simulate

WORLDS = [
    *((world, "cgn", None, eer) for world in simulate.WORLDS for eer in (2.0, 7.0, 14.0, 20.0)),
    *(("plda", "pairs", None, eer) for eer in (2.0, 7.0, 20.0)),
    *((world, "cgn", n, 7.0) for world in ("plda", "t5") for n in (10, 20, 30, 50)),
]


def one_database(world: str, shape: str, count: int | None, eer: float, seed: int) -> tuple:
    """Bits of every resolvable clique under each calibration; whether learning settled, and whether
    there was enough to learn from."""
    made = simulate.simulate(shape=shape, conversations=count, world=world, eer=eer, seed=seed)
    cliques = find_cliques(made.conversations)
    pairs = make_pairs(made.conversations, made.links, made.llr, made.non_targets)

    def posterior(llr, curve=None):
        return solve(build_model(made.conversations, cliques, made.links, llr))

    def bits(found):
        scores = score_cliques(found, made.truth)
        return scores.per_conversation[scores.resolvable]

    on_sides = speakers_on(made.conversations, made.truth)
    line, floored = (
        posterior(with_speakers(made.conversations, pairs, on_sides, kind)(made.llr))
        for kind in ("lr", "lr-floor")
    )
    guess = posterior(stated_default(np.append(made.llr, pairs.non_targets.score), "")(made.llr))
    try:
        learned = label_free(pairs, posterior, "lr-floor")
        free, converged = learned.posterior, learned.converged
    except SpklinkError:
        free, converged = guess, False
    enough = not what_is_missing(pairs, cliques)[0]
    return bits(line), bits(floored), bits(free), bits(guess), converged, enough


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--databases", type=int, default=50)
    given = parser.parse_args()
    rows = []
    for world, shape, count, eer in WORLDS:
        run = partial(one_database, world, shape, count, eer)
        runs = [run(seed) for seed in range(given.databases)]
        line, floored, free, guess = (
            float(np.concatenate([r[k] for r in runs]).mean()) for k in range(4)
        )
        calls = "" if count is None else f", {count} calls"
        rows.append(
            (
                f"{world}, {shape}{calls}",
                f"{eer:g} %",
                number(line, 4),
                number(floored, 4),
                number(free, 4),
                f"{100 * (free / floored - 1):+.1f} %",
                number(guess, 4),
                sum(r[4] for r in runs),
                sum(r[5] for r in runs),
            )
        )
        print(*rows[-1], flush=True)
    table(
        [
            *("world, shape", "EER", "line, labels", "with labels", "without", "costs"),
            *("default", "settled", "enough"),
        ],
        rows,
        title=f"{given.databases} databases each, bits a conversation (resolvable cliques)",
    )


if __name__ == "__main__":
    main()

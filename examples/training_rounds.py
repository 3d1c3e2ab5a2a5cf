"""How many frames and rounds of training are enough, and what the recognizer loses by fewer.

    python examples/training_rounds.py conversations.csv key.csv CACHE [--seeds 6]

Trains the mixture of `default` by several schedules, from several seeds, on all calls. Prints the
log-likelihood of a frame that each comes to, seconds of processor time, and how well plain cosines
tell people apart (equal error rate and least Cllr of all side pairs) on either half of the
speakers: what is built in was chosen on half 0, so half 1 is what counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.cli.show import number, table
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_key
from spklink.database.sides import speakers_on
from spklink.hands import Here
from spklink.measures.detection import measure
from spklink.recognizers.gmm_ubm import EARLY, FEWEST_GAUSSIANS, LAST, LEARNED_FROM, make
from spklink.recognizers.mixture import Mixture, expectation, train
from spklink.sound.listening import Sound, hear

Singles = NDArray[np.float32]
GAUSSIANS = FEWEST_GAUSSIANS
MOST = LEARNED_FROM * GAUSSIANS
# Rounds on a sample, rounds on all, frames in all.
SCHEDULES = {
    (0, 10, 2 * MOST): "",
    (EARLY, LAST, 2 * MOST): "",
    (EARLY, LAST, MOST): "built in",
    (EARLY, LAST, MOST // 2): "",
    (12, 2, MOST): "",
}


def vectors(mixture: Mixture, sound: Sound) -> Singles:
    """(sides, width) of length one about their mean."""
    recognizer = replace(make(), mixtures=(mixture,))
    every = np.stack([recognizer.vector(sound.array(s)) for s in range(len(sound.sides))])
    every -= every.mean(axis=0)
    return np.asarray(every / np.linalg.norm(every, axis=1, keepdims=True))


def on_halves(units: Singles, people: Conversations, on: NDArray[np.int64]) -> Iterator[float]:
    """Equal error rate and least Cllr of each half."""
    half = np.argsort(np.argsort(people.speakers)) % 2
    one, two = np.triu_indices(len(units), 1)
    scores, same = (units @ units.T)[one, two].astype(np.float64), on[one] == on[two]
    for h in (0, 1):
        mine = (half[on[one]] == h) & (half[on[two]] == h)
        found = measure(scores[mine & same], scores[mine & ~same])
        yield from (found.eer, found.min_cllr)


def tried(
    blocks: Callable[[], Iterator[Singles]],
    schedule: tuple[int, int, int],
    seed: int,
    threads: int,
) -> tuple[Mixture, float, float]:
    """A mixture, its log-likelihood a frame, and seconds."""
    begin, (early, last, most) = time.process_time(), schedule
    rounds = {"iterations": last, "early": early, "max_frames": most}
    mixture = train(blocks, GAUSSIANS, seed=seed, hands=Here(threads), **rounds)
    taken = time.process_time() - begin
    found = expectation(mixture, blocks(), threads=threads)
    return mixture, found.log_likelihood / float(found.zeroth.sum()), taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    people = read_conversations(given.table)
    folder = given.cache / "features"
    front = make().front_end
    sound = hear(people, front, folder, min_speech=0.0, skip_bad=True, hands=Here(given.workers))
    on = speakers_on(people, read_key(given.key, people).bits)

    def blocks() -> Iterator[Singles]:
        return (sound.array(int(side)) for side in sound.order)

    rows = []
    for schedule, note in SCHEDULES.items():
        found = []
        for seed in range(given.seeds):
            mixture, likelihood, taken = tried(blocks, schedule, seed, given.workers)
            found.append((likelihood, taken, *on_halves(vectors(mixture, sound), people, on)))
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        rates = [
            f"{number(m, 4)} ± {number(s, 4)}" for m, s in zip(mean[2:], spread[2:], strict=True)
        ]
        rows.append((*schedule, note, number(mean[0], 3), number(mean[1], 1), *rates))
    shown = ["on a sample", "on all", "frames", "", "log-likelihood", "seconds"]
    shown += [f"{what}, half {h}" for h in (0, 1) for what in ("EER", "least Cllr")]
    table(shown, rows, title=f"rounds of training, mean and spread of {given.seeds} seeds")


if __name__ == "__main__":
    main()

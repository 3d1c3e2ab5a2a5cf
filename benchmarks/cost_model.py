"""What a database of any size would cost on a cluster: reckoned on paper from measured constants.

    python benchmarks/cost_model.py [--minutes 5] [--calls-a-person 5] [--speech 0.4]
    python benchmarks/cost_model.py --measure

What listening to an hour takes, and a side pair until it is linked, are constants of `spklink
check` (spklink.runs.cost, printed by benchmarks/cost.py); `--measure` prints those that are here.
Divided among all cores: listening and vectors. Of one core, whatever the cluster: handing out calls
and reading their vectors, and the side pairs, which are more than that where tiles and cliques are
large enough to be divided. Training costs the same from some 1,000 calls on. Nothing of this size
was run on a cluster.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from spklink.cache import Store, key_of
from spklink.cluster import joined
from spklink.hands import Here
from spklink.runs.cost import A_PAIR, LISTENING
from spklink.sound.features import DEFAULT
from spklink.sound.heard import Heard, Job

VECTOR = 0.009  # seconds of a core a minute of speech (gmm-ubm, 256 Gaussians)
HANDLING = 0.0002  # seconds of the main process a call: both ways over the cluster, and its vectors
FRAMES, WIDTH = 100, 60  # a second; features
GAUSSIANS = 256
BYTES_A_PAIR = 375  # while cliques are solved
SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)
COLUMNS = (
    *("calls", "hours of sound", "core hours, divided", "with 100 cores, hours"),
    *("hours of one core", "features, GB", "vectors, GB", "side pairs", "their memory, GB"),
)


def measured() -> float:
    """Seconds of a core that the vector of a minute of speech takes."""
    from spklink.recognizers.mixture import Mixture, statistics
    from spklink.threads import one_blas_thread

    rng = np.random.default_rng(0)
    means = rng.normal(size=(GAUSSIANS, WIDTH))
    mixture = Mixture(np.full(GAUSSIANS, 1 / GAUSSIANS), means, np.ones_like(means))
    frames = rng.normal(size=(60 * FRAMES, WIDTH)).astype(np.float32)
    statistics(mixture, frames)
    found = []
    with one_blas_thread():
        for _ in range(9):
            begin = time.process_time()
            statistics(mixture, frames)
            found.append(time.process_time() - begin)
    return float(np.median(found))


def handling(calls: int = 3000) -> float:
    """Seconds of the main process, scheduler included, that a call takes where others do the work:
    listening without any, and its vectors from the cache."""
    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name), Store(Path(name) / "vectors")
        names = [key_of(k) for k in range(calls)]
        vectors = np.ones((2, GAUSSIANS * WIDTH), np.float32)
        for one in names:
            store.write(one, {}, {"sides": vectors})
        jobs = [Job((folder / f"{k}.wav",), 2, DEFAULT, folder) for k in range(calls)]
        with joined("local:1", folder, Here(1)) as cluster:
            list(cluster.apart(heard, jobs[:50]))
            begin = time.process_time()
            for one, _ in zip(names, cluster.apart(heard, jobs), strict=True):
                np.array(Store(store.folder).load(one).arrays["sides"])
            return (time.process_time() - begin) / calls


def heard(job: Job) -> tuple[Heard, set[str]]:
    """As if a worker had listened for ten minutes."""
    pauses = np.ones(600, np.int32)
    sounds = ("0" * 64,) * 2
    return Heard("0" * 32, (9, 9), (1.0, 1.0), (), sounds[:1], sounds, (pauses, pauses)), set()


def row(calls: int, minutes: float, calls_a_person: float, speech: float) -> tuple[str, ...]:
    """What so many calls of two sides cost."""
    hours, sides = calls * minutes / 60.0, 2 * calls
    spoken = sides * minutes * speech  # minutes
    pairs = 4 * calls * (calls_a_person - 1)  # a call shares each of two people with so many
    divided = (LISTENING * hours + VECTOR * spoken) / 3600.0
    alone = (HANDLING * calls + A_PAIR * pairs) / 3600.0
    features = spoken * 60 * FRAMES * WIDTH * 4 / 1e9
    vectors = sides * GAUSSIANS * WIDTH * 4 / 1e9
    numbers = (hours, divided, divided / 100, alone, features, vectors, pairs)
    return (f"{calls:,}", *map(figure, numbers), figure(pairs * BYTES_A_PAIR / 1e9))


def figure(value: float) -> str:
    """Two digits that count."""
    if value == 0.0:
        return "0"
    digits = 1 - int(np.floor(np.log10(abs(value))))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def table(minutes: float = 5.0, calls_a_person: float = 5.0, speech: float = 0.4) -> list[str]:
    """The lines of a table as in the documentation."""
    rows = [row(calls, minutes, calls_a_person, speech) for calls in SIZES]
    head, *body = (f"| {' | '.join(cells)} |" for cells in (COLUMNS, *rows))
    return [head, "|" + "---:|" * len(COLUMNS), *body]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of a call")
    parser.add_argument("--calls-a-person", type=float, default=5.0)
    parser.add_argument("--speech", type=float, default=0.4, help="share of a call, each side")
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    if given.measure:
        print(f"VECTOR = {measured():.2g}  # seconds of a core a minute of speech")
        print(f"HANDLING = {handling():.2g}  # seconds of the main process a call")
        return
    print("\n".join(table(given.minutes, given.calls_a_person, given.speech)))


if __name__ == "__main__":
    main()

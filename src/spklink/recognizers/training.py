"""A recognizer made ready for a run, and the vector of every side, through the cache.

What is learned from the calls, and where a recognizer settles among them, is used again as long as
all those calls are still in the table, so ten new calls cost ten calls. What is learned from
background speech is kept by that speech alone, for any table. Vectors are one file a call.

The cache holds, in `recognizers`, LEARNED.npz (what was learned), NAME.npz (the same, settled) and
NAME.json, written last; in `vectors` a folder a fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.recognizers.recognizer import Recognizer
from spklink.sound.listening import Heard, Sound, Tell, hear_background, load_array
from spklink.tables import read_json, replacing, write_json, write_npz
from spklink.threads import in_order

Singles = NDArray[np.float32]
VERSION = 3  # of recognizers and vectors in the cache
IN_MEMORY = 1 << 30  # bytes of vectors; more are mapped from a file


@dataclass(frozen=True)
class Trainer:
    """Where and how recognizers are made."""

    cache: Path
    background: Path | None = None  # folder of other speech to train on
    skip_bad: bool = False  # bad background recordings
    seed: int = 0
    threads: int = 1
    retrain: bool = False
    tell: Tell | None = None

    @property
    def folder(self) -> Path:
        return self.cache / "recognizers"

    def told(self, done: int, total: int) -> None:
        if self.tell is not None:
            self.tell(done, total)


@dataclass(frozen=True)
class Trained:
    """A recognizer, its name in the cache, and the vector of every side."""

    name: str
    recognizer: Recognizer
    vectors: Singles  # (S, width); those of unusable sides are zero
    trained_on: int  # recordings of this table that it was trained on, or settled among,
    of: int  # of so many with a usable side


def prepare(recognizer: Recognizer, sound: Sound, trainer: Trainer) -> Trained:
    """A recognizer from the cache, or one trained now."""
    trainer.folder.mkdir(parents=True, exist_ok=True)
    keys = [sound.heard[m].key for m in np.unique(sound.sides.conversation[sound.usable])]
    if not keys:
        raise SpklinkError("no recording has enough speech to learn from")
    background = _hear_background(recognizer, sound, trainer)
    recipe = _recipe(recognizer, background, trainer)
    name, calls = _find_cached(trainer, recipe, keys)
    if name:
        ready = _load(recognizer, trainer.folder / f"{name}.npz")
        return Trained(name, ready, vectors_of(ready, sound, trainer), calls, len(keys))
    name = name_of({"recipe": recipe, "training": keys})
    learned = _learned(recognizer, recipe, keys, sound, background, trainer)
    vectors = vectors_of(learned, sound, trainer)
    ready = learned.centred(vectors, sound.usable)
    write_npz(trainer.folder / f"{name}.npz", ready.arrays())
    write_json(trainer.folder / f"{name}.json", {"recipe": recipe, "training": keys})
    return Trained(name, ready, vectors, len(keys), len(keys))


def name_of(value: Any) -> str:
    """The name of something in the cache: a hash of all it depends on."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _hear_background(recognizer: Recognizer, sound: Sound, trainer: Trainer) -> list[Heard]:
    if trainer.background is None or not recognizer.learns:
        return []
    return hear_background(
        trainer.background,
        recognizer.front_end,
        sound.folder,
        skip_bad=trainer.skip_bad,
        workers=trainer.threads,
    )


def _recipe(recognizer: Recognizer, background: list[Heard], trainer: Trainer) -> dict[str, Any]:
    """All that is learned depends on, but the calls."""
    recipe = {
        "version": VERSION,
        "recognizer": recognizer.name,
        "recipe": recognizer.recipe,
        "front_end": recognizer.front_end.key,
        "seed": trainer.seed if recognizer.learns else None,
        "background": name_of([one.key for one in background]) if background else None,
    }
    plain: dict[str, Any] = json.loads(json.dumps(recipe))  # as it will be read again
    return plain


def _find_cached(trainer: Trainer, recipe: dict[str, Any], keys: list[str]) -> tuple[str, int]:
    """A recognizer of the same recipe all of whose calls are still in the table, and how many these
    are; of several that with the most calls. No name where there is none."""
    present, found = set(keys), [(0, "")]
    for path in sorted(trainer.folder.glob("*.json")) if not trainer.retrain else ():
        made = read_json(path)
        if made["recipe"] == recipe and present.issuperset(made["training"]):
            found.append((len(made["training"]), path.stem))
    calls, name = max(found)
    return name, calls


def _learned(
    recognizer: Recognizer,
    recipe: dict[str, Any],
    keys: list[str],
    sound: Sound,
    background: list[Heard],
    trainer: Trainer,
) -> Recognizer:
    """Trained, not yet settled on the calls; an earlier run may have come this far."""
    if not recognizer.learns:
        return recognizer
    speech = None if background else keys
    path = trainer.folder / f"{name_of({'learned': recipe, 'from': speech})}.npz"
    if path.exists():
        return _load(recognizer, path)

    def blocks() -> Iterator[Singles]:
        if background:
            sides = ((one, k) for one in background for k in range(len(one.frames)))
            return (load_array(sound.folder, one, k) for one, k in sides if one.frames[k])
        return (sound.array(int(side)) for side in np.flatnonzero(sound.usable))

    made = recognizer.learn(
        blocks, seed=trainer.seed, threads=trainer.threads, progress=trainer.told
    )
    write_npz(path, made.arrays())
    return made


def _load(recognizer: Recognizer, path: Path) -> Recognizer:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return recognizer.restored(dict(arrays))
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise SpklinkError(
            f"{path}: not a recognizer saved by spklink ({error}); remove it to train anew"
        ) from None


def vectors_of(recognizer: Recognizer, sound: Sound, trainer: Trainer) -> Singles:
    """(S, width) the vector of every side, one cached file a call; unusable sides are zero."""
    folder = trainer.cache / "vectors" / recognizer.fingerprint[:16]
    folder.mkdir(parents=True, exist_ok=True)
    total, vectors = len(sound.heard), None

    def work(m: int) -> Singles | None:
        return _vectors_of_call(recognizer, sound, m, folder)

    for m, found in enumerate(in_order(work, range(total), trainer.threads)):
        if found is not None:
            if vectors is None:
                vectors = _room((len(sound.sides), found.shape[1]), folder)
            vectors[sound.sides.of(m)] = found
        trainer.told(m + 1, total)
    if vectors is None:
        raise SpklinkError("no recording has any speech")
    vectors[~sound.usable] = 0.0
    return vectors


def _vectors_of_call(recognizer: Recognizer, sound: Sound, m: int, folder: Path) -> Singles | None:
    """(K, width) zero where a side has no speech; None where none has."""
    heard = sound.heard[m]
    if not any(heard.frames):
        return None
    path = folder / f"{heard.key}.npy"
    if path.exists():
        return np.asarray(np.load(path, allow_pickle=False), np.float32)
    spoken = {k: load_array(sound.folder, heard, k) for k, size in enumerate(heard.frames) if size}
    made = {k: recognizer.vector(array) for k, array in spoken.items()}
    vectors = np.zeros((len(heard.frames), len(next(iter(made.values())))), np.float32)
    for k, vector in made.items():
        vectors[k] = vector
    with replacing(path) as file:
        np.lib.format.write_array(file, vectors, allow_pickle=False)
    return vectors


def _room(shape: tuple[int, int], folder: Path) -> Singles:
    """Memory for the vectors of all sides, in a file of its own where there are very many."""
    if 4 * shape[0] * shape[1] <= IN_MEMORY:
        return np.zeros(shape, np.float32)
    return np.lib.format.open_memmap(folder / "all.npy", "w+", np.float32, shape)

"""The recognizer of a run and the vector of every side, through the cache.

A recognizer in the cache is used again as long as all calls it was trained on are still in the
table, so ten new calls cost ten calls. Its vectors are one file a call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.recognizers import gmm_ubm
from spklink.recognizers.gmm_ubm import GmmUbm, Preset
from spklink.sound.features import FrontEnd
from spklink.sound.listening import (
    Heard,
    Sound,
    Tell,
    background_recordings,
    listen_background,
    load_features,
)
from spklink.tables import read_json, replacing, write_json
from spklink.threads import in_order

Singles = NDArray[np.float32]
VERSION = 2  # of recognizers and vectors in the cache
TRAINED_BY = ("components", "relevance", "score", "iterations")  # of a preset
IN_MEMORY = 1 << 30  # bytes of vectors; more are mapped from a file


@dataclass(frozen=True)
class Trainer:
    """Where and how recognizers are made."""

    preset: Preset
    cache: Path
    front_end: FrontEnd
    background: Path | None = None  # folder of other speech to train on
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
    recognizer: GmmUbm
    vectors: Singles  # (2M, width); those of unusable sides are zero


def prepare(sound: Sound, trainer: Trainer) -> Trained:
    """A recognizer from the cache, or one trained now."""
    trainer.folder.mkdir(parents=True, exist_ok=True)
    usable = np.any(sound.usable.reshape(-1, 2), axis=1).tolist()
    keys = [one.key for one, good in zip(sound.heard, usable, strict=True) if good]
    if not keys:
        raise SpklinkError("no recording has enough speech to learn from")
    background = _listen_to_background(trainer)
    recipe: dict[str, Any] = {
        "version": VERSION,
        "preset": {name: getattr(trainer.preset, name) for name in TRAINED_BY},
        "seed": trainer.seed,
        "background": name_of([one.key for one in background]) if background else None,
    }
    name = None if trainer.retrain else _find_cached(trainer.folder, recipe, keys)
    if name is not None:
        recognizer = gmm_ubm.load(trainer.folder / f"{name}.npz")
        return Trained(name, recognizer, vectors_of(sound, recognizer, trainer))
    name = name_of({"recipe": recipe, "training": keys})
    recognizer = _mixture(trainer.folder / f"{name}-mixture.npz", sound, background, trainer)
    vectors = vectors_of(sound, recognizer, trainer)
    recognizer = recognizer.centred(vectors, sound.usable)
    recognizer.save(trainer.folder / f"{name}.npz")
    write_json(trainer.folder / f"{name}.json", {"recipe": recipe, "training": keys})
    return Trained(name, recognizer, vectors)


def name_of(value: Any) -> str:
    """The name of something in the cache: a hash of all it depends on."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _find_cached(folder: Path, recipe: dict[str, Any], keys: list[str]) -> str | None:
    """A recognizer of the same recipe all of whose training calls are still in the table."""
    present, found = set(keys), []
    for path in sorted(folder.glob("*.json")):
        made = read_json(path)
        if made["recipe"] == recipe and present.issuperset(made["training"]):
            found.append((len(made["training"]), path.stem))
    return max(found)[1] if found else None


def _listen_to_background(trainer: Trainer) -> list[Heard]:
    if trainer.background is None:
        return []
    files = list(background_recordings(trainer.background))
    if not files:
        raise SpklinkError(f"{trainer.background}: no sound files to use as background")
    folder = trainer.cache / "features"
    return listen_background(files, trainer.front_end, folder, workers=trainer.threads)


def _mixture(path: Path, sound: Sound, background: list[Heard], trainer: Trainer) -> GmmUbm:
    """The mixture without the mean of the vectors; an earlier run may have come this far."""
    if path.exists():
        return gmm_ubm.load(path)

    def blocks() -> Iterator[Singles]:
        if background:
            return (load_features(sound.folder, one, 0) for one in background if one.frames[0])
        return (sound.features(int(side)) for side in np.flatnonzero(sound.usable))

    made = gmm_ubm.train_recognizer(
        trainer.preset,
        blocks,
        seed=trainer.seed,
        threads=trainer.threads,
        progress=lambda done, _: trainer.told(done, trainer.preset.iterations),
    )
    made.save(path)
    return made


def vectors_of(sound: Sound, recognizer: GmmUbm, trainer: Trainer) -> Singles:
    """(2M, width) the vector of every side, one cached file a call; unusable sides are zero."""
    folder = trainer.cache / "vectors" / recognizer.fingerprint[:16]
    folder.mkdir(parents=True, exist_ok=True)
    total = len(sound.heard)

    def work(m: int) -> Singles:
        path = folder / f"{sound.heard[m].key}.npy"
        if path.exists():
            return np.asarray(np.load(path, allow_pickle=False), np.float32)
        pair = np.stack([recognizer.vector(sound.features(2 * m + c)) for c in (0, 1)])
        with replacing(path) as file:
            np.lib.format.write_array(file, pair, allow_pickle=False)
        return pair

    vectors: Singles | None = None
    for m, pair in enumerate(in_order(work, range(total), trainer.threads)):
        if vectors is None:
            vectors = _room((2 * total, pair.shape[1]), folder)
        vectors[2 * m : 2 * m + 2] = pair
        trainer.told(m + 1, total)
    assert vectors is not None
    vectors[~sound.usable] = 0.0
    return vectors


def _room(shape: tuple[int, int], folder: Path) -> Singles:
    """Memory for the vectors of all sides, in a file of its own where there are very many."""
    if 4 * shape[0] * shape[1] <= IN_MEMORY:
        return np.zeros(shape, np.float32)
    return np.lib.format.open_memmap(folder / "all.npy", "w+", np.float32, shape)

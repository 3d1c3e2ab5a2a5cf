"""A recognizer made ready for a run, and the vector of every side, through the cache.

What is learned from the calls, and where a recognizer settles among them, is used again as long as
all those calls are still in the table, with the same usable sides, so ten new calls cost ten calls.
What is learned from background speech is kept by that speech alone, for any table.

The cache holds, in `recognizers`, a file of what was learned, which says nothing about itself, and
one of the same settled among calls, which says which; in `vectors` a folder a fingerprint and in it
a file a call.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Store, key_of, private_room
from spklink.errors import SpklinkError
from spklink.hands import ALONE, Hands
from spklink.memory import now
from spklink.object_store import AT_ONCE
from spklink.recognizers.products import unit_vectors
from spklink.recognizers.recognizer import Recognizer
from spklink.sound.background_speech import hear_background
from spklink.sound.heard import Heard
from spklink.sound.listening import Sound, Tell, load_array
from spklink.threads import in_order

Singles = NDArray[np.float32]
VERSION = 5  # of recognizers and vectors in the cache


@dataclass(frozen=True)
class Trainer:
    """Where and how recognizers are made."""

    cache: Path
    background: Path | None = None  # folder of other speech to train on
    skip_bad: bool = False  # bad background recordings
    seed: int = 0
    hands: Hands = ALONE
    retrain: bool = False
    tell: Tell | None = None

    def told(self, done: int, total: int) -> None:
        if self.tell is not None:
            self.tell(done, total)


@dataclass(frozen=True)
class Trained:
    """A recognizer, its name in the cache, and the vector of every side."""

    name: str
    recognizer: Recognizer
    vectors: Singles  # (S, width), in the order of the sound; those of unusable sides are zero
    row: NDArray[np.int64]  # (S,) of each side among the vectors
    trained_on: int  # recordings of this table that it was trained on, or settled among,
    of: int  # of so many with a usable side

    def unit_vectors(self, sides: NDArray[np.int64]) -> Singles:
        """(sides, width) of length one, close where voices are alike."""
        return unit_vectors(self.recognizer.product, self.vectors, self.row[sides])


def prepare(recognizer: Recognizer, sound: Sound, trainer: Trainer) -> Trained:
    """A recognizer from the cache, or one trained now."""
    calls, row = usable_calls(sound), np.argsort(sound.order)
    if not calls:
        raise SpklinkError("no recording has enough speech to learn from")
    store = Store(trainer.cache / "recognizers", sound.store.damaged)
    background = _hear_background(recognizer, sound, trainer)
    recipe = _recipe(recognizer, background, trainer)
    name = key_of({"recipe": recipe, "training": calls})
    if not trainer.retrain and (found := _find_cached(store, name, recipe, calls)):
        cached, count, ready = found[0], found[1], _load(recognizer, store, found[0])
        if ready is not None:
            vectors = vectors_of(ready, sound, trainer)
            return Trained(cached, ready, vectors, row, count, len(calls))
    learned = _learned(recognizer, recipe, calls, sound, background, trainer, store)
    vectors = vectors_of(learned, sound, trainer)
    ready = learned.centred(vectors, sound.usable[sound.order])
    store.write(name, {"recipe": recipe, "training": calls}, ready.arrays())
    return Trained(name, ready, vectors, row, len(calls), len(calls))


def usable_calls(sound: Sound) -> list[str]:
    """Every recording with a usable side, and which of its sides these are: what is learned depends
    on both, not on their order."""
    found: dict[int, list[int]] = {}
    good = np.flatnonzero(sound.usable)
    calls, tracks = sound.sides.conversation[good].tolist(), sound.sides.position[good].tolist()
    for m, track in zip(calls, tracks, strict=True):
        found.setdefault(m, []).append(track)
    return sorted(f"{sound.heard[m].own_key} {tracks}" for m, tracks in found.items())


def _hear_background(recognizer: Recognizer, sound: Sound, trainer: Trainer) -> list[Heard]:
    if trainer.background is None or not recognizer.learns:
        return []
    heard = hear_background(
        trainer.background,
        recognizer.front_end,
        sound.store,
        skip_bad=trainer.skip_bad,
        hands=trainer.hands,
    )
    return sorted(heard, key=lambda one: (one.sounds, one.key))


def _recipe(recognizer: Recognizer, background: list[Heard], trainer: Trainer) -> dict[str, Any]:
    """All that is learned depends on, but the calls."""
    recipe = {
        "version": VERSION,
        "recognizer": recognizer.name,
        "recipe": recognizer.recipe,
        "front_end": recognizer.front_end.key,
        "seed": trainer.seed if recognizer.learns else None,
        "background": key_of([one.key for one in background]) if background else None,
    }
    plain: dict[str, Any] = json.loads(json.dumps(recipe))  # as it will be read again
    return plain


def _find_cached(
    store: Store, name: str, recipe: dict[str, Any], calls: list[str]
) -> tuple[str, int] | None:
    """A recognizer of the same recipe all of whose calls are still in the table, and how many these
    are: that of just these calls or, of several, that with the most."""
    if store.about(name) is not None:
        return name, len(calls)
    present, found = Counter(calls), []
    for other, about in store.listed():
        if about and about["recipe"] == recipe and Counter(about["training"]) <= present:
            found.append((len(about["training"]), other))
    return max(found)[::-1] if found else None


def _learned(
    recognizer: Recognizer,
    recipe: dict[str, Any],
    calls: list[str],
    sound: Sound,
    background: list[Heard],
    trainer: Trainer,
    store: Store,
) -> Recognizer:
    """Trained, not yet settled on the calls; an earlier run may have come this far."""
    if not recognizer.learns:
        return recognizer
    name = key_of({"learned": recipe, "from": None if background else calls})
    found = _load(recognizer, store, name)
    if found is not None:
        return found

    def blocks() -> Iterator[Singles]:
        if background:
            sides = ((one, k) for one in background for k in range(len(one.frames)))
            return (load_array(sound.store, one, k) for one, k in sides if one.frames[k])
        return (sound.array(int(side)) for side in sound.order[sound.usable[sound.order]])

    more = {"hands": trainer.hands} if _knows_hands(recognizer) else {}
    threads = trainer.hands.worth(0.0).count
    made = recognizer.learn(
        blocks, seed=trainer.seed, threads=threads, progress=trainer.told, **more
    )
    store.write(name, {}, made.arrays())
    return made


def _knows_hands(recognizer: Recognizer) -> bool:
    """Whether it can be taught by others than threads of this process."""
    return "hands" in inspect.signature(recognizer.learn).parameters


def _load(recognizer: Recognizer, store: Store, name: str) -> Recognizer | None:
    """As it was kept; None where it was not, or is no such recognizer."""
    kept = store.load(name)
    if kept is None:
        return None
    try:
        return recognizer.restored({key: np.array(a) for key, a in kept.arrays.items()})
    except (ValueError, TypeError, KeyError):
        store.reject(name)
        return None


def vectors_of(recognizer: Recognizer, sound: Sound, trainer: Trainer) -> Singles:
    """(S, width) the vector of every side, in the order of the sound, one cached file a call;
    unusable sides are zero."""
    folder = trainer.cache / "vectors" / recognizer.fingerprint[:16]
    store = Store(folder, sound.store.damaged)
    store.bring(_vectors_name(recognizer, heard) for heard in sound.heard)
    total, vectors, row = len(sound.heard), None, np.argsort(sound.order)
    for m, found in enumerate(_vectors_of_calls(recognizer, sound, store, trainer.hands)):
        if found is not None:
            if vectors is None:
                vectors = room((len(sound.sides), found.shape[1]), folder)
            vectors[row[sound.sides.of(m)]] = found
        trainer.told(m + 1, total)
    if vectors is None:
        raise SpklinkError("no recording has any speech")
    vectors[~sound.usable[sound.order]] = 0.0
    return vectors


def _vectors_of_calls(
    recognizer: Recognizer, sound: Sound, store: Store, hands: Hands
) -> Iterator[Singles | None]:
    """Of every call, in their order."""

    def loaded(heard: Heard) -> Singles | None:
        return _vectors_of_call(recognizer, heard, sound.store, store)

    if not hands.far:
        yield from hands.each(loaded, sound.heard)
        return
    work = partial(
        _keep_vectors, recognizer, sound.store.folder.absolute(), store.folder.absolute()
    )
    made = hands.each(work, [one.anywhere() for one in sound.heard])

    def arrived() -> Iterator[Heard]:
        for heard, damaged in zip(sound.heard, made, strict=True):
            store.damaged.update(damaged)
            yield heard

    yield from in_order(loaded, arrived(), 1 if store.far is None else AT_ONCE)


def _keep_vectors(recognizer: Recognizer, features: Path, folder: Path, heard: Heard) -> set[str]:
    """In another process: leave the vectors of a call in the cache; what was damaged there."""
    store = Store(folder)
    _vectors_of_call(recognizer, heard, Store(features, store.damaged), store)
    return store.damaged


def _vectors_of_call(
    recognizer: Recognizer, heard: Heard, features: Store, store: Store
) -> Singles | None:
    """(K, width) zero where a side has no speech; None where none has."""
    if not any(heard.frames):
        return None
    name = _vectors_name(recognizer, heard)
    kept = store.load(name)
    if kept is not None:
        return np.asarray(kept.arrays["sides"], np.float32)
    spoken = {k: load_array(features, heard, k) for k, size in enumerate(heard.frames) if size}
    made = {k: recognizer.vector(array) for k, array in spoken.items()}
    vectors = np.zeros((len(heard.frames), len(next(iter(made.values())))), np.float32)
    for k, vector in made.items():
        vectors[k] = vector
    store.write(name, {}, {"sides": vectors})
    return vectors


def _vectors_name(recognizer: Recognizer, heard: Heard) -> str:
    return key_of({"version": VERSION, "vectors": recognizer.fingerprint, "of": heard.own_key})


def room(shape: tuple[int, int], folder: Path) -> Singles:
    """Memory for the vectors of all sides, on the disk of the cache where there are very many."""
    if 4 * shape[0] * shape[1] <= now().vectors:
        return np.zeros(shape, np.float32)
    return private_room(shape, folder)

"""A recognizer that is trained once and then used for any lists: its vectors do not depend on them.

`link` trains on the calls of its table. Experiments with hundreds of tables of the same recordings
would train hundreds of times; this one is trained on all of them (no list is read for that), and
whatever it hears is kept in one cache.
"""

from __future__ import annotations

from pathlib import Path

from spklink.database.conversations import read_conversations
from spklink.recognizers.table import make_recognizer
from spklink.recognizers.training import Trainer, prepare
from spklink.sound.listening import hear


class TrainedOnce:
    """A recognizer that has learned already."""

    learns = False

    def __init__(self, inner) -> None:
        self.inner = inner

    def __getattr__(self, name: str):
        if name == "inner":  # not made yet: while it is copied or read
            raise AttributeError(name)
        return getattr(self.inner, name)

    def centred(self, vectors, usable) -> TrainedOnce:
        return TrainedOnce(self.inner.centred(vectors, usable))

    def restored(self, arrays) -> TrainedOnce:
        return TrainedOnce(self.inner.restored(arrays))


def trained_once(table: Path, cache: Path, preset: str = "default") -> TrainedOnce:
    """Trained on all calls of a table, or taken from the cache."""
    fresh = make_recognizer("gmm-ubm", preset=preset, components=None)
    people = read_conversations(table)
    sound = hear(people, fresh.front_end, cache / "features", min_speech=0.0, skip_bad=True)
    return TrainedOnce(prepare(fresh, sound, Trainer(cache)).recognizer)

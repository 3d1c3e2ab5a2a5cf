"""A folder of speech to train on: all its sound files, listened to as calls are."""

from __future__ import annotations

from pathlib import Path

from spklink.cache import Store
from spklink.errors import SpklinkError, problems_in
from spklink.hands import ALONE, Hands
from spklink.sound.front_end import FrontEnd
from spklink.sound.heard import Heard, Job
from spklink.sound.listening import Tell, listen_all

SOUNDS = frozenset({".wav", ".flac", ".ogg", ".opus", ".mp3", ".sph", ".au", ".aif", ".aiff"})


def hear_background(
    background: Path,
    front_end: FrontEnd,
    store: Store,
    *,
    skip_bad: bool = False,
    hands: Hands = ALONE,
    tell: Tell | None = None,
) -> list[Heard]:
    """All sound files below a folder, in order of their names, whatever channels they have. One
    without any good channel is an error or, if asked for, left out."""
    files = sorted(path for path in background.rglob("*") if path.suffix.lower() in SOUNDS)
    if not files:
        raise SpklinkError(f"{background}: no sound files to use as background")
    jobs = [Job((path,), None, front_end, store.folder) for path in files]
    heard = listen_all(jobs, store, hands=hands, tell=tell)
    bad = [all(one.fatal(k) for k in range(len(one.frames))) for one in heard]
    if all(bad) or (any(bad) and not skip_bad):
        named = [
            f"{path.relative_to(background)}: {one.fatal(0)}"
            for path, one, wrong in zip(files, heard, bad, strict=True)
            if wrong
        ]
        remedy = "mend or remove these files, or use --on-bad-audio skip"
        raise problems_in(background, named, "" if all(bad) else remedy)
    return [one for one, wrong in zip(heard, bad, strict=True) if not wrong]

"""Which recording a decision was heard on, and whether it is still that one.

A recording is known by the SHA-256 of each of its files. "" stands for a file whose hash is not
known, and contradicts nothing.
"""

from __future__ import annotations

from pathlib import Path

from spklink.decisions.log import FILE, Decision, Decisions
from spklink.decisions.verdicts import Verdicts
from spklink.runs.result import Result
from spklink.sound.files import Stamp, fingerprint, stamp

SHA256 = "sha256"  # in what was shown of an entry; earlier versions stored none
Hashes = list[str]  # one per file


class Fingerprints:
    """The recordings of results, as the run heard them and as they are now."""

    def __init__(self, result: Result) -> None:
        self.table, self._where = result.conversations, result.conversations.index()
        self._sides = None if result.listening is None else result.listening.speech.sha256
        self._known: dict[tuple[Path, Stamp], str] = {}

    def now(self, m: int) -> Hashes:
        """The files that are there now."""
        home = self.table.path.parent
        return [self._hash(home / name) if name else "" for name in self.table.audio[m]]

    def linked(self, m: int) -> Hashes:
        """The files that the run listened to."""
        files = len(self.table.audio[m])
        sides = [] if self._sides is None else self._sides[self.table.sides.of(m)]
        return [*sides, *[""] * files][:files]

    def heard(self, m: int) -> Hashes:
        """The files that somebody hears who decides now; of those that are gone, as linked."""
        return [here or run for here, run in zip(self.now(m), self.linked(m), strict=True)]

    def changed(self, m: int) -> bool:
        """Whether the recording has changed since the run listened to it."""
        return _differ(self.now(m), self.linked(m))

    def outdated(self, one: Decision) -> bool:
        """Whether a decision was heard on another recording than is there now, or was linked."""
        m, heard = self._where.get(one.conversation), _stored(one)
        if m is None or not any(heard):
            return False
        return _differ(heard, self.now(m)) or _differ(heard, self.linked(m))

    def missing(self, one: Decision) -> bool:
        """Whether a recording that was heard cannot be read now, so that nobody can tell."""
        m, heard = self._where.get(one.conversation), _stored(one)
        return m is not None and any(heard) and not all(self.now(m) or [""])

    def _hash(self, path: Path) -> str:
        """The hash of a file, which is read once until it is written to."""
        key = path, stamp(path)
        if key not in self._known:
            self._known[key] = fingerprint(path).sha256
        return self._known[key]


def verdicts_in(folder: Path, result: Result) -> Verdicts:
    """What people decided on a results folder, as far as it counts."""
    verdicts = Verdicts(Fingerprints(result).outdated)
    if (folder / FILE).is_file():
        log = Decisions.open(folder / FILE)
        try:
            verdicts.take(log.all())
        finally:
            log.close()
    return verdicts


def held_back(folder: Path, result: Result) -> list[Decision]:
    """The decisions in a results folder that do not count: their recordings have changed."""
    return verdicts_in(folder, result).held()


def _stored(one: Decision) -> Hashes:
    said = one.shown.get(SHA256)
    return said if isinstance(said, list) and all(isinstance(x, str) for x in said) else []


def _differ(a: Hashes, b: Hashes) -> bool:
    """Whether two recordings are surely not the same."""
    if not any(a) or not any(b):
        return False
    return len(a) != len(b) or any(x and y and x != y for x, y in zip(a, b, strict=True))

"""A folder of recordings that nobody has made a table of: what its file names say.

With a pattern (`{caller}_{callee}_{date}.wav`) fields with the names of people are participants, a
field `channel` joins files of one call, and all others become columns. Without one, files of one
channel whose names differ in a mark of the side only (call1_A.wav, call1_B.wav) are one call.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from spklink.column_words import CHANNEL, CONVERSATION, PEOPLE, PERSON, column_for, people_in
from spklink.corpora.corpus import Call, Corpus
from spklink.errors import SpklinkError
from spklink.sound.audio import channels_of
from spklink.sound.background_speech import SOUNDS
from spklink.words import counted

FIELD = re.compile(r"\{([^{}/]+)\}")
ENDINGS = SOUNDS | {".m4a", ".mp4", ".webm", ".amr", ".3gp", ".aac", ".wma", ".mka"}
ENDS = "ab|lr|12|left right|in out|rx tx|caller callee|caller agent|agent customer|agent client"
SIDES = {
    mark: (k, pair)
    for pair in ENDS.split("|")
    for k, mark in enumerate(pair.split() if " " in pair else pair)
}
SIDE = re.compile(
    rf"(.*?)[-_. ]?(?<=[-_. ])(?:ch|chan|channel)?0?({'|'.join(sorted(SIDES, key=len)[::-1])})$",
    re.IGNORECASE,
)
NAMED = 3  # files that a note names


def recordings(folder: Path) -> list[Path]:
    """All recordings below a folder."""
    if not folder.is_dir():
        raise SpklinkError(f"{folder}: not a folder; give one with recordings")
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in ENDINGS and p.is_file())


def read(folder: Path, pattern: str | None, files: list[Path] | None = None) -> Corpus:
    """A first table of all recordings below a folder, or of these files of it."""
    files = recordings(folder) if files is None else files
    if not files:
        raise SpklinkError(f"{folder}: no recordings below it ({', '.join(sorted(ENDINGS))})")
    return _by_pattern(folder, files, pattern) if pattern else _by_side(folder, files)


# --- with a pattern -------------------------------------------------------------------------------


def _by_pattern(folder: Path, files: list[Path], pattern: str) -> Corpus:
    fields, match = _compiled(pattern)
    roles = {PEOPLE: _people(fields, pattern)}
    for role in (CONVERSATION, CHANNEL):
        if (one := column_for(role, [f for f in fields if f not in roles[PEOPLE]])) is not None:
            roles[role] = [one]
    calls: dict[tuple[str, ...], list[tuple[str, Path, dict[str, str]]]] = {}
    strange = []
    for path in files:
        tail = "/".join(path.parts[-1 - pattern.count("/") :])
        found = match.fullmatch(tail)
        if found is None:
            strange.append(path.relative_to(folder).as_posix())
            continue
        said = dict(zip(fields, found.groups(), strict=True))
        side = said.pop(roles[CHANNEL][0]) if CHANNEL in roles else ""
        key = tuple(said.values()) if side else (str(path),)
        calls.setdefault(key, []).append((side, path, said))
    if not calls:
        raise SpklinkError(
            f"--audio {pattern!r}: no file of {folder} is called so; one is {files[0].name!r}"
        )
    made = [_call(some, roles) for some in calls.values()]
    return Corpus(_distinct(made, folder), notes=_left_out(strange))


def _compiled(pattern: str) -> tuple[list[str], re.Pattern[str]]:
    parts = FIELD.split(pattern)
    fields = [part.strip() for part in parts[1::2]]
    if not fields or len(set(fields)) < len(fields):
        raise SpklinkError(f"--audio {pattern!r}: give {{fields}} of different names")
    words = [
        "([^/]+?)" if k % 2 else re.escape(part).replace(r"\*", "[^/]*")
        for k, part in enumerate(parts)
    ]
    return fields, re.compile("".join(words), re.IGNORECASE)


def _people(fields: list[str], pattern: str) -> list[str]:
    both = {"a", "b"} <= set(fields)
    found = people_in(fields) or (["a", "b"] if both else [])
    one = column_for(PEOPLE, fields) or column_for(PERSON, fields)
    if found or one:
        return found or [str(one)]
    raise SpklinkError(
        f"--audio {pattern!r}: which of {', '.join(fields)} are people? call them {{caller}} and "
        "{callee}, or {speaker1} and {speaker2}"
    )


def _call(some: list[tuple[str, Path, dict[str, str]]], roles: dict[str, list[str]]) -> Call:
    ordered = sorted(some, key=lambda one: (one[0].lower(), one[1]))
    _, path, said = ordered[0]
    people = tuple(said[field] for field in roles[PEOPLE])
    used = {*roles[PEOPLE], *roles.get(CONVERSATION, [])}
    more = tuple((name, value) for name, value in said.items() if name not in used)
    name = said[roles[CONVERSATION][0]] if CONVERSATION in roles else path.stem
    return Call(name, tuple(str(one) for _, one, _ in ordered), people, more)


def _distinct(calls: list[Call], folder: Path) -> list[Call]:
    """With ids by their folders, where two would have one."""
    if len({call.id for call in calls}) == len(calls):
        return calls
    paths = [Path(call.audio[0]).relative_to(folder).with_suffix("").as_posix() for call in calls]
    return [
        Call(path, call.audio, call.participants, call.more)
        for path, call in zip(paths, calls, strict=True)
    ]


def _left_out(strange: list[str]) -> list[str]:
    if not strange:
        return []
    shown = ", ".join(strange[:NAMED]) + (" …" if len(strange) > NAMED else "")
    return [f"{counted(len(strange), 'file')} left out, not called by the pattern: {shown}"]


# --- without --------------------------------------------------------------------------------------


def _by_side(folder: Path, files: list[Path]) -> Corpus:
    channels = {path: channels_of(path) for path in files}
    groups: dict[tuple[str, str], list[tuple[int, Path]]] = {}
    for path in files:
        found = SIDE.fullmatch(path.stem)
        if found and found[1] and channels[path] == 1:
            place, pair = SIDES[found[2].lower()]
            groups.setdefault((str(path.parent / found[1]), pair), []).append((place, path))
    joined = {key: some for key, some in groups.items() if sorted(k for k, _ in some) == [0, 1]}
    used = {path for some in joined.values() for _, path in some}
    calls = [
        Call(Path(stem).name.rstrip("-_. "), tuple(str(p) for _, p in sorted(some)), ())
        for (stem, _), some in joined.items()
    ]
    calls += [Call(path.stem, (str(path),), ()) for path in files if path not in used]
    calls.sort(key=lambda call: call.audio)
    notes = ["who takes part is not known: fill in the column participants (anna;ben), or say how "
             "files are called, as in --audio '{caller}_{callee}_{date}.wav'"]  # fmt: skip
    if guess := guessed_pattern(files):
        notes.append(f"they seem to be called so: --audio {guess!r}")
    lonely = sum(channels[path] == 1 for path in files if path not in used)
    if lonely:
        notes.append(f"{counted(lonely, 'recording')} of one channel: linking needs --tracks")
    return Corpus(_distinct(calls, folder), notes=notes)


def guessed_pattern(files: list[Path]) -> str:
    """A pattern in which two parts of most names are people: they recur, now in one place, now in
    the other; "" where there is none."""
    for mark in "_-":
        parts = [path.stem.split(mark) for path in files]
        (width, times), *_ = Counter(map(len, parts)).most_common(1)
        rows = [row for row in parts if len(row) == width]
        if width < 2 or times < 0.8 * len(files):
            continue
        values = [set(column) for column in zip(*rows, strict=True)]
        pairs = [(i, j) for j in range(width) for i in range(j) if _same_people(values, i, j)]
        if pairs:
            names = [f"part{k + 1}" for k in range(width)]
            names[pairs[0][0]], names[pairs[0][1]] = "caller", "callee"
            return mark.join(f"{{{name}}}" for name in names) + files[0].suffix
    return ""


def _same_people(values: list[set[str]], i: int, j: int) -> bool:
    return 2 * len(values[i] & values[j]) >= min(len(values[i]), len(values[j])) > 1

"""Gridspace-Stanford Harper Valley: `data/audio/agent` and `data/audio/caller` with a mono file a
call each, `data/metadata` and `data/transcript` with a JSON a call. The agent's file is
channel 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spklink.corpora.corpus import Corpus, Stretch, found_below, gathered, one_below
from spklink.corpora.table import refuse_component
from spklink.errors import SpklinkError
from spklink.json_files import ANYTHING, read_json

ROLES = {"agent": 1, "caller": 2}
MILLISECONDS = 1000.0


def read(folder: Path, component: str | None) -> Corpus:
    refuse_component(component, "harpervalley")
    data = one_below(folder, "data") or folder
    parts = [one_below(data, "audio", role) for role in ROLES]
    metadata, transcript = one_below(data, "metadata"), one_below(data, "transcript")
    if metadata is None or None in parts:
        raise SpklinkError(f"{data}: no audio/agent, audio/caller, metadata: no Harper Valley")
    agents, callers = (found_below(part) for part in parts if part is not None)
    both = [name for name in agents if name in callers]
    audio = {agents[name].stem: (str(agents[name]), str(callers[name])) for name in both}
    said: list[Stretch] = []
    for name in audio:
        people = _people(metadata / f"{name}.json")
        said += [Stretch(name, who, ROLES[role]) for role, who in people.items()]
        if transcript is not None and (transcript / f"{name}.json").is_file():
            said += _turns(transcript / f"{name}.json", name, people)
    return gathered(audio, said)


def _people(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = read_json(path, ANYTHING, "the metadata of a call")
    people = {role: found.get(role, {}).get("speaker_id") for role in ROLES}
    return {role: f"hv{who}" for role, who in people.items() if who is not None}


def _turns(path: Path, name: str, people: dict[str, str]) -> Iterator[Stretch]:
    for one in read_json(path, ANYTHING, "the transcript of a call"):
        role = one.get("speaker_role")
        if role in people and "offset_ms" in one and "duration_ms" in one:
            start = one["offset_ms"] / MILLISECONDS
            end = start + one["duration_ms"] / MILLISECONDS
            yield Stretch(name, people[role], ROLES[role], start, round(end, 3))

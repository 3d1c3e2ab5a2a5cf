"""Lhotse manifests: `*recordings*.jsonl[.gz]` and `*supervisions*.jsonl[.gz]` in a folder.

Lhotse counts channels from 0. Recordings of several channels are calls whose channels are claimed;
recordings of one channel with several people are diarized.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spklink.corpora.corpus import Corpus, Stretch, diarized, gathered
from spklink.corpora.table import refuse_component
from spklink.errors import SpklinkError


def read(folder: Path, component: str | None) -> Corpus:
    refuse_component(component, "lhotse")
    audio: dict[str, tuple[str, ...]] = {}
    channels: dict[str, int] = {}
    for row, where in _rows(folder, "recordings"):
        name = str(_of(row, "id", where))
        audio[name] = _files(folder, row, where)
        channels[name] = sum(len(_of(one, "channels", where)) for one in _of(row, "sources", where))
    said, sexes = [], {}
    for row, where in _rows(folder, "supervisions"):
        name, who = str(_of(row, "recording_id", where)), row.get("speaker")
        if who is None:
            continue
        start, length = float(_of(row, "start", where)), float(_of(row, "duration", where))
        place = _channel(row.get("channel", 0)) if channels.get(name, 1) > 1 else None
        said.append(Stretch(name, str(who), place, start, round(start + length, 6)))
        if row.get("gender"):
            sexes[str(who)] = str(row["gender"])
    mono = all(count == 1 for count in channels.values())
    return (diarized if mono else gathered)(audio, said, speakers=sorted(sexes.items()))


def _channel(value: Any) -> int | None:
    """Counted from 1; None where it is several."""
    some = value if isinstance(value, list) else [value]
    return int(some[0]) + 1 if len(some) == 1 else None


def _of(row: Any, key: str, where: str) -> Any:
    if not isinstance(row, dict) or key not in row:
        raise SpklinkError(f"{where}: no {key!r}; is it a manifest of Lhotse?")
    return row[key]


def _files(folder: Path, row: dict[str, Any], where: str) -> tuple[str, ...]:
    found = []
    sources = _of(row, "sources", where)
    for one in sorted(sources, key=lambda source: min(_of(source, "channels", where), default=0)):
        kind, name = _of(one, "type", where), str(_of(one, "source", where))
        if kind == "url":
            found.append(name)
        elif kind == "file":
            near = Path(name) if Path(name).exists() else folder / name
            found.append(str(near))
        else:
            raise SpklinkError(
                f"{where}: recording {row['id']!r} comes from a {kind}, which is not run here; "
                "save the recordings (lhotse copy-recordings) and use that manifest"
            )
    return tuple(found)


def _rows(folder: Path, kind: str) -> Iterator[tuple[Any, str]]:
    """The objects of all manifests of a kind, each with its place."""
    paths = sorted(p for p in folder.glob(f"*{kind}*") if _ending(p) == ".jsonl")
    if not paths:
        raise SpklinkError(f"{folder}: no *{kind}*.jsonl or .jsonl.gz: no manifests of Lhotse")
    for path in paths:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        try:
            with opened(path, "rt", encoding="utf-8") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield json.loads(line), f"{path}: row {number}"
        except (ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
            raise SpklinkError(f"{path}: cannot be read ({str(error)[:100]})") from None


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix

"""What is handed over: decisions as known channels, the final table, changes, the log.

file               what it is
known.csv          conversation,channel,speaker   what was heard; for --known
conversations.csv  the table with the lists as they were heard, which known.csv fits
assignments.csv    who is on which track, with `origin` (inferred, given, heard) and `by` whom
changes.csv        tracks on which somebody else is than was claimed
log.jsonl          all decisions, an entry a line, each with the hash of the one before
review.json        the last hash, how far it is, how often blind decisions agree
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spklink.arrays import EQUAL
from spklink.database.conversations import Conversations
from spklink.database.labels import read_claims
from spklink.database.lists import CERTAIN, OPEN, OTHERS, POSSIBLE, SOMEBODY, UNKNOWN
from spklink.decisions.log import UNDO, Decision, verify
from spklink.decisions.verdicts import Seats
from spklink.errors import check_folder
from spklink.options import relative
from spklink.review.desk import Desk
from spklink.review.views import Track, tracks_of
from spklink.runs.folder import make_folder
from spklink.runs.rows import ASSIGNMENTS, UNRESOLVABLE
from spklink.runs.stages import Stages
from spklink.tables import SEPARATOR, Table, probability_text, write_bytes, write_csv, write_json

KNOWN = ("conversation", "channel", "speaker")
LISTS = (
    *("conversation", "speaker", "status", "probability"),
    *("audio", "prior", "group", "tracks"),
)
CHANGES = (
    *("conversation", "channel", "claimed", "speaker", "probability", "origin", "by"),
    "decision",
)
LOG, REVIEW = "log.jsonl", "review.json"


def summary(
    folder: Path, *, workers: int | None = None, stages: Stages | None = None
) -> dict[str, Any]:
    """What was decided in a results folder; the log is held against its hashes."""
    return _summary(Desk.open(folder, workers=workers, stages=stages))


def log_summary(entries: list[Decision], path: Path) -> dict[str, Any]:
    """What a log says about itself, once it fits its hashes."""
    last = verify(entries, path)
    said = Counter(one.reviewer for one in entries if one.verdict != UNDO)
    return {"entries": len(entries), "last_hash": last, "reviewers": dict(said)}


def _summary(desk: Desk) -> dict[str, Any]:
    found = log_summary(desk.log.all(), desk.log.path)
    verdicts = desk.verdicts.by_conversation
    words = (one for verdict in verdicts.values() for one in verdict.words.values())
    return {
        **found,
        "undone": len(desk.verdicts.undone),
        "disagreements": [name for name, one in verdicts.items() if one.disagree],
        "foreign": [name for name in verdicts if name not in desk.where],
        "held_back": [_about(one) for one in desk.verdicts.held()],
        "unchecked": [_about(one) for one in words if desk.fingerprints.missing(one)],
        "progress": desk.progress().as_json(),
        "agreement": desk.agreement().as_json(),
    }


def _about(one: Decision) -> dict[str, Any]:
    return {
        "conversation": one.conversation,
        "reviewer": one.reviewer,
        "time": one.time,
        "entry": one.number,
    }


def export(
    folder: Path,
    out: Path,
    *,
    claimed: Table | None = None,
    workers: int | None = None,
    stages: Stages | None = None,
) -> tuple[dict[str, Any], list[Path]]:
    """Write all of it; what it says, and the files."""
    check_folder(out)
    desk = Desk.open(folder, workers=workers, stages=stages)
    found, table = _summary(desk), desk.table
    claims = _claims(desk, claimed)
    make_folder(out)
    safe = bool(desk.result.options.get("safe_csv", False))
    write_csv(out / "known.csv", KNOWN, known_rows(desk))
    write_csv(out / "conversations.csv", LISTS, list_rows(desk, out))
    names = ["known.csv", "conversations.csv", "assignments.csv"]
    rows = [(m, track) for m in range(table.asked) for track in _tracks(desk, m)]
    write_csv(
        out / "assignments.csv",
        (*ASSIGNMENTS, "by"),
        (_assigned(desk, m, track) for m, track in rows),
        safe=safe,
    )
    if claims is not None:
        changed = (_changed(desk, m, track, claims) for m, track in rows)
        write_csv(out / "changes.csv", CHANGES, filter(None, changed), safe=safe)
        names.append("changes.csv")
    lines = "".join(f"{one.text}\n" for one in desk.log.all())
    write_bytes(out / LOG, lines.encode())
    write_json(out / REVIEW, found)
    return found, [out / name for name in (*names, LOG, REVIEW)]


# --- what was heard -------------------------------------------------------------------------------


def known_rows(desk: Desk) -> Iterator[tuple[str, str, str]]:
    """What holds of tracks, in the order of the table."""
    for m, name in enumerate(desk.table.ids[: desk.table.asked]):
        labels = desk.table.tracks(m)
        for label, who in zip(labels, desk.verdict(m).seats or (), strict=False):
            if who is not None:
                yield name, label, who


def list_rows(desk: Desk, out: Path) -> Iterator[tuple[Any, ...]]:
    """The table of conversations, a row an entry, with lists as they were heard."""
    table = desk.table
    for m, name in enumerate(table.ids[: table.asked]):
        entries, seats = _entries(table, m), desk.verdict(m).seats
        heard = entries if seats is None else _heard(entries, seats, bool(table.open[m]))
        prior = float(table.prior[m])
        files = (relative(desk.folder / file, out) if file else "" for file in table.audio[m])
        of_call = (
            SEPARATOR.join(files),
            f"{prior:.10g}" if prior != 0.5 and heard == entries else "",
            table.groups[table.group[m]] if len(table.group) else "",
            "" if table.diarized else int(table.sides.counts[m]),
        )
        for who, status, chance in heard:
            yield name, who, status, chance, *of_call


Entry = tuple[str, str, str]  # name, status, probability


def _entries(table: Conversations, m: int) -> list[Entry]:
    own = table.listing.of(m)
    found = []
    for name, possible, chance in zip(
        table.names(m), table.possible[own].tolist(), table.presence[own].tolist(), strict=True
    ):
        found.append((name, POSSIBLE, f"{chance:.10g}") if possible else (name, CERTAIN, ""))
    found += [(SOMEBODY, UNKNOWN, "")] * int(table.unknown[m])
    return found + ([(OTHERS, OPEN, "")] if table.open[m] else [])


def _heard(entries: list[Entry], seats: Seats, open_: bool) -> list[Entry]:
    """The list that fits what was heard: nobody is changed where that fits already."""
    named = [who for who in seats if who not in (None, OTHERS)]
    listed = {name for name, status, _ in entries if status in (CERTAIN, POSSIBLE)}
    strangers = sum(who == OTHERS for who in seats)
    certain = sum(status == CERTAIN for _, status, _ in entries)
    if set(named) <= listed and certain + strangers <= len(seats):
        return entries
    found: list[Entry] = [(str(who), CERTAIN, "") for who in dict.fromkeys(named)]
    found += [(SOMEBODY, UNKNOWN, "")] * strangers
    if None in seats:  # on these tracks may be whoever was listed
        rest = (one for one in entries if one[1] in (CERTAIN, POSSIBLE) and one[0] not in named)
        found += [(name, POSSIBLE, chance or "") for name, _, chance in rest]
    return found + ([(OTHERS, OPEN, "")] if open_ else [])


# --- the final table ------------------------------------------------------------------------------


def _tracks(desk: Desk, m: int) -> Iterator[Track]:
    return tracks_of(desk, *desk.place_of(m))


def _assigned(desk: Desk, m: int, track: Track) -> tuple[Any, ...]:
    part, i = desk.place_of(m)
    return (
        desk.table.ids[m],
        track.side - int(desk.table.sides.start[m]) + 1,
        track.name or "",
        probability_text(track.probability),
        int(desk.cliques.label[m]) + 1,
        probability_text(track.low),
        probability_text(track.high),
        part.certainty(i),
        track.origin,
        track.decision,
        SEPARATOR.join(track.by),
    )


def _claims(desk: Desk, claimed: Table | None) -> dict[int, str] | None:
    """Who was claimed to be on sides: as given, else in what the run found suspicious."""
    table = desk.table
    if claimed is not None:
        said = read_claims(claimed, table).said
        sides = (table.sides.start[said.conversation] + said.track).tolist()
        return dict(zip(sides, said.names, strict=True))
    heard = desk.result.listening
    if heard is None or heard.suspects is None:
        return None
    found: dict[int, str] = {}
    for name, _, names, _ in heard.suspects:
        first = int(table.sides.start[desk.where[name]])
        found |= {first + k: who for k, who in enumerate(names.split(SEPARATOR)) if who != SOMEBODY}
    return found


def _changed(desk: Desk, m: int, track: Track, claims: dict[int, str]) -> tuple[Any, ...] | None:
    said = claims.get(track.side)
    if said is None or track.name is None or said == track.name:
        return None
    if track.decision == UNRESOLVABLE and track.probability <= 0.5 + EQUAL:
        return None  # the claim is as good as its mirror image
    channel = track.side - int(desk.table.sides.start[m]) + 1
    sure = probability_text(track.probability)
    by = SEPARATOR.join(track.by)
    return desk.table.ids[m], channel, said, track.name, sure, track.origin, by, track.decision

"""ELAN's .eaf, one a conversation: a tier a side, with its person as participant.

An annotation says the person; where all is exported, also the probability. The date that the format
asks for is always the same, so that the same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from spklink.formats.out.labelled import (
    Labelled,
    LabelledSide,
    Recording,
    is_elsewhere,
    short,
    write_lines,
)

DATE = "1970-01-01T00:00:00+00:00"
SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
TYPES = {".wav": "audio/x-wav", ".mp3": "audio/mpeg"}
TYPE = "speech"  # of all tiers


def write(labelled: Labelled, folder: Path) -> None:
    for one in labelled.recordings():
        name = labelled.names.file(one.id, ".eaf")
        write_lines(folder / name, _lines(labelled, one))


def _lines(labelled: Labelled, one: Recording) -> Iterator[str]:
    slots = [int(time) for side in one.sides for time in side.times.ravel()]
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        f'<ANNOTATION_DOCUMENT AUTHOR="" DATE="{DATE}" FORMAT="3.0" VERSION="3.0" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:noNamespaceSchemaLocation="{SCHEMA}">'
    )
    yield '<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">'
    yield from map(_medium, one.files)
    yield f'<PROPERTY NAME="lastUsedAnnotationId">{len(slots) // 2}</PROPERTY>'
    yield from ("</HEADER>", "<TIME_ORDER>")
    for number, time in enumerate(slots, start=1):
        yield f'<TIME_SLOT TIME_SLOT_ID="ts{number}" TIME_VALUE="{time}"/>'
    yield "</TIME_ORDER>"
    done = 0
    for tier, side in one.named():
        yield from _tier(labelled, tier, side, done)
        done += len(side.times)
    yield (
        f'<LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="{TYPE}" '
        'TIME_ALIGNABLE="true"/>'
    )
    yield "</ANNOTATION_DOCUMENT>"


def _medium(file: str) -> str:
    kind = TYPES.get(Path(file).suffix.lower(), "unknown")
    url = quoteattr(file if is_elsewhere(file) else Path(file).as_uri())
    return f'<MEDIA_DESCRIPTOR MEDIA_URL={url} MIME_TYPE="{kind}"/>'


def _tier(labelled: Labelled, tier: str, side: LabelledSide, done: int) -> Iterator[str]:
    """One tier, the slots of whose annotations come after `done` others."""
    who = labelled.names.text("speaker", side.speaker)
    text = f"{who} {short(side.probability)}" if labelled.whole else who
    named = quoteattr(labelled.names.text("tier", tier))
    yield f'<TIER LINGUISTIC_TYPE_REF="{TYPE}" PARTICIPANT={quoteattr(who)} TIER_ID={named}>'
    for number in range(done + 1, done + len(side.times) + 1):
        slots = f'TIME_SLOT_REF1="ts{2 * number - 1}" TIME_SLOT_REF2="ts{2 * number}"'
        yield f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{number}" {slots}>'
        yield f"<ANNOTATION_VALUE>{escape(text)}</ANNOTATION_VALUE>"
        yield "</ALIGNABLE_ANNOTATION></ANNOTATION>"
    yield "</TIER>"

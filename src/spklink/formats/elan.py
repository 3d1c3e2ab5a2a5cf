"""Turns as ELAN writes them (.eaf): tiers that hang on no other, of their participant.

XML of anybody: a document type or an entity is refused, so that none is ever expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from spklink.errors import SpklinkError
from spklink.formats.turn import SILENCE, Turn, stem_of, unpacked
from spklink.tables import Content

MILLISECONDS = 1000.0


@dataclass(slots=True)
class _Annotation:
    line: int
    speaker: str
    slots: tuple[str, str]
    text: str = ""


@dataclass(slots=True)
class _Document:
    """What has been seen of a file."""

    times: dict[str, float | None] = field(default_factory=dict)  # of slots, in seconds
    annotations: list[_Annotation] = field(default_factory=list)
    speaker: str = ""  # of the tier that is open; empty where it hangs on another
    inside: bool = False  # of the text of an annotation that counts
    root: str = ""


def read(content: Content) -> Iterator[Turn | str]:
    """The turns, and what is wrong with annotations that are none."""
    found, name = _parsed(content), stem_of(content)
    for one in found.annotations:
        place = f"line {one.line}"
        if one.text.strip().lower() in SILENCE:
            continue
        start, end = (found.times.get(slot) for slot in one.slots)
        if start is None or end is None:
            yield f"{place}: an annotation of {one.speaker!r} whose time is not given"
        else:
            yield Turn(name, one.speaker, start, end, place)


def _parsed(content: Content) -> _Document:
    found = _Document()
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise SpklinkError(
            f"{content.path}: line {parser.CurrentLineNumber}: a document type or entity, which "
            "no file of ELAN has; it is not read"
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        found.root = found.root or tag
        _open(found, tag, attributes, parser.CurrentLineNumber)

    def end(tag: str) -> None:
        if tag == "TIER":
            found.speaker = ""
        elif tag == "ANNOTATION_VALUE":
            found.inside = False

    def text(data: str) -> None:
        if found.inside:
            found.annotations[-1].text += data

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(unpacked(content), True)
    except expat.ExpatError as error:
        raise SpklinkError(f"{content.path}: not XML ({error})") from None
    if found.root != "ANNOTATION_DOCUMENT":
        raise SpklinkError(
            f"{content.path}: not a file of ELAN: it begins with {found.root[:40]!r}"
        )
    return found


def _open(found: _Document, tag: str, attributes: dict[str, str], line: int) -> None:
    if tag == "TIME_SLOT":
        value = attributes.get("TIME_VALUE", "")
        known = value.lstrip("-").isdecimal()
        found.times[attributes.get("TIME_SLOT_ID", "")] = (
            int(value) / MILLISECONDS if known else None
        )
    elif tag == "TIER":
        own = attributes.get("PARTICIPANT", "").strip() or attributes.get("TIER_ID", "").strip()
        found.speaker = "" if attributes.get("PARENT_REF") else own
    elif tag == "ALIGNABLE_ANNOTATION" and found.speaker:
        slots = attributes.get("TIME_SLOT_REF1", ""), attributes.get("TIME_SLOT_REF2", "")
        found.annotations.append(_Annotation(line, found.speaker, slots))
    elif tag == "ANNOTATION_VALUE":
        found.inside = bool(found.speaker and found.annotations)

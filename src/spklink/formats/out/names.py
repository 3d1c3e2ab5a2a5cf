"""Names of others in formats that cannot carry all of them.

A character that a format cannot carry is written as in addresses of the web: % and two digits for
each of its bytes in UTF-8. A % that two such digits follow is written so too, so that names can be
told apart and read back. Whatever was changed is remembered: names.csv.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

DIVIDING = "<>;"  # what some formats take for marks of their own, beside white space
IN_FILES = '/\\:*?"<>|'  # what some systems do not allow in names of files
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
LONGEST = 120  # characters of the name of a file
COLUMNS = ("what", "name", "written")


@dataclass
class Names:
    """How names are written, and which had to be changed."""

    changed: dict[tuple[str, str], str] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)  # by how some systems compare them

    def word(self, what: str, name: str) -> str:
        """A name between blanks."""
        return self._kept(what, name, escaped(name, lambda c: c.isspace() or c in DIVIDING))

    def sorting(self, what: str, name: str) -> str:
        """The same with nothing in it that sorts before a dot, the hyphen above all: names that are
        followed by a hyphen then sort as they do by themselves. Escapes begin with =."""
        word = escaped(name, lambda c: c.isspace() or c in DIVIDING)
        strict = "".join(f"={ord(c):02X}" if c < "." or c == "=" else c for c in word)
        return self._kept(what, name, strict)

    def text(self, what: str, name: str) -> str:
        """A name in a format that carries any text."""
        return self._kept(what, name, escaped(name, lambda _: False))

    def file(self, name: str, ending: str) -> str:
        """The name of a file on any system; two names are never one file."""
        stem = escaped(name, lambda c: c in IN_FILES)
        if stem[:1] in ("", ".", " ", "~") or DEVICES.fullmatch(stem):
            stem = f"%{ord(stem[0]):02X}{stem[1:]}" if stem else "%"
        if stem[-1] in ". ":
            stem = f"{stem[:-1]}%{ord(stem[-1]):02X}"
        if len(stem.encode()) > LONGEST:
            stem = f"{stem.encode()[:LONGEST].decode(errors='ignore')}~{_hash(name)}"
        same = unicodedata.normalize("NFC", stem).casefold()
        if self._files.setdefault(same, name) != name:
            stem = f"{stem}~{_hash(name)}"
        self._kept("file", name, stem)
        return f"{stem}{ending}"

    def _kept(self, what: str, name: str, written: str) -> str:
        if written != name:
            self.changed[what, name] = written
        return written

    def rows(self) -> list[tuple[str, str, str]]:
        return [(what, name, written) for (what, name), written in self.changed.items()]


def escaped(name: str, odd: Callable[[str], bool]) -> str:
    """With escapes for odd characters; control characters are odd everywhere."""
    parts = []
    for at, letter in enumerate(name):
        control = unicodedata.category(letter) in ("Cc", "Cs", "Cn", "Zl", "Zp")
        known = letter == "%" and re.match("[0-9A-Fa-f]{2}", name[at + 1 : at + 3])
        if control or known or odd(letter):
            parts.append("".join(f"%{byte:02X}" for byte in letter.encode(errors="replace")))
        else:
            parts.append(letter)
    return "".join(parts)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]

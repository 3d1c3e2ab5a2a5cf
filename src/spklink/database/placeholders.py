"""Names that look as if they stood for somebody whom nobody knew.

A name is one person wherever it stands. Who writes NN for everybody unknown has made one person of
many, with a voice that fits nobody; lists have the mark ? for that (module `lists`).
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

from spklink.texts import Texts, coded

UNKNOWN = (
    *("nn", "na", "nan", "none", "null", "nil", "void", "empty", "missing", "tba", "tbd", "todo"),
    *("unk", "unkn", "unknown", "unnamed", "noname", "nobody", "somebody", "someone", "anyone"),
    *("anon", "anonym", "anonymous", "anonymus", "anonyme", "anoniem", "unidentified"),
    *("onbekend", "onbekende", "niemand", "iemand", "unbekannt", "unbekannte", "unbekannter"),
    *("jemand", "inconnu", "inconnue", "personne", "desconocido", "desconocida", "desconhecido"),
    *("sconosciuto", "sconosciuta", "ignoto", "okand", "ukjent", "ukendt", "tuntematon"),
    *("nieznany", "nieznana", "neznamy", "неизвестно", "неизвестныи", "неизвестен", "不明", "未知"),
)
# What people are, not who: these also with a number or a letter, as diarizers write them.
ROLES = (
    *("speaker", "spkr", "spk", "participant", "person", "voice", "channel", "track", "party"),
    *("agent", "caller", "callee", "customer", "client", "operator", "user", "guest", "other"),
    *("interviewer", "interviewee", "man", "woman", "male", "female", "klant", "kunde", "spreker"),
    *("beller", "anrufer", "sprecher", "locuteur", "interlocuteur", "hablante"),
)
ROLE = re.compile(rf"(?:{'|'.join(ROLES)})(?:\d+|[a-d])?")
MARKS = re.compile(r"[^a-z0-9]+")
FEW = 5_000  # names that are looked at one by one


def placeholders(names: Texts) -> NDArray[np.int64]:
    """Those that are, by number. Of many names each is looked at once whatever its digits are."""
    if len(names) <= FEW:
        return np.array([k for k, name in enumerate(names) if is_placeholder(name)], np.int64)
    from pyarrow import compute

    which, shapes = coded(compute.replace_substring_regex(names.arrow(), "[0-9]+", "0"))
    return np.flatnonzero(np.array([is_placeholder(shape) for shape in shapes])[which])


def is_placeholder(name: str) -> bool:
    """Whether a name is mostly written for somebody unknown."""
    if name.isascii():
        letters = MARKS.sub("", name.lower())  # N.N., n/a, <unknown>, SPEAKER_01
    else:
        plain = unicodedata.normalize("NFKD", name).casefold()
        letters = "".join(c for c in plain if c.isalnum())
    repeated = len(letters) > 1 and set(letters) <= {"x"}
    return not letters or letters in UNKNOWN or repeated or bool(ROLE.fullmatch(letters))

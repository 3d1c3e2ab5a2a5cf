"""Names that look as if they stood for somebody whom nobody knew.

A name is one person wherever it stands. Who writes NN for everybody unknown has made one person of
many, with a voice that fits nobody; lists have the mark ? for that (module `lists`).
"""

from __future__ import annotations

import re
import unicodedata

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


def is_placeholder(name: str) -> bool:
    """Whether a name is mostly written for somebody unknown."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    letters = "".join(c for c in plain if c.isalnum())  # N.N., n/a, <unknown>, SPEAKER_01
    repeated = len(letters) > 1 and set(letters) <= {"x"}
    return not letters or letters in UNKNOWN or repeated or bool(ROLE.fullmatch(letters))

"""Single conversations: which to look at, who is where, what speaks for it and against.

Where there is an answer in full, all of this comes from that (`seats`); the evidence is that of
`runs.weighed`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.sides import names_on
from spklink.measures.bounds import Bounds
from spklink.posterior.posterior import SETTLED
from spklink.report import seats
from spklink.report.answers import answers_about
from spklink.report.evidence import conclusion, exchange_strength
from spklink.report.results import Results
from spklink.report.seats import chance
from spklink.report.strength import in_words, times
from spklink.runs.claims import find_suspects
from spklink.runs.part import Part
from spklink.runs.questions import first_to_hear
from spklink.runs.weighed import Weighed, least_certain, weigh

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_CONVERSATIONS = 1000  # of which the page holds details
MOST_TEXT = 600_000  # characters of ids and names in them
MOST_SUSPECTS = 200
TO_LISTEN = 10


def open_bits(results: Results) -> Floats:
    """(M,) entropy of every conversation alone: what listening to it would tell, on average; of
    the answer in full that of its least certain track."""
    if not results.answer.binary:
        return seats.doubt(results.answer)
    p = np.clip(results.posterior.exchanged, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where((p > 0.0) & (p < 1.0), -p * np.log2(p) - (1 - p) * np.log2(1 - p), 0.0)
    return np.asarray(terms)


def suspects(results: Results) -> Ints:
    """Conversations whose claimed channels are contradicted, the worst first."""
    if results.claimed is None:
        return np.zeros(0, np.int64)
    return find_suspects(results.answer, results.claimed)[0]


def doubted(results: Results) -> Ints:
    """Conversations whose claims or lists are contradicted."""
    if results.answer.binary:
        return suspects(results)
    return np.concatenate([suspects(results), seats.wrong_calls(results.answer)])


def sureness(results: Results) -> tuple[Floats, Floats, Floats]:
    """(M,) how probable what is said of a conversation is, with both ends: of the answer in full,
    that of its least certain track."""
    if results.answer.binary:
        return results.posterior.confidence()
    found = results.answer.confidence[least_certain(results.answer)]
    return found.chance, found.low, found.high


def settled(results: Results) -> NDArray[np.bool_]:
    """(M,) conversations that need no listening."""
    if results.answer.binary:
        return results.posterior.settled()
    return seats.settled_calls(results)


def to_listen(results: Results) -> list[dict[str, Any]]:
    """What to listen to first, in the order of `spklink queue`."""
    table = results.table
    part = Part(np.arange(len(table)), results.evidence, results.answer, results.usable())
    return [
        {
            "conversation": one.conversation,
            "clique": one.clique + 1,
            "bits": significant(one.bits),
            "settles": significant(one.settles),
            "probability": chance(one.probability),
            "question": one.question,
            "participants": list(table.names(one.m)),
            "recording": list(table.audio[one.m]),
        }
        for one in first_to_hear(part, TO_LISTEN)
    ]


def choose(results: Results, drawn: Iterable[int]) -> list[int]:
    """Conversations with details: suspects, those in the pictures, then the least certain."""
    bits = np.round(open_bits(results), 9)
    doubtful = np.lexsort((np.arange(len(bits)), -bits))
    chosen: dict[int, None] = {}
    room = MOST_TEXT
    for m in (*doubted(results)[:MOST_SUSPECTS].tolist(), *drawn, *doubtful.tolist()):
        if len(chosen) >= MOST_CONVERSATIONS or room < 0:
            break
        if m not in chosen:
            chosen[m] = None
            room -= len(results.table.ids[m])
    return sorted(chosen, key=lambda m: (-bits[m], m))


def conversations(
    results: Results, chosen: list[int], weighed: Weighed, bounds: Bounds, scale: str | None
) -> list[dict[str, Any]]:
    """All there is to say about the chosen conversations, the least certain first."""
    figures, bits, cliques = sureness(results), open_bits(results), results.cliques
    suspicious = set(doubted(results).tolist())
    certainty = results.answer.certainty
    rows = []
    for m in chosen:
        k = int(cliques.label[m])
        row = {
            "number": m + 1,
            "conversation": results.table.ids[m],
            **_who(results, m),
            "probability": chance(figures[0][m]),
            "low": chance(figures[1][m]),
            "high": chance(figures[2][m]),
            **({} if not results.answer.binary else {"bits": significant(bits[m])}),
            "clique": k + 1,
            "certainty": certainty[k],
            "kind": kind_of(figures[1][m], bool(cliques.resolvable[k])),
            "suspicious": m in suspicious,
            **_answers(results, m),
            **conclusion(results, weighed, bounds, m, scale),
            "recordings": recordings(results, m),
        }
        if results.speech is not None:
            sides = results.table.sides.of(m)
            if results.speech.known:
                row["speech_seconds"] = results.speech.seconds[sides].tolist()
            row["marks"] = results.speech.marks[sides]
        rows.append(row)
    return rows


def _answers(results: Results, m: int) -> dict[str, Any]:
    """What people said of a conversation, where anybody said something."""
    found = answers_about(results, m)
    return {"answers": found} if found else {}


def recordings(results: Results, m: int) -> list[dict[str, Any]]:
    """The files of a conversation, each with its hash and its length, where they are known."""
    speech, first = results.speech, int(results.table.sides.start[m])
    rows = []
    for k, file in enumerate(results.table.audio[m]):
        row: dict[str, Any] = {"file": file, "sha256": "", "seconds": None}
        if speech is not None:
            row["sha256"] = speech.sha256[first + k]
            row["seconds"] = None if speech.lengths is None else float(speech.lengths[first + k])
        rows.append(row)
    return rows


def _who(results: Results, m: int) -> dict[str, Any]:
    """The people on the tracks of a conversation; in full where there is an answer in full."""
    if results.answer.binary:
        return {"speakers": [*names_on(results.table, m, int(results.posterior.best[m]))]}
    return {
        "tracks": seats.tracks_of(results, m),
        "listed": seats.listed_people(results, m),
        "wrong_list": chance(results.answer.wrong.chance[m]),
    }


def kind_of(low: float, resolvable: bool) -> str:
    """The class of certainty that pictures show by colour."""
    if not resolvable:
        return "unresolvable"
    return next(name for name, least in KINDS if low >= least)


KINDS = (("settled", SETTLED), ("likely", 0.9), ("leaning", 0.75), ("open", -1.0))


def suspicious(
    results: Results, bounds: Bounds, chosen: Container[int], scale: str | None
) -> dict[str, Any] | None:
    """Claims that the voices contradict; None where nothing was claimed."""
    if results.claimed is None:
        return None
    order, wrong = find_suspects(results.answer, results.claimed)
    weighed = weigh(results.evidence, results.answer.given(lists_right=True))
    strength = exchange_strength(weighed, results.claimed, results.posterior.best)
    rows = []
    for m in order[:MOST_SUSPECTS].tolist():
        bit, stated = int(results.claimed[m]), bounds.limited(float(strength[m]))
        rows.append(
            {
                "number": m + 1 if m in chosen else None,
                "conversation": results.table.ids[m],
                "probability": chance(wrong[m]),
                "strength": float(strength[m]),
                "stated": stated,
                "times": times(stated),
                "words": in_words(scale, stated),
                "claimed": list(names_on(results.table, m, bit)),
                "suggested": list(names_on(results.table, m, 1 - bit)),
            }
        )
    return {"count": len(order), "claims": int((results.claimed >= 0).sum()), "rows": rows}


def significant(value: float) -> float:
    return float(f"{float(value):.5g}")

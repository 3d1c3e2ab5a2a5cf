"""Single conversations: which to look at, who is where, what speaks for it and against.

Evidence is given a link at a time, in bits: how much more probable the shared voice makes the
channels as assigned than exchanged, while all other conversations stay as they are assigned. Where
there is an answer in full, all of this comes from that (`seats`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.database.sides import names_on
from spklink.posterior.likelihood import link_terms
from spklink.posterior.posterior import SETTLED
from spklink.report import seats
from spklink.report.cues import said_by, split
from spklink.report.results import Results
from spklink.report.seats import chance
from spklink.runs.claims import find_suspects
from spklink.runs.weighed import least_certain

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_CONVERSATIONS = 2000  # of which the page holds details
MOST_TEXT = 600_000  # characters of ids and names in them
MOST_EVIDENCE = 4  # links a conversation
MOST_SUSPECTS = 200
TO_LISTEN = 10
LN2 = float(np.log(2.0))


def open_bits(results: Results) -> Floats:
    """(M,) entropy of every conversation alone: what listening to it would tell, on average; of
    the answer in full that of its least certain track."""
    if results.seating is not None:
        return seats.doubt(results.seating)
    p = np.clip(results.posterior.exchanged, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where((p > 0.0) & (p < 1.0), -p * np.log2(p) - (1 - p) * np.log2(1 - p), 0.0)
    return np.asarray(terms)


def suspects(results: Results) -> Ints:
    """Conversations whose claimed channels are contradicted, the worst first."""
    if results.claimed is None:
        return np.zeros(0, np.int64)
    return find_suspects(results.posterior, results.claimed, results.seating)[0]


def doubted(results: Results) -> Ints:
    """Conversations whose claims or lists are contradicted."""
    if results.seating is None:
        return suspects(results)
    return np.concatenate([suspects(results), seats.wrong_calls(results.seating)])


def sureness(results: Results) -> tuple[Floats, Floats, Floats]:
    """(M,) how probable what is said of a conversation is, with both ends: of the answer in full,
    that of its least certain track."""
    if results.seating is None:
        return results.posterior.confidence()
    found = results.seating.confidence[least_certain(results.seating)]
    return found.chance, found.low, found.high


def settled(results: Results) -> NDArray[np.bool_]:
    """(M,) conversations that need no listening."""
    if results.seating is None:
        return results.posterior.settled()
    return seats.settled_calls(results)


def to_listen(results: Results) -> list[dict[str, Any]]:
    """What to listen to first: what tells most in each clique, then whatever else tells most.

    In an unresolvable clique one conversation settles what voices cannot tell of all the others.
    """
    cliques, bits = results.cliques, open_bits(results)
    label, sure = cliques.label, sureness(results)[0]
    order = np.lexsort((np.arange(len(bits)), -np.round(bits, 9)))
    order = order[bits[order] > 1e-3]
    first = np.sort(np.unique(label[order], return_index=True)[1])
    further = np.setdiff1d(np.arange(len(order)), first)
    further = further[cliques.resolvable[label[order[further]]]]
    first = np.concatenate([first, further])[:TO_LISTEN]
    table = results.table
    return [
        {
            "conversation": table.ids[m],
            "clique": int(label[m]) + 1,
            "bits": None if results.seating is not None else significant(bits[m]),
            "probability": chance(sure[m]),
            "participants": list(table.names(m)),
            "recording": list(table.audio[m]),
        }
        for m in order[first].tolist()
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


def conversations(results: Results, chosen: list[int]) -> list[dict[str, Any]]:
    """All there is to say about the chosen conversations, the least certain first."""
    evidence = gather_evidence(results, chosen)
    figures, bits, cliques = sureness(results), open_bits(results), results.cliques
    suspicious = set(doubted(results).tolist())
    said = said_by(results) if results.evidence.cues else {}
    certainty = (results.seating or results.posterior).certainty
    rows = []
    for m in chosen:
        k = int(cliques.label[m])
        row = {
            "conversation": results.table.ids[m],
            **_who(results, m),
            "probability": chance(figures[0][m]),
            "low": chance(figures[1][m]),
            "high": chance(figures[2][m]),
            **({} if results.seating is not None else {"bits": significant(bits[m])}),
            "clique": k + 1,
            "certainty": certainty[k],
            "kind": kind_of(figures[1][m], bool(cliques.resolvable[k])),
            "suspicious": m in suspicious,
            "evidence": evidence[m],
            **({"cues": split(said, m)} if said else {}),
        }
        if results.speech is not None:
            sides = results.table.sides.of(m)
            if results.speech.known:
                row["speech_seconds"] = results.speech.seconds[sides].tolist()
            row["marks"] = results.speech.marks[sides]
        rows.append(row)
    return rows


def _who(results: Results, m: int) -> dict[str, Any]:
    """The people on the tracks of a conversation; in full where there is an answer in full."""
    if results.seating is None:
        return {"speakers": [*names_on(results.table, m, int(results.posterior.best[m]))]}
    return {
        "tracks": seats.tracks_of(results, m),
        "listed": seats.listed_people(results, m),
        "wrong_list": chance(results.seating.wrong.chance[m]),
    }


def kind_of(low: float, resolvable: bool) -> str:
    """The class of certainty that pictures show by colour."""
    if not resolvable:
        return "unresolvable"
    return next(name for name, least in KINDS if low >= least)


KINDS = (("settled", SETTLED), ("likely", 0.9), ("leaning", 0.75), ("open", -1.0))


def gather_evidence(results: Results, chosen: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
    """The strongest links of every chosen conversation, those for it positive."""
    if results.seating is not None:
        of_seats = seats.evidence(results, chosen)
        return {m: _strongest(results, links_) for m, links_ in of_seats.items()}
    return _exchange_evidence(results, chosen)


def _exchange_evidence(results: Results, chosen: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
    """By exchanging the two channels."""
    found: dict[int, list[tuple[float, int, int]]] = {m: [] for m in chosen}
    wanted = np.zeros(len(results.table), np.bool_)
    wanted[list(found)] = True
    evidence, best = results.evidence, results.posterior.best
    links = evidence.links
    terms = link_terms(links, evidence.scores.needed, evidence.weight)
    i, j = links.first[links.pair], links.second[links.pair]
    here = np.flatnonzero(wanted[i] | wanted[j])
    x, y = best[i[here]], best[j[here]]
    as_is = terms[here, x, y]
    listing = results.table.listing
    speaker = results.table.people[listing.start[i[here]] + links.position_first[here]]
    for mine, other, turned in (
        (i[here], j[here], terms[here, 1 - x, y]),
        (j[here], i[here], terms[here, x, 1 - y]),
    ):
        gain = (as_is - turned) / LN2
        for e in np.flatnonzero(wanted[mine]).tolist():
            found[int(mine[e])].append((float(gain[e]), int(other[e]), int(speaker[e])))
    return {m: _strongest(results, links_) for m, links_ in found.items()}


def _strongest(results: Results, found: list[tuple[float, int, int]]) -> list[dict[str, Any]]:
    found = sorted(found, key=lambda link: (-abs(round(link[0], 6)), link[1], link[2]))
    return [
        {
            "with": results.table.ids[other],
            "speaker": results.table.speakers[speaker],
            "bits": significant(bits),
        }
        for bits, other, speaker in found[:MOST_EVIDENCE]
    ]


def suspicious(results: Results) -> dict[str, Any] | None:
    """Claims that the voices contradict, with the evidence; None where nothing was claimed."""
    if results.claimed is None:
        return None
    order, wrong = find_suspects(results.posterior, results.claimed, results.seating)
    shown = order[:MOST_SUSPECTS].tolist()
    evidence = _exchange_evidence(results, shown)
    rows = []
    for m in shown:
        bit = int(results.claimed[m])
        # Evidence is about the best joint assignment, which may side with the claim.
        sign = -1.0 if int(results.posterior.best[m]) == bit else 1.0
        rows.append(
            {
                "conversation": results.table.ids[m],
                "probability": chance(wrong[m]),
                "bits": _odds_bits(float(wrong[m])),
                "claimed": list(names_on(results.table, m, bit)),
                "suggested": list(names_on(results.table, m, 1 - bit)),
                "evidence": [row | {"bits": sign * row["bits"]} for row in evidence[m]],
            }
        )
    return {"count": len(order), "claims": int((results.claimed >= 0).sum()), "rows": rows}


def _odds_bits(p: float) -> float | None:
    """log2 odds; None where the probability is one to double precision."""
    return significant(float(np.log2(p / (1.0 - p)))) if p < 1.0 else None


def significant(value: float) -> float:
    return float(f"{float(value):.5g}")

"""The first screen: what was asked, the answer with its five numbers, and what to do next."""

from __future__ import annotations

from typing import Any

from spklink.report import details
from spklink.report.provenance import command
from spklink.report.results import Results
from spklink.report.seats import settled_calls
from spklink.words import counted

Numbers = dict[str, Any]


def asked(results: Results) -> Numbers:
    table = results.table
    means = "from their recordings" if results.linked else "from scores between their channels"
    people = counted(len(table.speakers), "known person", several="known people")
    if table.plain:
        question = (
            f"Who is on which channel of {counted(table.asked, 'two-channel conversation')} "
            f"between {people}, {means}?"
        )
    else:
        question = (
            f"Who is on which of {counted(int(table.sides.start[table.asked]), 'channel')} of "
            f"{counted(table.asked, 'conversation')} that list {people}, {means}?"
        )
        if table.enrolled:
            recordings = counted(table.enrolled, "further recording")
            question += f" Voices are known from {recordings} of one person each."
    return {"sentence": question, "command": command(results.run)}


def found(results: Results) -> Numbers:
    """The five numbers and the sentence that holds them together."""
    summary = results.summary()
    told = {
        "conversations": summary["conversations"],
        "speakers": summary["speakers"],
        "unresolvable": summary["unresolvable"],
        "suspicious": None if results.claimed is None else len(details.suspects(results)),
        "cliques": summary["cliques"],
        "largest_clique": summary["largest_clique"],
        "certainty": summary["certainty"],
    }
    if results.table.plain:
        bits = {name: summary[name] for name in ("entropy_bits", "proved_optimal")}
        told |= {"settled": _settled(results, summary)} | bits
    if not results.answer.binary:
        told |= {name: summary[name] for name in ("tracks", "decisions", "wrong_lists", "misfits")}
    told["sentence"] = _sentence(results, told)
    return told | {"five": _five(results, told)}


def _settled(results: Results, summary: Numbers) -> int:
    if results.answer.binary:
        return int(summary["settled_99"])
    return int(settled_calls(results).sum())


def _sentence(results: Results, told: Numbers) -> str:
    of_tracks = not results.table.plain
    total = told["tracks"] if of_tracks else told["conversations"]
    settled = told["decisions"]["settled"] if of_tracks else told["settled"]
    sentence = (
        f"{settled:,} of {counted(total, 'channel' if of_tracks else 'conversation')} "
        f"{'is' if 1 in (settled, total) else 'are'} sure at 99 % or more"
    )
    if not results.answer.binary:
        wrong = told["wrong_lists"]
        lists = f"{counted(wrong, 'participant list')} {'is' if wrong == 1 else 'are'}"
        return f"{sentence}; {f'{lists} probably wrong' if wrong else 'the lists seem right'}."
    low, high = told["entropy_bits"]
    sentence += f"; {interval(low, high)} of {total:,} bits are still open"
    if told["unresolvable"]:
        sentence += f", {told['unresolvable']:,} of which no voice can tell"
    return sentence + "."


def _five(results: Results, told: Numbers) -> list[Numbers]:
    """The numbers of the first screen, each with what it counts."""

    def one(label: str, value: int | None, *, alarm: bool = False, to: str = "") -> Numbers:
        return {"label": label, "value": value, "alarm": alarm, "to": to}

    five = [one("conversations", told["conversations"]), one("people", told["speakers"])]
    if not results.table.plain:
        five.append(one("channels", told["tracks"]))
        five.append(one("channels sure at 99 % or more", told["decisions"]["settled"]))
    else:
        five.append(one("conversations sure at 99 % or more", told["settled"]))
        five.append(one("groups that no voice can tell apart", told["unresolvable"]))
    if not results.answer.binary:
        label = "contradictions: lists, channels, names to look at"
        return [*five, one(label, told["misfits"], alarm=told["misfits"] > 0, to="misfits")]
    if told["suspicious"] is None:
        return [*five, one("claims contradicted: none were given to check", None)]
    return [*five, one("claims contradicted", told["suspicious"], alarm=told["suspicious"] > 0)]


def interval(low: float, high: float) -> str:
    a, b = f"{low:,.2f}", f"{high:,.2f}"
    return a if a == b else f"{a} to {b}"


def next_steps(results: Results) -> Numbers:
    """What a person can do now, with commands that exist."""
    listen = details.to_listen(results)
    steps = []
    if listen:
        steps.append(
            {
                "text": "Listen to the conversations below and decide, on a page of this machine.",
                "command": "spklink review .",
            }
        )
        steps.append(
            {
                "text": "Or write what you hear into known.csv (conversation,channel,speaker) and "
                "run it again.",
                "command": f"{command(results.run, known=False)} --known known.csv",
            }
        )
    if results.key is None and results.table.plain:
        steps.append(
            {
                "text": "Where the truth is known for some conversations, measure the "
                "probabilities against it.",
                "command": "spklink report . --key key.csv",
            }
        )
    if results.claimed is None and results.table.plain:
        steps.append(
            {
                "text": "Where somebody claims who is on which channel, check it.",
                "command": "spklink report . --claimed claimed.csv",
            }
        )
    return {"steps": steps, "listen": listen}

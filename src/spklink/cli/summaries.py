"""What a command found or made, in a few lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spklink.cli.show import number, table, text
from spklink.words import counted

if TYPE_CHECKING:
    from spklink.runs.result import Result
    from spklink.worlds.simulate import Simulation


def assigned(found: dict[str, Any], out: Path, notes: Sequence[str] = ()) -> None:
    """What `assign` found."""
    text(
        f"{found['conversations']} conversations of {found['speakers']} speakers in "
        f"{found['cliques']} cliques, the largest of {found['largest_clique']}"
    )
    text(
        f"{found['settled_99']} conversations settled at 99 % or more; {found['unresolvable']} "
        "cliques cannot be resolved without knowing a channel"
    )
    low, high = found["entropy_bits"]
    bits = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    text(f"{bits} bits of {found['conversations']} still open")
    kinds = ", ".join(f"{count} {name}" for name, count in found["certainty"].items() if count)
    text(f"cliques solved: {kinds}; best proved in {found['proved_optimal']}")
    text(f"who is where: {out / 'assignments.csv'}")
    for note in notes:
        text(f"note: {note}")


def linked(found: Result, out: Path) -> None:
    """What `link` found."""
    assert found.listening is not None
    speech, suspects = found.listening.speech, found.listening.suspects
    unused = [mark for mark in speech.marks if mark]
    text(
        f"{len(speech.marks)} sides, {speech.seconds.sum() / 3600:.2f} hours of speech, "
        f"{len(unused)} sides not used"
    )
    for kind in sorted(set(unused)):
        text(f"  {unused.count(kind)} {kind}: see {out / 'sides.csv'}")
    assigned(found.summary(), out, found.notes)
    if suspects is not None:
        text(f"{len(suspects)} claims are contradicted: {out / 'suspects.csv'}")


def calibration(found: dict[str, Any], out: Path) -> None:
    """What `calibrate` learned."""
    text(f"calibration {found['kind']}, {found['source']}: {out}")
    if "edges" in found:
        text(f"{len(found['values'])} steps, from {found['values'][0]:.2f} up")
    else:
        speech = ""
        if found["speech_low"] is not None:
            speech = f", by speech {found['scale_speech']:+.4g} and {found['offset_speech']:+.4g}"
        if found["floor"] is not None:
            speech += f", not much below {found['floor']:.2f}"
        text(f"log-likelihood-ratio = {found['scale']:.4g} score {found['offset']:+.4g}{speech}")
    if "history" in found:
        settled = "settled" if found["converged"] else "NOT settled"
        ends = "one end" if found["starts_agree"] else "different ends"
        text(
            f"{settled} after {found['rounds']} rounds, {found['starts']} starts came to {ends}; "
            f"{found['expected_targets']:.0f} expected same-speaker pairs and "
            f"{found['non_targets']} of known different people"
        )
        beta = f"book, beta {found['beta']:.3g}" if found["weight"] == "book" else found["weight"]
        text(f"weight of the pairs of a speaker's calls: {beta}")
    if found.get("note"):
        text(f"note: {found['note']}")


def description(found: dict[str, Any]) -> None:
    """The answer of `check`."""
    most = found["most_calls"]
    tail = f"; {most['speaker']} has most conversations ({most['calls']})" if most else ""
    text(
        f"{found['conversations']} conversations, {found['speakers']} speakers, "
        f"{found['cliques']} cliques{tail}"
    )
    if "lists" in found:
        text(_lists(found["lists"]))
    text(
        f"{found['with_audio']} with audio, {found['with_prior']} with a prior, "
        + counted(found["groups"], "group", thousands="")
    )
    table(
        ["conversations a clique", "cliques", "unresolvable"],
        [(r["conversations"], r["cliques"], r["unresolvable"]) for r in found["by_size"]],
    )
    if found["levels"]:
        _levels(found)
    for problem in found["problems"]:
        text(f"look at: {problem}")
    if not found["problems"]:
        text("no problems found")


def _levels(found: dict[str, Any]) -> None:
    table(
        ["what is known", "", "bits", "F"],
        [
            (r["level"], r["expression"], number(r["bits"]), number(r["confusion"], 1))
            for r in found["levels"]
        ]
        + [("attainable", "one bit an unresolvable clique", str(found["attainable_bits"]), "-")],
        left=2,
    )


def _lists(found: dict[str, Any]) -> str:
    """Lists and tracks in a sentence."""
    how = "diarized " if found["diarized"] else ""
    parts = [
        f"{counted(row['conversations'], 'conversation')} of "
        f"{counted(row['tracks'], f'{how}track')}"
        for row in found["tracks"]
    ]
    for status in ("possible", "unknown"):
        if found[status]:
            people = counted(found[status], f"{status} participant")
            parts.append(f"{people} in {counted(found[f'with_{status}'], 'conversation')}")
    if found["open"]:
        parts.append(f"{counted(found['open'], 'list')} open to others")
    if found["without_names"]:
        parts.append(f"{counted(found['without_names'], 'list')} without a name")
    return "; ".join(parts)


def simulated(made: Simulation, files: Sequence[Path]) -> None:
    """What `simulate` made."""
    text(
        f"{len(made.conversations)} conversations of {len(made.conversations.speakers)} speakers, "
        f"{made.llr.size} needed scores and {len(made.non_targets)} of known non-targets"
    )
    for path in files:
        text(f"wrote {path}")

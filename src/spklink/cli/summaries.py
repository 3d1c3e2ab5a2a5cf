"""What a command found or made, in a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spklink.cli.show import number, table, text
from spklink.result_tables import KeptTables
from spklink.words import chance_text, counted

if TYPE_CHECKING:
    from spklink.runs.export import Exported
    from spklink.runs.recognizers import Tried
    from spklink.runs.result import Result
    from spklink.worlds.simulate import Simulation

UNNAMED = frozenset({"unusable"})  # decisions about sides that have no name
FEW = 5  # misfits that are told at once
LONGEST = 160  # letters of each part of them


def assigned(found: Result, out: Path) -> None:
    """What `assign` found."""
    summary = found.summary()
    text(
        f"{summary['conversations']} conversations of {summary['speakers']} speakers in "
        f"{summary['cliques']} cliques, the largest of {summary['largest_clique']}"
    )
    if found.conversations.plain:
        _bits(summary, of_lists=not found.answer.binary)
    if not found.answer.binary:
        _tracks(summary)
        _named(summary)
        _misfits(found, out)
    text(f"who is where: {KeptTables(out).path('assignments')}")
    for note in found.notes:
        text(f"note: {note}")


def exported(found: Exported) -> None:
    """What `export` wrote."""
    hours = f"{found.hours:.2f} hours" if found.hours >= 0.1 else f"{3600 * found.hours:.0f} s"
    sides, segments = counted(found.sides, "side"), counted(found.segments, "segment")
    text(f"{segments} of {sides}, {hours} of speech: {found.folder}")
    if found.left_out:
        parts = ", ".join(f"{count} {name}" for name, count in found.left_out.items())
        more = (
            " (--only all writes those that have a name)" if set(found.left_out) - UNNAMED else ""
        )
        text(f"left out: {counted(sum(found.left_out.values()), 'side')}, {parts}{more}")
    if found.silent:
        text(f"{counted(found.silent, 'side')} with a name and without any speech")
    if found.changed:
        where = found.folder / "names.csv"
        text(f"{counted(found.changed, 'name')} written as this format can carry it: {where}")


def _bits(found: dict[str, Any], *, of_lists: bool) -> None:
    """One bit a conversation; `of_lists`: there is an answer beside it that doubts the lists."""
    given = "given that the lists are right: " if of_lists else ""
    text(
        f"{given}{found['settled_99']} conversations settled at 99 % or more; "
        f"{found['unresolvable']} cliques cannot be resolved without knowing a channel"
    )
    low, high = found["entropy_bits"]
    bits = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    text(f"{bits} bits of {found['conversations']} still open")
    if not of_lists:
        text(f"{_solved(found)}; best proved in {found['proved_optimal']}")


def _tracks(found: dict[str, Any]) -> None:
    """The answer in full, a track at a time."""
    parts = [f"{count} {name}" for name, count in found["decisions"].items() if count]
    text(f"{counted(found['tracks'], 'track', thousands='')}: {', '.join(parts)}")
    text(_solved(found))


def _named(found: dict[str, Any]) -> None:
    """Who was named though no list names them."""
    naming = found.get("naming")
    if naming is not None:
        text(
            f"{counted(naming['tracks'], 'track')} with an open list: {naming['named']} named "
            f"after somebody whose voice is known, of {naming['people']:,}"
        )
    unknown = found.get("unknown")
    if unknown is not None and unknown["people"]:
        text(
            f"someone else is on {counted(unknown['of'], 'track')}: {unknown['tracks']:,} are of "
            f"people who are heard again, under {unknown['people']:,} labels (unknown.csv)"
        )


def _solved(found: dict[str, Any]) -> str:
    kinds = ", ".join(f"{count} {name}" for name, count in found["certainty"].items() if count)
    return f"cliques solved: {kinds}"


def _misfits(found: Result, out: Path) -> None:
    """What the voices say about the lists, and the first few that they contradict."""
    from spklink.runs.sentences import contradicted_sentence, count_misfits, rate_sentence

    text(rate_sentence(found.answer.rate.as_json()))
    text(contradicted_sentence(count_misfits(found.misfits)))
    for row in found.misfits[:FEW]:
        text(f"  {_misfit(row)}")
    if found.misfits:
        text(f"all {counted(len(found.misfits), 'misfit')}: {KeptTables(out).path('misfits')}")


def _misfit(row: Sequence[Any]) -> str:
    """One of them on a line."""
    from spklink.runs.sentences import misfit_chance

    calls, kind, _, listed, suggested, evidence = (str(part) for part in row)
    where = calls if len(calls) <= LONGEST else f"{calls[:LONGEST]}…"
    fits = f"; would fit: {_short(suggested)}" if suggested else ""
    chance = chance_text(misfit_chance(row))
    return f"{chance} {where}, {kind}: {_short(listed)} listed{fits}; {_short(evidence)}"


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"


def linked(found: Result, out: Path) -> None:
    """What `link` found."""
    assert found.listening is not None
    speech, suspects = found.listening.speech, found.listening.suspects
    unused = [mark for mark in speech.marks if mark]
    hours = f"{speech.seconds.sum() / 3600:.2f} hours of speech, " if speech.known else ""
    text(f"{len(speech.marks)} sides, {hours}{len(unused)} sides not used")
    for kind in sorted(set(unused)):
        text(f"  {unused.count(kind)} {kind}: see {KeptTables(out).path('sides')}")
    assigned(found, out)
    if suspects is not None:
        text(f"{len(suspects)} claims are contradicted: {KeptTables(out).path('suspects')}")


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
    from spklink.runs.cost import in_words

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
    for line in _other_evidence(found):
        text(line)
    table(
        ["conversations a clique", "cliques", "unresolvable"],
        [(r["conversations"], r["cliques"], r["unresolvable"]) for r in found["by_size"]],
    )
    if found["levels"]:
        _levels(found)
    for line in found["read_as"]:
        text(line)
    for line in in_words(found["cost"]):
        text(line)
    opened, of = found["cost"]["opened"], found["cost"]["recordings"]
    some = f"{opened:,} of {of:,} recordings" if opened < of else ""
    if some:
        text(f"opened {some}, spread over those that are there")
    for problem in found["problems"]:
        text(f"look at: {problem}")
    if not found["problems"]:
        text(f"no problems found{some and f' in the {some} that were opened'}")


def _other_evidence(found: dict[str, Any]) -> Iterator[str]:
    """What else than voices was given, in a line each."""
    total = found["conversations"]
    if "turns" in found:
        turns = found["turns"]
        yield f"turns: {turns['turns']} in {turns['conversations']} of {total} conversations"
    for name, one in found.get("attributes", {}).items():
        people = ", ".join(f"{count} {value}" for value, count in one["people"].items())
        yield (
            f"{name}: {people or 'nobody'}, {one['unknown']} not told; people differ in "
            f"{one['differ']} of {total} conversations"
        )
    for name, count in found.get("cues", {}).items():
        yield f"cue {name}: {count} of {total} conversations"


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


def recognizers(known: dict[str, Any]) -> None:
    """What `--recognizer` can be."""
    for one in known["recognizers"]:
        text(f"{one['name']}: {one['about']}")
    text("model.onnx: a speaker network; spklink recognizers model.onnx tries it")
    rows = [(one["settings"], one["name"], one["published"]) for one in known["networks"]]
    table(
        ["settings", "of", "published at"], rows, title="Networks whose settings are known", left=3
    )


def network(found: Tried) -> None:
    """What is understood of a network."""
    text(f"{found.file}: a speaker network; vectors of {found.width} numbers")
    text(f"takes {'; '.join(found.inputs)}")
    text(f"gives {'; '.join(found.outputs)}")
    told = ("input_name", "length_name", "output_name")
    rows = [
        (key, "-" if value in (None, "") else value, found.said_by[key])
        for key, value in found.settings.items()
        if found.said_by[key] != "default" or key in told
    ]
    table(["setting", "value", "said by"], rows, left=3)
    text(f"tried: {found.seconds:.3f} s for a second of sound")
    assumed = [key for key, who in found.said_by.items() if who == "assumed"]
    if assumed:
        file = Path(found.file).with_suffix(".toml")
        text(f"note: {', '.join(assumed)} are assumed; {file} can say otherwise")

"""Results as text for people: tables on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spklink.words import counted

if TYPE_CHECKING:
    from spklink.measures.detection import Detection
    from spklink.measures.evaluation import Evaluation, Row
    from spklink.measures.reliability import Marginals, Reliability
    from spklink.runs.assign import Stages
    from spklink.runs.link import Linked
    from spklink.runs.paper import SimulatedRow

WIDTH = 120  # of tables that go to a file or a pipe


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = "", left: int = 1
) -> None:
    """Print aligned columns; the first `left` are text, the others numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for k, name in enumerate(columns):
        made.add_column(name, justify="left" if k < left else "right", no_wrap=True)
    for row in rows:
        made.add_row(*(_plain(value) for value in row))
    _console().print(made)


def text(line: str = "") -> None:
    _console().print(line, markup=False, highlight=False, soft_wrap=True)


def paragraph(words: str) -> None:
    """Running text, wrapped to the width of the screen."""
    _console().print(words, markup=False, highlight=False)


def number(value: float | None, digits: int = 3) -> str:
    """A figure for a table; '-' where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100.0 * value:.{digits}f} %"


def _plain(value: Any) -> Any:
    from rich.text import Text

    return Text("-" if value is None else str(value))


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH)


@contextmanager
def stages_on_stderr() -> Iterator[Stages]:
    """A line with the stage at work, how far it is and the time left; silent without a screen.

    An interrupt says how far the work had come.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from spklink.runs.assign import Stages

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    at = ["starting", ""]
    silent = not console.is_terminal
    with Progress(*columns, *times, console=console, transient=True, disable=silent) as bar:
        task = bar.add_task("starting", total=None)

        def begin(name: str) -> None:
            at[:] = [name, ""]
            bar.reset(task, total=None, description=name)

        def step(done: int, total: int) -> None:
            at[1] = f", {done} of {total} done"
            bar.update(task, completed=done, total=total)

        try:
            yield Stages(tell=begin, progress=step)
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"spklink: stopped while {at[0]}{at[1]}", markup=False, highlight=False)
            raise SystemExit(130) from None


def evaluation(result: Evaluation) -> None:
    """Tables 2 and 3, totals, reliability."""
    rows = [*((str(row.conversations), row) for row in result.by_size)]
    totals = [
        ("resolvable", result.resolvable),
        ("at least two", result.at_least_two),
        ("all", result.all),
    ]
    table(
        ["conversations", "|C|", "cliques", "bits", "F", "wrong", "E"],
        [_table_2(name, row) for name, row in [*rows, *totals]],
        title="Table 2: cross entropy a conversation, confusion, wrong cliques",
    )
    text(
        f"E over the {result.resolvable.cliques} resolvable cliques "
        f"{percent(result.resolvable.clique_error_rate)}, over the "
        f"{result.at_least_two.cliques} of two or more conversations "
        f"{percent(result.at_least_two.clique_error_rate)}; "
        "a tie that includes the truth is no error."
    )
    text()
    table(
        ["conversations", "bits", "recalibrated", "a_min/a"],
        [_table_3(name, row) for name, row in [*rows, totals[0]] if row.cliques > row.unresolvable],
        title="Table 3: before and after the best factor",
    )
    low, high = result.implied_errors
    text(
        f"expected wrong cliques {_figure(result, 'expected_clique_errors', 2)} (95 %: {low} to "
        f"{high}), observed {result.resolvable.clique_errors} (resolvable cliques)"
    )
    text()
    _reliability(result.reliability, "Reliability of the maximum posterior (resolvable cliques)")
    marginals(result.marginals, "Reliability of single conversations (resolvable cliques)")
    text(
        f"{result.total} conversations with a key, {result.wrong} wrong in resolvable cliques, "
        f"{_figure(result, 'cross_entropy_bits')} bits a conversation; "
        f"{result.without_key} without a key left out"
        + (f", {result.foreign_key_rows} key rows about others" if result.foreign_key_rows else "")
    )


def marginals(found: Marginals, title: str) -> None:
    """Single conversations: reliability, errors, scores."""
    _reliability(found.reliability, title)
    text(
        f"{found.conversations} conversations: expected wrong {number(found.expected_wrong, 2)}, "
        f"observed {found.wrong}; Brier score {number(found.brier, 4)}, log score "
        f"{number(found.log_score_bits, 4)} bits"
    )


def _reliability(bins: list[Reliability], title: str) -> None:
    table(
        ["probability", "number", "predicted right", "observed", "95 % interval"],
        [
            (
                f"{b.low:g} to {b.high:g}",
                b.count,
                percent(b.predicted, 2),
                percent(b.observed, 2),
                f"{percent(b.observed_low)} to {percent(b.observed_high)}",
            )
            for b in bins
        ],
        title=title,
    )


def _table_2(name: str, row: Row) -> tuple[Any, ...]:
    return (
        name,
        row.configurations,
        row.cliques,
        _figure(row, "cross_entropy_bits"),
        _figure(row, "confusion"),
        row.clique_errors,
        percent(row.clique_error_rate),
    )


def _table_3(name: str, row: Row) -> tuple[Any, ...]:
    return (
        name,
        _figure(row, "resolvable_bits"),
        number(row.recalibrated_bits, 4),
        number(row.scale_ratio, 2),
    )


def _figure(row: Row | Evaluation, name: str, digits: int = 4) -> str:
    """A figure, or its two ends where it is not exact."""
    value: float | None = getattr(row, name)
    if value is None and name in row.intervals:
        low, high = row.intervals[name]
        return f"{low:.{digits}f} to {high:.{digits}f}"
    return number(value, digits)


def paper(rows: list[SimulatedRow], settings: dict[str, Any]) -> None:
    """The three tables, ours beside the printed ones."""
    from spklink.measures import published as source

    table(
        ["level", "expression", "bits", "printed", "F", "printed"],
        [
            (
                row.level,
                row.expression,
                number(row.bits),
                number(printed[0], 1) if printed else "-",
                number(row.confusion, 1),
                number(printed[1], 0) if printed else "-",
            )
            for row, printed in source.table_1()
        ],
        title=f"Table 1: {source.CONVERSATIONS} conversations, {source.SPEAKERS} speakers",
        left=2,
    )
    what = f"{settings['databases']} simulated databases, {settings['world']} scores"
    table(
        ["conversations", "cliques", "bits", "spread", "printed", "F", "printed", "E", "printed"],
        [_paper_2(row) for row in rows],
        title=f"Table 2: {what} at EER {settings['eer']:g} %",
    )
    table(
        [
            *("conversations", "bits", "printed", "recalibrated", "printed"),
            *("a_min/a", "middle half", "printed"),
        ],
        [_paper_3(row) for row in rows if row.conversations != 1],
        title="Table 3: the best factor on all scores, resolvable cliques",
    )
    for remark in source.REMARKS:
        paragraph(f"• {remark}")


def _paper_2(row: SimulatedRow) -> tuple[Any, ...]:
    from spklink.measures.published import PRINTED_TABLE_2

    _, bits, confusion, error = PRINTED_TABLE_2[row.conversations]
    return (
        "all resolvable" if row.conversations is None else row.conversations,
        row.cliques,
        number(row.bits, 4),
        number(row.bits_spread, 4),
        number(bits),
        number(row.confusion, 4),
        number(confusion),
        percent(row.error_rate),
        "NA" if error is None else f"{error} %",
    )


def _paper_3(row: SimulatedRow) -> tuple[Any, ...]:
    from spklink.measures.published import PRINTED_TABLE_3

    before, after, scale = PRINTED_TABLE_3[row.conversations]
    quartiles = row.scale_quartiles
    return (
        "all" if row.conversations is None else row.conversations,
        number(row.resolvable_bits, 4),
        number(before),
        number(row.recalibrated_bits, 4),
        number(after),
        number(row.scale_ratio, 2),
        f"{quartiles[0]:.2f} to {quartiles[1]:.2f}" if quartiles else "-",
        number(scale, 2),
    )


def description(found: dict[str, Any]) -> None:
    """The answer of `check`."""
    most = found["most_calls"]
    text(
        f"{found['conversations']} conversations, {found['speakers']} speakers, "
        f"{found['cliques']} cliques; {most['speaker']} has most conversations ({most['calls']})"
    )
    text(
        f"{found['with_audio']} with audio, {found['with_prior']} with a prior, "
        + counted(found["groups"], "group", thousands="")
    )
    table(
        ["conversations a clique", "cliques", "unresolvable"],
        [(r["conversations"], r["cliques"], r["unresolvable"]) for r in found["by_size"]],
    )
    table(
        ["what is known", "", "bits", "F"],
        [
            (r["level"], r["expression"], number(r["bits"]), number(r["confusion"], 1))
            for r in found["levels"]
        ]
        + [("attainable", "one bit an unresolvable clique", str(found["attainable_bits"]), "-")],
        left=2,
    )
    for problem in found["problems"]:
        text(f"look at: {problem}")
    if not found["problems"]:
        text("no problems found")


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
            speech = f", not much below {found['floor']:.2f}"
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


def detection(found: Detection) -> None:
    """What `detect` measured."""
    text(f"{found.targets} same-speaker and {found.nontargets} different-speaker scores")
    table(
        ["of the scores", "value"],
        [
            ("equal error rate (convex hull)", percent(found.eer, 2)),
            ("equal error rate (steps)", percent(found.eer_step, 2)),
            ("Cllr, bits", number(found.cllr, 4)),
            ("least Cllr", number(found.min_cllr, 4)),
            ("lost to calibration", number(found.calibration_loss, 4)),
            *((f"least cost {name}", number(value, 4)) for name, value in found.min_dcf.items()),
        ],
    )


def summary(found: dict[str, Any], out: Path, notes: Sequence[str] = ()) -> None:
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


def linked(found: Linked, out: Path) -> None:
    """What `link` found."""
    sound = found.sound
    unused = [mark for mark in sound.marks if mark]
    text(
        f"{len(sound.marks)} sides, {sound.seconds().sum() / 3600:.2f} hours of speech, "
        f"{len(unused)} sides not used"
    )
    for kind in sorted(set(unused)):
        text(f"  {unused.count(kind)} {kind}: see {out / 'sides.csv'}")
    summary(found.result.summary(), out, found.notes)
    if found.suspects is not None:
        text(f"{found.suspects} claims are contradicted: {out / 'suspects.csv'}")

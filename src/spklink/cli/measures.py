"""Measures as tables for people: of results against a key, of scores, of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spklink.cli.show import number, paragraph, percent, table, text
from spklink.words import chance_text, counted

if TYPE_CHECKING:
    from spklink.measures.cues import CueRow
    from spklink.measures.detection import Detection
    from spklink.measures.entropy import Level
    from spklink.measures.evaluation import Evaluation, Row
    from spklink.measures.reliability import Marginals, Reliability
    from spklink.measures.seats import SeatEvaluation, SeatRow
    from spklink.runs.comparison import Compared, Comparison
    from spklink.runs.paper import SimulatedRow


def evaluation(result: Evaluation) -> None:
    """All that was measured: the paper's tables, and the answer in full where there is one."""
    if result.seats is None or result.all.cliques:
        _paper_tables(result)
    if result.cues:
        text()
        by_cue(result.cues)
    if result.seats is not None:
        text()
        seats(result.seats)


def by_cue(rows: list[CueRow]) -> None:
    """Each kind of evidence by itself."""
    table(
        ["evidence", "says", "wrong", "expected", "bits", "cliques wrong", "bits open"],
        [
            (
                row.name,
                f"{row.says} of {row.conversations}",
                number(row.wrong, 1),
                number(row.expected_wrong, 2),
                number(row.bits, 4),
                row.clique_errors,
                number(row.open_bits, 2),
            )
            for row in rows
        ],
        title="By evidence, track by track"
        if rows[0].tracks
        else "By evidence: conversations (what nothing is said of is half an error)",
    )


def seats(found: SeatEvaluation) -> None:
    """Tracks, conversations, presence and lists, with nothing given."""
    tracks = found.tracks
    text(
        f"With nothing given, not even that the lists are right (rate of list errors "
        f"{found.rate:.2g}{', estimated' if found.estimated else ''}):"
    )
    table(
        ["conversations", "cliques", "bits", "wrong", "E"],
        [
            (name, row.cliques, _figure(row, "cross_entropy_bits"), row.clique_errors, share)
            for name, row in (
                *((row.conversations, row) for row in found.by_size),
                ("resolvable", found.resolvable),
                ("all", found.all),
            )
            for share in (percent(row.clique_error_rate),)
        ],
        title="Cross entropy a conversation, cliques with a wrong track",
    )
    table(
        ["tracks", "number", "wrong"],
        [
            ("named", tracks.named, tracks.wrong_named),
            ("someone else", tracks.strangers, tracks.wrong_strangers),
            ("settled", tracks.settled, tracks.wrong_settled),
        ],
        title="Tracks with a key (resolvable cliques)",
    )
    text(
        f"{tracks.tracks} tracks: expected wrong {number(tracks.expected_wrong, 2)}, observed "
        f"{tracks.wrong_named + tracks.wrong_strangers}; {number(tracks.cross_entropy_bits, 4)} "
        f"bits a track; {tracks.unusable} unusable; {found.wrong_conversations} of "
        f"{found.conversations} conversations have a wrong one"
    )
    text()
    _reliability(tracks.reliability, "Reliability of the answers about tracks")
    _chances(found)


def _chances(found: SeatEvaluation) -> None:
    """Who is there, and which lists are wrong."""
    table(
        [
            *("", "number", "so", "expected", "errors", "expected", "Brier", "bits"),
            *("ROC area", "recall", "precision"),
        ],
        [
            (
                name,
                one.count,
                one.observed,
                number(one.expected, 2),
                one.errors,
                number(one.expected_errors, 2),
                number(one.brier, 4),
                number(one.cross_entropy_bits, 4),
                number(one.area, 3),
                percent(one.recall),
                percent(one.precision),
            )
            for name, one in (
                ("a listed person is there", found.presence),
                ("a list is wrong", found.lists),
            )
        ],
        title="Presence, and lists that are wrong (somebody certain is absent); errors at .5",
    )
    _reliability(found.lists.reliability, "Reliability of: this list is wrong", "predicted")


def _paper_tables(result: Evaluation) -> None:
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


def _reliability(bins: list[Reliability], title: str, predicted: str = "predicted right") -> None:
    table(
        ["probability", "number", predicted, "observed", "95 % interval"],
        [
            (
                f"{b.low:g} to {b.high:g}",
                b.count,
                chance_text(b.predicted),
                percent(b.observed),
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


def _figure(row: Row | SeatRow | Evaluation, name: str, digits: int = 4) -> str:
    """A figure, or its two ends where it is not exact."""
    value: float | None = getattr(row, name)
    if value is None and name in row.intervals:
        low, high = row.intervals[name]
        if isinf(high):  # a piece of which only one end is known
            return f"{low:.{digits}f} or more"
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


def levels(rows: Sequence[Level], title: str) -> None:
    """What `entropy` computed."""
    table(
        ["level", "expression", "bits", "F", ""],
        [
            (r.level, r.expression, number(r.bits), number(r.confusion, 1), note)
            for r in rows
            for note in ("exact" if r.exact else "approximate",)
        ],
        title=title,
        left=2,
    )


def comparison(found: Comparison, out: Path, page: Path) -> None:
    """Several recognizers side by side: what needs a key, then what does not."""
    runs = [one for one in found.runs if not one.failed]
    keyed = any(one.measures.trials is not None for one in runs)
    if keyed:
        table(
            ["recognizer", "EER", "Cllr", "min Cllr", "bits", "F", "E", "expected wrong", "wrong"],
            [_keyed(one) for one in runs],
            title="Against the key",
        )
    table(
        ["recognizer", "evidence", "expected errors", "settled", "disputed", "seconds", "GB"],
        [_unkeyed(one) for one in runs],
        title="Without a key",
    )
    for note in found.notes:
        text(f"note: {note}")
    text(f"{counted(len(found.places), 'track')} in dispute: {out / 'disagreements.csv'}")
    text(f"all figures: {out / 'compare.csv'}, {page}")


def _keyed(one: Compared) -> list[Any]:
    m = one.measures
    return [
        one.name,
        percent(m.eer, 2),
        *(number(value, 4) for value in (m.cllr, m.min_cllr, m.cross_entropy_bits)),
        number(m.confusion, 3),
        percent(m.clique_error_rate, 2),
        number(m.expected_wrong, 2),
        m.wrong,
    ]


def _unkeyed(one: Compared) -> list[Any]:
    m = one.measures
    size = None if m.peak_memory_bytes is None else m.peak_memory_bytes / 1e9
    return [
        one.name,
        number(m.evidence_bits, 2),
        number(m.expected_errors, 2),
        f"{m.settled} of {m.tracks}",
        one.disagreements,
        number(m.seconds, 1),
        number(size, 2),
    ]

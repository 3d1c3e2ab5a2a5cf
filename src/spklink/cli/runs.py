"""Commands that do the work: link, watch, assign, partition, compare, calibrate, demo.

Each checks where its results go before it begins, calls one function of the library, and shows
what came out. What their options are is written in `settings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from spklink.cli.app import FINE, PROBLEMS, WRONG_INPUT
from spklink.errors import SpklinkError, check_file, check_folder
from spklink.settings import (
    AssignOptions,
    CalibrateOptions,
    CompareOptions,
    DemoOptions,
    DemoOut,
    Every,
    Json,
    LinkOptions,
    Once,
    Out,
    OutFile,
    PartitionOptions,
    Rest,
    Scores,
    Table,
    WatchedSource,
)
from spklink.table_options import Component, Corpus, OptionalTable

if TYPE_CHECKING:
    from spklink.runs.result import Result

BAD_AUDIO = "bad audio"  # a side that was not used, in sides.csv


def assign(
    table: Table,
    scores: Scores,
    out: Out,
    *,
    as_json: Json = False,
    **options: Unpack[AssignOptions],
) -> None:
    """Find who is on which channel, from scores that you have."""
    check_folder(out)
    from spklink.cli import show, summaries
    from spklink.cli.asking import asked_table
    from spklink.runs.assign import assign as run

    people, options = asked_table(table, options)
    with show.stages_on_stderr() as stages:
        found = run(people, scores, out, stages=stages, **options)
    if as_json:
        show.as_json(found.summary() | {"notes": found.notes, "out": str(out)})
    else:
        summaries.assigned(found, out)


def link(
    table: OptionalTable,
    out: Out,
    *,
    corpus: Corpus = None,
    component: Component = None,
    as_json: Json = False,
    **options: Unpack[LinkOptions],
) -> int:
    """Listen to all calls and find who is on which channel."""
    check_folder(out)
    from spklink.cli.ahead import start_listeners, start_painters

    if table is not None:
        start_listeners(table, out, options)
    from spklink.cli import measures, show, summaries
    from spklink.cli.asking import asked_table
    from spklink.runs.link import link as run

    table, options = _with_corpus(table, corpus, component, out, options)
    people, options = asked_table(table, options)
    with show.stages_on_stderr() as stages:
        start_painters(stages, options)
        found = run(people, out, stages=stages, **options)
        key = found.inputs.table("key")  # as it was read: it may have come through a pipe
        measured = None
        if key is not None:
            from spklink.runs.measure import evaluate

            measured = evaluate(found, key, stages=stages)
    held = _held_back(found, out)
    if as_json:
        evaluation = measured.as_json() if measured else None
        more = {"notes": [*found.notes, *held], "out": str(out), "evaluation": evaluation}
        show.as_json(found.summary() | more)
    else:
        summaries.linked(found, out)
        for line in held:
            show.text(line)
        if measured is not None:
            measures.evaluation(measured)
    if options["report"]:  # last, so that whatever goes wrong here comes after the results
        from spklink.report.write import report_at_hand, write_report

        claimed = found.inputs.table("claimed")
        with show.stages_on_stderr() as stages:
            page = report_at_hand(out, key, claimed) or write_report(
                out, result=found, evaluation=measured, key=key, claimed=claimed, stages=stages
            )
        if not as_json:
            show.text(f"report: {page}")
    bad = found.listening is not None and BAD_AUDIO in found.listening.speech.marks
    return PROBLEMS if bad else FINE


def _held_back(found: Result, out: Path) -> list[str]:
    """Decisions in the folder of the results whose recordings have changed, in words."""
    from spklink.cli import review
    from spklink.decisions.fingerprints import held_back

    try:
        decisions = held_back(out, found)
    except SpklinkError as error:  # the results are there all the same
        return [str(error)]
    return [review.held_back(one.conversation, one.reviewer, one.time) for one in decisions]


def watch(
    source: WatchedSource,
    out: Out,
    *,
    every: Every = 10.0,
    rest: Rest = 3.0,
    once: Once = False,
    as_json: Json = False,
    **options: Unpack[LinkOptions],
) -> int:
    """Link calls as they arrive.

    Looks at a table or a folder again and again, and links what is new and whole. Ctrl-C ends it;
    the same command goes on where it was."""
    check_folder(out)
    from spklink.cli import show
    from spklink.cli.talk import TALK
    from spklink.runs.watch import watch as run

    _end_politely()
    code = FINE
    with show.stages_on_stderr() as stages:
        for one in run(source, out, options, every=every, rest=rest, once=once, stages=stages):
            if as_json:
                show.json_line(one.as_json())
            else:
                show.text(one.line())
            TALK.note(one.line())
            if one.result is not None and options["report"]:
                _report_of(one.result, out)
            code = WRONG_INPUT if one.error else PROBLEMS if one.bad else FINE
    return code


def _end_politely() -> None:
    """Being asked to end is as good as Ctrl-C."""
    import signal

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


def _report_of(found: Result, out: Path) -> None:
    """The page; whatever goes wrong with it, the results are there."""
    from spklink.cli import show
    from spklink.report.write import write_report

    try:
        write_report(out, result=found, claimed=found.inputs.table("claimed"))
    except (SpklinkError, OSError) as error:
        show.progress_line(f"report: {error}")


def _with_corpus(
    table: Path | None, corpus: str | None, component: str | None, out: Path, options: LinkOptions
) -> tuple[Path, LinkOptions]:
    """The table that was given, or those of a corpus; options that were given go before its own."""
    if (table is None) == (corpus is None):
        raise SpklinkError("give a table of conversations, or --corpus NAME:PATH")
    if table is not None:
        if component is not None:
            raise SpklinkError("--component goes with --corpus")
        return table, options
    from spklink.cli import show
    from spklink.runs.init import corpus_tables, in_words

    made = corpus_tables(str(corpus), component, out)
    for line in in_words(made)[:-1]:
        show.progress_line(line)
    given = options["embeddings"] is not None or options["scores"] is not None
    taken = ("claimed", "tracks") if given else ("claimed", "tracks", "turns", "background")
    more = {name: one for name, one in made.options().items() if name in taken}
    found: Any = {**options, **{k: v for k, v in more.items() if options[k] is None}}  # type: ignore[literal-required]
    return made.files["conversations"], found


def partition(
    table: Table, out: Out, *, as_json: Json = False, **options: Unpack[PartitionOptions]
) -> None:
    """Find which sides are one person, where nobody is listed.

    Calls without participants."""
    check_folder(out)
    from spklink.cli import partitions, show
    from spklink.report.partition import write_partition_page
    from spklink.runs.partition import partition as run

    with show.stages_on_stderr() as stages:
        found = run(table, out, stages=stages, **options)
    if as_json:
        show.as_json(found.summary() | {"notes": found.notes, "out": str(out)})
    else:
        partitions.partitioned(found, out)
    if options["report"]:
        page = write_partition_page(out)
        if not as_json:
            show.text(f"report: {page}")


def compare(
    table: Table, out: Out, *, as_json: Json = False, **options: Unpack[CompareOptions]
) -> None:
    """Link with several recognizers, and hold them side by side.

    One table, one picture a measure, and every track on which they disagree."""
    check_folder(out)
    from spklink.cli import measures, show
    from spklink.cli.asking import asked_table
    from spklink.report.comparison import write_comparison
    from spklink.runs.compare import compare as run

    people, options = asked_table(table, options)
    with show.stages_on_stderr() as stages:
        found = run(people, out, stages=stages, **options)
        with stages.stage("drawing the figures"):
            page = write_comparison(found, out)
    if as_json:
        show.as_json(found.as_json() | {"out": str(out), "page": str(page)})
    else:
        measures.comparison(found, out, page)


def calibrate(
    table: Table,
    scores: Scores,
    out: OutFile,
    *,
    as_json: Json = False,
    **options: Unpack[CalibrateOptions],
) -> None:
    """Learn how scores become log-likelihood-ratios, and keep it.

    From a key, or without a single label."""
    check_file(out)
    from spklink.cli import show, summaries
    from spklink.cli.asking import asked_table
    from spklink.runs.calibrate import calibrate as run

    people, options = asked_table(table, options)
    with show.stages_on_stderr() as stages:
        found = run(people, scores, out, stages=stages, **options)
    if as_json:
        show.as_json(found | {"out": str(out)})
    else:
        summaries.calibration(found, out)


def demo(out: DemoOut, **options: Unpack[DemoOptions]) -> None:
    """Make calls of artificial voices, link them, and measure it."""
    check_folder(out)
    from spklink.cli import measures, show, summaries
    from spklink.report.write import write_report
    from spklink.runs.link import link as run
    from spklink.runs.measure import evaluate

    what = "meetings" if options["meetings"] else "calls"
    made, results = out / what, out / "results"
    key = made / "key.csv"
    with show.stages_on_stderr() as stages:
        with stages.stage(f"making {what}"):
            _make_voices(made, options)
        table = made / "conversations.csv"
        found = run(table, results, stages=stages, preset=options["preset"])
        measured = evaluate(found, key, stages=stages)
    show.text(f"{what} with artificial voices: {made}")
    summaries.linked(found, results)
    show.text()
    measures.evaluation(measured)
    with show.stages_on_stderr() as stages:
        page = write_report(results, result=found, evaluation=measured, key=key, stages=stages)
    show.text(f"report: {page}")
    show.text(f"listen and decide:  spklink review {results}")
    if options["meetings"]:
        diarized = f"{made / 'mixed.csv'} --tracks {made / 'tracks.csv'}"
        show.text("the same on one channel, with a table of who speaks when:")
        show.text(f"  spklink link {diarized} -o {out / 'mixed-results'} --key {key}")


def _make_voices(folder: Path, options: DemoOptions) -> None:
    """Recordings, a table and a key."""
    if options["meetings"]:
        from spklink.worlds.meeting_voices import write_meetings

        write_meetings(folder, seed=options["seed"])
    else:
        from spklink.worlds.voices import write_database

        write_database(folder, seed=options["seed"])

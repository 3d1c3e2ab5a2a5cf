"""Commands that do the work: link, assign, calibrate, demo.

Each checks where its results go before it begins, calls one function of the library, and shows
what came out. What their options are is written in `settings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from spklink.errors import SpklinkError
from spklink.settings import (
    AssignOptions,
    CalibrateOptions,
    DemoOptions,
    DemoOut,
    Json,
    LinkOptions,
    Out,
    OutFile,
    Scores,
    Table,
)


def assign(
    table: Table,
    scores: Scores,
    out: Out,
    *,
    as_json: Json = False,
    **options: Unpack[AssignOptions],
) -> None:
    """Find who is on which channel, from scores between conversation sides."""
    check_folder(out)
    from spklink.cli import show, summaries
    from spklink.cli.old_runs import assign as run

    with show.stages_on_stderr() as stages:
        result = run(table, scores, out, stages=stages, **options)
    found = result.summary()
    calibrated = result.database.calibrated
    notes = [] if calibrated is None or not calibrated.note else [calibrated.note]
    if as_json:
        show.as_json(found | {"notes": notes, "out": str(out)})
    else:
        summaries.assigned(found, out, notes)


def link(table: Table, out: Out, *, as_json: Json = False, **options: Unpack[LinkOptions]) -> None:
    """Listen to all calls and find who is on which channel: the main job."""
    check_folder(out)
    from spklink.cli import measures, old_runs, show, summaries

    key, workers = options["key"], options["workers"]
    with show.stages_on_stderr() as stages:
        found = old_runs.link(table, out, stages=stages, **options)
        measured = None if key is None else old_runs.measured(out, key, workers, stages)
    if as_json:
        evaluation = measured.as_json() if measured else None
        show.as_json(found.summary() | {"out": str(out), "evaluation": evaluation})
    else:
        summaries.linked(found, out)
        if measured is not None:
            measures.evaluation(measured)
    if options["report"]:  # last, so that whatever goes wrong here comes after the results
        with show.stages_on_stderr() as stages:
            page = old_runs.page(out, key, options["claimed"], workers, stages, found, measured)
        if not as_json:
            show.text(f"report: {page}")


def calibrate(
    table: Table,
    scores: Scores,
    out: OutFile,
    *,
    as_json: Json = False,
    **options: Unpack[CalibrateOptions],
) -> None:
    """Learn how scores become log-likelihood-ratios: from a key, or without a single label."""
    check_file(out)
    from spklink.calibration.choice import learn
    from spklink.cli import show, summaries
    from spklink.cli.old_runs import choice_of, weight_of
    from spklink.database.labels import read_key, read_known
    from spklink.posterior.likelihood import Weight
    from spklink.posterior.posterior import Options
    from spklink.runs.assign import read_database
    from spklink.tables import write_json

    rule, key, known = weight_of(options), options["key"], options["known"]
    with show.stages_on_stderr() as stages:
        database = read_database(table, scores, weight=rule or Weight(), stages=stages)
        people = database.conversations
        with stages.stage("calibrating"):
            found = learn(
                people,
                database.links,
                database.scores,
                choice_of(options, "labelfree"),
                sides=options["sides"],
                key=None if key is None else read_key(key, people),
                known=None if known is None else read_known(known, people),
                weight=rule,
                options=Options(seed=options["seed"], workers=options["workers"]),
                tell=stages.progress,
            )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, found)
    if as_json:
        show.as_json(found | {"out": str(out)})
    else:
        summaries.calibration(found, out)


def demo(out: DemoOut, **options: Unpack[DemoOptions]) -> None:
    """Make a small telephone database with artificial voices, link it, and measure the result."""
    check_folder(out)
    from spklink.cli import measures, old_runs, show, summaries
    from spklink.worlds.voices import write_database

    calls, results = out / "calls", out / "results"
    key = calls / "key.csv"
    with show.stages_on_stderr() as stages:
        with stages.stage("making calls"):
            write_database(calls, seed=options["seed"])
        table = calls / "conversations.csv"
        found = old_runs.link(table, results, stages=stages, preset=options["preset"])
        measured = old_runs.measured(results, key, None, stages)
    show.text(f"calls with artificial voices: {calls}")
    summaries.linked(found, results)
    show.text()
    measures.evaluation(measured)
    with show.stages_on_stderr() as stages:
        page = old_runs.page(results, key, None, None, stages, found, measured)
    show.text(f"report: {page}")


def check_folder(out: Path) -> None:
    """Said before hours of work, not after: results need a folder."""
    for path in (out, *out.parents):
        if path.exists():
            if not path.is_dir():
                raise SpklinkError(f"{path} is a file; give a folder")
            return


def check_file(out: Path) -> None:
    if out.is_dir():
        raise SpklinkError(f"{out} is a folder; give a file")
    check_folder(out.parent)

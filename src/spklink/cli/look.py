"""Commands that look at something or make something to look at: recognizers, export, report,
evaluate, detect, check, entropy, simulate, paper. Their options are described in `settings`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from spklink.cli.app import FINE, PROBLEMS
from spklink.errors import SpklinkError, check_folder
from spklink.settings import (
    CountedTable,
    EvaluateOptions,
    ExportOptions,
    ExportOut,
    Json,
    Linked,
    Model,
    ReportOptions,
    Results,
    Scores,
    Shell,
    Simulation,
    Table,
    To,
    Truth,
)
from spklink.table_options import (
    CheckOptions,
    DetectOptions,
    FirstTable,
    InitOptions,
    Recordings,
)
from spklink.world_options import EntropyOptions, PaperOptions, SimulateOptions


def detect(
    table: Table,
    scores: Scores,
    key: Truth,
    *,
    as_json: Json = False,
    **options: Unpack[DetectOptions],
) -> None:
    """How well scores tell the same speaker from others.

    Equal error rate, Cllr, minimum costs."""
    from spklink.cli import measures, show
    from spklink.cli.asking import asked_table
    from spklink.runs.inputs import read_labels
    from spklink.runs.measure import detect as run

    people, options = asked_table(table, options)
    with show.stages_on_stderr() as stages:
        found = run(people, scores, read_labels(key, options), stages=stages)
    if as_json:
        show.as_json(found.as_json())
    else:
        measures.detection(found)


def recognizers(model: Model = None, *, as_json: Json = False) -> None:
    """Which recognizers there are; or a speaker network, tried."""
    from spklink.cli import show, summaries
    from spklink.runs import recognizers as source

    if model is None:
        known = source.known()
        if as_json:
            show.as_json(known)
        else:
            summaries.recognizers(known)
        return
    found = source.try_network(model)
    if as_json:
        show.as_json(found.as_json())
    else:
        summaries.network(found)


def export(
    out: Linked,
    folder: ExportOut,
    to: To,
    *,
    as_json: Json = False,
    **options: Unpack[ExportOptions],
) -> None:
    """Write who speaks when for Kaldi, Lhotse, Praat, ELAN, …

    RTTM, CTM, STM, tables as NIST has them, Parquet."""
    check_folder(folder)
    from spklink.cli import show, summaries
    from spklink.runs.export import export as run

    with show.stages_on_stderr() as stages:
        found = run(out, folder, to, stages=stages, **options)
    if as_json:
        show.as_json(found.as_json())
    else:
        summaries.exported(found)


def report(out: Results, *, as_json: Json = False, **options: Unpack[ReportOptions]) -> None:
    """Write results as one page with figures.

    OUT/report.html, report.json, figures/."""
    from spklink.cli import show
    from spklink.report.partition import write_partition_page
    from spklink.report.write import write_report
    from spklink.runs.inputs import read_labels
    from spklink.runs.partition_folder import is_partition

    if is_partition(out):
        show.text(f"report: {write_partition_page(out)}")
        return
    with show.stages_on_stderr() as stages:
        page = write_report(
            out,
            key=read_labels(options["key"], options),
            claimed=read_labels(options["claimed"], options),
            verbal=options["verbal"],
            workers=options["workers"],
            stages=stages,
        )
    if as_json:
        show.text_as_json(page.with_suffix(".json").read_text(encoding="utf-8").rstrip())
    else:
        show.text(f"report: {page}")
    if options["open"]:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def evaluate(out: Results, *, as_json: Json = False, **options: Unpack[EvaluateOptions]) -> None:
    """Measure results against the truth, or known channels.

    With a key the paper's Tables 2 and 3."""
    from spklink.cli import measures, show
    from spklink.runs import measure
    from spklink.runs.inputs import read_labels
    from spklink.runs.partition_folder import is_partition

    key, workers = read_labels(options["key"], options), options["workers"]
    if is_partition(out):
        _evaluate_partition(out, key, as_json=as_json)
        return
    if key is None:
        with show.stages_on_stderr() as stages:
            found = measure.consistency(out, workers=workers, stages=stages)
        if as_json:
            show.as_json(found.as_json())
        else:
            measures.marginals(found, "Known channels, hidden and predicted")
        return
    with show.stages_on_stderr() as stages:
        result = measure.evaluate(out, key, workers=workers, stages=stages)
    if as_json:
        show.as_json(result.as_json())
    else:
        measures.evaluation(result)


def _evaluate_partition(out: Path, key: Any, *, as_json: bool) -> None:
    from spklink.cli import partitions, show
    from spklink.runs.partition_measure import evaluate_partition

    if key is None:
        raise SpklinkError("a partition is measured against the truth: give --key")
    with show.stages_on_stderr() as stages:
        found = evaluate_partition(out, key, stages=stages)
    if as_json:
        show.as_json(found.as_json())
    else:
        partitions.evaluated(found)


def entropy(
    table: CountedTable = None, *, as_json: Json = False, **options: Unpack[EntropyOptions]
) -> None:
    """Bits unknown before listening: the paper's Table 1."""
    from dataclasses import asdict

    from spklink.cli import measures, show
    from spklink.measures.entropy import levels

    conversations, speakers = options["conversations"], options["speakers"]
    if table is not None:
        if conversations is not None or speakers is not None:
            raise SpklinkError("give either a table or --conversations and --speakers, not both")
        from spklink.database.conversations import read_conversations
        from spklink.database.sides import refuse_more_than_bits

        read = read_conversations(table)
        refuse_more_than_bits(read)
        conversations, speakers = len(read), len(read.speakers)
    if conversations is None or speakers is None:
        raise SpklinkError("give a table, or both --conversations and --speakers")
    rows = levels(conversations, speakers)
    if as_json:
        counts = {"conversations": conversations, "speakers": speakers}
        show.as_json(counts | {"levels": [asdict(row) for row in rows]})
    else:
        measures.levels(rows, f"{conversations} conversations, {speakers} speakers")


def simulate(
    folder: Simulation, *, as_json: Json = False, **options: Unpack[SimulateOptions]
) -> None:
    """Make a table, scores and the key of a database."""
    check_folder(folder)
    from spklink.cli import show, summaries
    from spklink.worlds import simulate as source

    made = source.simulate(
        shape=options["shape"],
        conversations=options["conversations"],
        people=options["people"],
        tracks=options["tracks"],
        missing=options["missing"],
        absent=options["absent"],
        placeholders=options["placeholders"],
        split=options["split"],
        world=options["world"],
        eer=options["eer"],
        seed=options["seed"],
    )
    files = source.write_simulation(made, folder, npz=options["npz"])
    if as_json:
        show.as_json(
            {
                "conversations": len(made.conversations),
                "speakers": len(made.conversations.speakers),
                "scores": int(made.llr.size + len(made.non_targets)),
                "files": [str(path) for path in files],
            }
        )
    else:
        summaries.simulated(made, files)


def paper(*, as_json: Json = False, **options: Unpack[PaperOptions]) -> None:
    """The paper's three tables beside what is computed here."""
    from spklink.cli import measures, show
    from spklink.runs import paper as source

    with show.stages_on_stderr() as stages:
        rows = source.tables_2_and_3(
            databases=options["databases"],
            world=options["world"],
            eer=options["eer"],
            seed=options["seed"],
            tell=stages.progress,
        )
    if as_json:
        show.as_json(source.as_json(rows, dict(options)))
    else:
        measures.paper(rows, dict(options))


def init(
    folder: Recordings = None,
    out: FirstTable = Path("conversations.csv"),
    *,
    as_json: Json = False,
    **options: Unpack[InitOptions],
) -> None:
    """Write a first table of recordings, or of a corpus."""
    from spklink.cli import show
    from spklink.runs.init import in_words
    from spklink.runs.init import init as run

    made = run(folder, out, **options)
    if as_json:
        show.as_json(made.as_json())
    else:
        for line in in_words(made):
            show.text(line)


def check(table: Table, *, as_json: Json = False, **options: Unpack[CheckOptions]) -> int:
    """Look at a table before listening, and what is wrong with it.

    Cliques, what can be resolved, entropies, problems, what linking would cost."""
    from spklink.cli import show, summaries
    from spklink.cli.asking import asked_table
    from spklink.runs.check import check as run

    people, options = asked_table(table, options)
    with show.stages_on_stderr() as stages:
        found = run(people, stages=stages, **options)
    if as_json:
        show.as_json(found)
    else:
        summaries.description(found)
    return PROBLEMS if found["bad_recordings"] or found["would_stop"] else FINE


def completion(shell: Shell) -> None:
    """Print what makes a shell complete commands and options.

    bash and zsh: put the line below into ~/.bashrc or ~/.zshrc, with the name of the shell.

    fish: spklink completion fish > ~/.config/fish/completions/spklink.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from spklink.cli.commands import COMPLETE

    print(get_completion_script(prog_name="spklink", complete_var=COMPLETE, shell=shell))

"""The command line. Heavy imports stay inside the commands, so that `--help` is instant.

Results go to standard output, progress and errors to standard error. An error that
a person can mend is one line and exit code 2; `--debug` shows where it came from.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spklink.cli.options import (
    CHOOSE,
    BadAudio,
    Beta,
    CalibrationOption,
    Eer,
    Fallback,
    Gigabytes,
    Json,
    Kind,
    KindName,
    Known,
    Method,
    Out,
    PresetName,
    RecognizerName,
    Scores,
    Seconds,
    Seed,
    ShapeName,
    SidesTable,
    Table,
    WeightName,
    WeightOption,
    Workers,
    World,
    WorldName,
    WrongLists,
)

if TYPE_CHECKING:
    from spklink.calibration.choice import Choice
    from spklink.measures.evaluation import Evaluation
    from spklink.posterior.likelihood import Weight

app = typer.Typer(
    name="spklink",
    help="Who is on which channel of every two-channel call, with calibrated probabilities.",
    epilog="Start with:  spklink demo, then  spklink link conversations.csv -o results",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        from spklink import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Who is on which channel of every two-channel call, with calibrated probabilities."""


@app.command(epilog="Example:  spklink assign conversations.csv --scores scores.csv -o results")
def assign(
    table: Table,
    scores: Scores,
    out: Out,
    calibration: CalibrationOption = "none",
    kind: Kind = None,
    sides: SidesTable = None,
    fallback: Fallback = None,
    wrong_lists: WrongLists = 0.0,
    weight: WeightOption = WeightName.auto,
    beta: Beta = None,
    known: Known = None,
    method: Method = CHOOSE,
    budget_seconds: Seconds = 60.0,
    budget_gb: Gigabytes = 4.0,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find who is on which channel, from scores between conversation sides."""
    from spklink.cli import show
    from spklink.posterior.inference.plan import Budget
    from spklink.posterior.posterior import Options
    from spklink.runs.assign import assign as run

    options = Options(method.value, Budget(budget_seconds, budget_gb), seed, workers)
    with show.stages_on_stderr() as stages:
        result = run(
            table,
            scores,
            out,
            calibration=_choice(calibration, kind, fallback, wrong_lists),
            sides=sides,
            weight=_weight(weight, beta),
            known=known,
            options=options,
            stages=stages,
        )
    found = result.summary()
    calibrated = result.database.calibrated
    notes = [] if calibrated is None or not calibrated.note else [calibrated.note]
    if as_json:
        _print_json(found | {"notes": notes, "out": str(out)})
    else:
        show.summary(found, out, notes)


def _choice(
    source: str, kind: KindName | None, fallback: Path | None, wrong_lists: float
) -> Choice:
    from spklink.calibration.choice import Choice

    form = None if kind is None else kind.value
    return Choice(source, form, fallback, wrong_lists=wrong_lists)


def _weight(name: WeightName, beta: float | None) -> Weight | None:
    """None leaves the rule to calibration; a beta alone asks for the rule that has one."""
    from spklink.posterior.likelihood import Weight

    if name is WeightName.auto:
        return None if beta is None else Weight("book", beta)
    return Weight(name.value, beta)


@app.command(epilog="Example:  spklink link conversations.csv -o results --claimed claimed.csv")
def link(
    table: Table,
    out: Out,
    recognizer: Annotated[
        RecognizerName, typer.Option("--recognizer", help="What compares the voices.")
    ] = RecognizerName.gmm_ubm,
    preset: Annotated[
        PresetName,
        typer.Option("--preset", help="What measured best without labels, or the paper's recipe."),
    ] = PresetName.default,
    background: Annotated[
        Path | None,
        typer.Option("--background", help="Folder of speech to train on instead of the calls."),
    ] = None,
    components: Annotated[
        int | None, typer.Option("--components", help="Gaussians of the mixture (256 or 1024).")
    ] = None,
    known: Known = None,
    claimed: Annotated[
        Path | None,
        typer.Option("--claimed", help="Claims to check: conversation,channel,speaker."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The truth; only to measure the results.")
    ] = None,
    on_bad_audio: Annotated[
        BadAudio, typer.Option("--on-bad-audio", help="Stop at bad recordings, or do without them.")
    ] = BadAudio.fail,
    min_speech: Annotated[
        float, typer.Option("--min-speech", help="Seconds of speech a side needs to be used.")
    ] = 2.0,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Write the scores of all side pairs.")
    ] = False,
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Folder of the cache (OUT/cache).")
    ] = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train anew on the calls as they are now.")
    ] = False,
    calibration: CalibrationOption = "labelfree",
    kind: Kind = None,
    fallback: Fallback = None,
    wrong_lists: WrongLists = 0.0,
    link_wccn: Annotated[
        bool,
        typer.Option(
            "--link-wccn/--no-link-wccn", help="Compare voices again as the links teach (default)."
        ),
    ] = True,
    weight: WeightOption = WeightName.auto,
    beta: Beta = None,
    method: Method = CHOOSE,
    budget_seconds: Seconds = 60.0,
    budget_gb: Gigabytes = 4.0,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Cores to use; all of them by default.")
    ] = None,
    seed: Seed = 0,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write OUT/report.html too.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Listen to all calls and find who is on which channel: the main job."""
    import os

    from spklink.cli import show
    from spklink.posterior.inference.plan import Budget
    from spklink.posterior.posterior import Options
    from spklink.runs.link import Settings
    from spklink.runs.link import link as run

    settings = Settings(
        preset=preset.value,
        components=components,
        background=background,
        calibration=_choice(calibration, kind, fallback, wrong_lists),
        link_wccn=link_wccn,
        weight=_weight(weight, beta),
        min_speech=min_speech,
        skip_bad_audio=on_bad_audio is BadAudio.skip,
        all_pairs=all_pairs,
        retrain=retrain,
        cache=cache,
    )
    cores = workers or os.cpu_count() or 1
    options = Options(method.value, Budget(budget_seconds, budget_gb), seed, cores)
    with show.stages_on_stderr() as stages:
        found = run(
            table,
            out,
            settings=settings,
            known=known,
            claimed=claimed,
            options=options,
            stages=stages,
        )
    measured = None if key is None else _evaluate(out, key, cores)
    if as_json:
        _print_json(
            found.summary()
            | {"out": str(out), "evaluation": measured.as_json() if measured else None}
        )
    else:
        show.linked(found, out)
        if measured is not None:
            show.evaluation(measured)
    if report:  # last, so that whatever goes wrong here comes after the results
        page = _write_report(out, key, claimed, cores)
        if not as_json:
            show.text(f"report: {page}")


@app.command(
    epilog="Example:  spklink calibrate conversations.csv --scores scores.csv -o calibration.json"
)
def calibrate(
    table: Table,
    scores: Scores,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the calibration (JSON).")],
    key: Annotated[
        Path | None, typer.Option("--key", help="The truth; without it no label is used.")
    ] = None,
    kind: Kind = None,
    sides: SidesTable = None,
    known: Known = None,
    wrong_lists: WrongLists = 0.0,
    weight: WeightOption = WeightName.auto,
    beta: Beta = None,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn how scores become log-likelihood-ratios: from a key, or without a single label."""
    from spklink.calibration.choice import learn
    from spklink.cli import show
    from spklink.database.labels import read_key, read_known
    from spklink.posterior.likelihood import Weight
    from spklink.posterior.posterior import Options
    from spklink.runs.assign import read_database
    from spklink.tables import write_json

    rule = _weight(weight, beta)
    with show.stages_on_stderr() as stages:
        database = read_database(table, scores, weight=rule or Weight(), stages=stages)
        people = database.conversations
        with stages.stage("calibrating"):
            found = learn(
                people,
                database.links,
                database.scores,
                _choice("labelfree", kind, None, wrong_lists),
                sides=sides,
                key=None if key is None else read_key(key, people),
                known=None if known is None else read_known(known, people),
                weight=rule,
                options=Options(seed=seed, workers=workers),
                tell=stages.progress,
            )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, found)
    if as_json:
        _print_json(found | {"out": str(out)})
    else:
        show.calibration(found, out)


@app.command(
    epilog="Example:  spklink detect conversations.csv --scores scores.csv --key key.csv --json"
)
def detect(
    table: Table,
    scores: Scores,
    key: Annotated[Path, typer.Option("--key", help="The truth: conversation,channel,speaker.")],
    as_json: Json = False,
) -> None:
    """How well the scores tell the same speaker from others: EER, Cllr, minimum costs."""
    from spklink.cli import show
    from spklink.database.conversations import read_conversations
    from spklink.database.labels import read_key
    from spklink.measures.detection import measure
    from spklink.scores.trials import read_trials

    with show.stages_on_stderr() as stages:
        with stages.stage("reading the scores"):
            people = read_conversations(table)
            targets, others = read_trials(scores, people, read_key(key, people))
        with stages.stage("measuring"):
            found = measure(targets, others)
    if as_json:
        _print_json(found.as_json())
    else:
        show.detection(found)


@app.command(epilog="Example:  spklink demo")
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the recordings and the results.")
    ] = Path("demo-out"),
    preset: Annotated[
        PresetName, typer.Option("--preset", help="The recognizer's recipe.")
    ] = PresetName.default,
    seed: Seed = 0,
) -> None:
    """Make a small telephone database with artificial voices, link it, and measure the result."""
    import os

    from spklink.cli import show
    from spklink.posterior.posterior import Options
    from spklink.runs.link import Settings
    from spklink.runs.link import link as run
    from spklink.worlds.voices import write_database

    cores = os.cpu_count() or 1
    with show.stages_on_stderr() as stages:
        with stages.stage("making calls"):
            write_database(out / "calls", seed=seed)
        found = run(
            out / "calls" / "conversations.csv",
            out / "results",
            settings=Settings(preset=preset.value),
            options=Options(workers=cores),
            stages=stages,
        )
    show.text(f"calls with artificial voices: {out / 'calls'}")
    show.linked(found, out / "results")
    show.text()
    key = out / "calls" / "key.csv"
    show.evaluation(_evaluate(out / "results", key, cores))
    show.text(f"report: {_write_report(out / 'results', key, None, cores)}")


@app.command(
    epilog="Example:  spklink report results --open\n\n"
    "         spklink report results --key key.csv --claimed claimed.csv"
)
def report(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder written by link or assign.")],
    key: Annotated[
        Path | None, typer.Option("--key", help="The truth, to measure the results against.")
    ] = None,
    claimed: Annotated[
        Path | None,
        typer.Option("--claimed", help="Claims to check: conversation,channel,speaker."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    workers: Workers = 1,
    as_json: Json = False,
) -> None:
    """Write results as one page with figures: OUT/report.html, report.json, figures/."""
    page = _write_report(out, key, claimed, workers)
    if as_json:
        print(page.with_suffix(".json").read_text(encoding="utf-8"), end="")
    else:
        from spklink.cli import show

        show.text(f"report: {page}")
    if open_:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _write_report(out: Path, key: Path | None, claimed: Path | None, workers: int) -> Path:
    from spklink.cli import show
    from spklink.report import write_report

    with show.stages_on_stderr() as stages:
        return write_report(out, key=key, claimed=claimed, workers=workers, stages=stages)


def _evaluate(out: Path, key: Path, workers: int) -> Evaluation:
    """Measure a results folder against a key, with progress."""
    from spklink.cli import show
    from spklink.database.labels import read_key
    from spklink.measures.evaluation import evaluate as run
    from spklink.posterior.posterior import solve
    from spklink.runs.assign import load

    database, options = load(out, workers=workers)
    labels = read_key(key, database.conversations)
    with show.stages_on_stderr() as stages, stages.stage("measuring"):
        posterior = solve(database.model, options=options, tell=stages.progress)
        return run(posterior, labels.bits, foreign_key_rows=labels.foreign, options=options)


@app.command(epilog="Example:  spklink evaluate results --key key.csv --json")
def evaluate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder written by link or assign.")],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            help="The truth: conversation,channel,speaker. Without it known channels are hidden "
            "in turn, predicted, and compared.",
        ),
    ] = None,
    workers: Workers = 1,
    as_json: Json = False,
) -> None:
    """Measure results against the truth (the paper's Tables 2 and 3), or against known channels."""
    from spklink.cli import show

    if key is None:
        from spklink.runs.assign import consistency

        with show.stages_on_stderr() as stages, stages.stage("hiding known channels"):
            found = consistency(out, workers=workers)
        if as_json:
            _print_json(found.as_json())
        else:
            show.marginals(found, "Known channels, hidden and predicted")
        return
    result = _evaluate(out, key, workers)
    if as_json:
        _print_json(result.as_json())
    else:
        show.evaluation(result)


@app.command(
    epilog="Example:  spklink entropy --conversations 348 --speakers 356\n\n"
    "         spklink entropy conversations.csv --json"
)
def entropy(
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TABLE]", help="Count the conversations and speakers of this table."
        ),
    ] = None,
    conversations: Annotated[
        int | None, typer.Option("--conversations", help="Number of two-sided conversations.")
    ] = None,
    speakers: Annotated[int | None, typer.Option("--speakers", help="Number of speakers.")] = None,
    as_json: Json = False,
) -> None:
    """Bits of uncertainty at the four levels of knowledge: the paper's Table 1."""
    from dataclasses import asdict

    from spklink.cli import show
    from spklink.errors import SpklinkError
    from spklink.measures.entropy import levels

    if table is not None and (conversations is not None or speakers is not None):
        raise SpklinkError("give either a table or --conversations and --speakers, not both")
    if table is not None:
        from spklink.database.conversations import read_conversations

        read = read_conversations(table)
        conversations, speakers = len(read), len(read.speakers)
    if conversations is None or speakers is None:
        raise SpklinkError("give a table, or both --conversations and --speakers")
    rows = levels(conversations, speakers)
    if as_json:
        _print_json(
            {
                "conversations": conversations,
                "speakers": speakers,
                "levels": [asdict(row) for row in rows],
            }
        )
        return
    show.table(
        ["level", "expression", "bits", "F", ""],
        [
            (r.level, r.expression, show.number(r.bits), show.number(r.confusion, 1), note)
            for r in rows
            for note in ("exact" if r.exact else "approximate",)
        ],
        title=f"{conversations} conversations, {speakers} speakers",
        left=2,
    )


@app.command(epilog="Example:  spklink simulate sim --shape cgn --world plda --eer 7 --seed 1")
def simulate(
    folder: Annotated[Path, typer.Argument(metavar="OUTDIR", help="Folder for the files.")],
    shape: Annotated[ShapeName, typer.Option("--shape", help="Who talks to whom.")] = ShapeName.cgn,
    conversations: Annotated[
        int | None,
        typer.Option("--conversations", help="Number of them, else 348 (cgn), 696 (pairs), 100."),
    ] = None,
    world: World = WorldName.gaussian,
    eer: Eer = 7.0,
    seed: Seed = 0,
    npz: Annotated[bool, typer.Option("--npz", help="Write scores.npz, not scores.csv.")] = False,
    as_json: Json = False,
) -> None:
    """Make a database with a known truth: conversations.csv, scores, key.csv."""
    from spklink.cli import show
    from spklink.worlds import simulate as source

    made = source.simulate(
        shape=shape.value, conversations=conversations, world=world.value, eer=eer, seed=seed
    )
    files = source.write_simulation(made, folder, npz=npz)
    if as_json:
        _print_json(
            {
                "conversations": len(made.conversations),
                "speakers": len(made.conversations.speakers),
                "scores": int(made.llr.size + len(made.non_targets.score)),
                "files": [str(path) for path in files],
            }
        )
        return
    show.text(
        f"{len(made.conversations)} conversations of {len(made.conversations.speakers)} speakers, "
        f"{made.llr.size} needed scores and {len(made.non_targets.score)} of known non-targets"
    )
    for path in files:
        show.text(f"wrote {path}")


@app.command(epilog="Example:  spklink paper --databases 300 --world gaussian --eer 7")
def paper(
    databases: Annotated[
        int, typer.Option("--databases", min=1, help="Simulated databases, one a seed.")
    ] = 300,
    world: World = WorldName.gaussian,
    eer: Eer = 7.0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The paper's three tables beside what this software computes."""
    from spklink.cli import show
    from spklink.runs import paper as source

    settings = {"databases": databases, "world": world.value, "eer": eer, "seed": seed}
    with show.stages_on_stderr() as stages:
        rows = source.tables_2_and_3(
            databases=databases,
            world=world.value,
            eer=eer,
            seed=seed,
            tell=stages.progress,
        )
    if as_json:
        _print_json(source.as_json(rows, settings))
    else:
        show.paper(rows, settings)


@app.command(epilog="Example:  spklink check conversations.csv")
def check(table: Table, as_json: Json = False) -> None:
    """What a database looks like: cliques, what can be resolved, entropies, problems."""
    from spklink.cli import show
    from spklink.runs.check import describe

    found = describe(table)
    if as_json:
        _print_json(found)
    else:
        show.description(found)


def main() -> None:
    """Entry point: run, and turn what a person can mend into one line and exit code 2."""
    from spklink.errors import SpklinkError

    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        code = app(standalone_mode=False)
        if code == 130:  # the parser turns an interrupt into this
            raise KeyboardInterrupt
        sys.exit(code)
    except (SpklinkError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has left
            sys.stderr.close()
            sys.exit(0)
        if "--debug" in sys.argv:
            raise
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print("spklink: stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        # Errors of usage come from the option parser, whose classes have no public home.
        if not hasattr(error, "format_message"):
            raise
        _fail(f"{error.format_message()} (spklink --help, spklink COMMAND --help)")


def _fail(message: str) -> None:
    print(f"spklink: {' '.join(message.splitlines())}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()

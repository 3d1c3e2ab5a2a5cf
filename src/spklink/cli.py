"""The command line. Heavy imports stay inside the commands, so that `--help` is instant.

Results go to standard output, progress and errors to standard error. An error that
a person can mend is one line and exit code 2; `--debug` shows where it came from.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="spklink",
    help="Who is on which channel of every two-channel call, with calibrated probabilities.",
    epilog="Start with:  spklink simulate sim && spklink assign sim/conversations.csv "
    "--scores sim/scores.csv -o out && spklink evaluate out --key sim/key.csv",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class WeightName(StrEnum):
    paper = "paper"
    chain = "chain"
    book = "book"


class MethodName(StrEnum):
    auto = "auto"
    enumerate_ = "enumerate"
    trace = "trace"
    tree = "tree"
    certified = "certified"
    sample = "sample"
    bp = "bp"


class ShapeName(StrEnum):
    cgn = "cgn"
    star = "star"
    network = "network"


class WorldName(StrEnum):
    gaussian = "gaussian"
    plda = "plda"
    t5 = "t5"


Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="Table of conversations: conversation,audio,participants."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
World = Annotated[WorldName, typer.Option("--world", help="What the scores are like.")]
Eer = Annotated[float, typer.Option("--eer", help="Equal error rate of the scores, in per cent.")]


Method = Annotated[
    MethodName, typer.Option("--method", help="How to solve large cliques; auto chooses.")
]
Seconds = Annotated[
    float, typer.Option("--budget-seconds", help="Predicted seconds one clique may cost.")
]
Gigabytes = Annotated[
    float, typer.Option("--budget-gb", help="Predicted gigabytes one clique may need.")
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Cliques solved side by side.")]


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
    scores: Annotated[
        Path, typer.Option("--scores", help="Calibrated log-likelihood-ratios, .csv or .npz.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")],
    weight: Annotated[
        WeightName, typer.Option("--weight", help="How the pairs of a speaker's calls count.")
    ] = WeightName.paper,
    beta: Annotated[
        float | None,
        typer.Option("--beta", help="Between/within-speaker variance ratio, for --weight book."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option("--known", help="Known channels: conversation,channel,speaker[,probability]."),
    ] = None,
    method: Method = MethodName.auto,
    budget_seconds: Seconds = 60.0,
    budget_gb: Gigabytes = 4.0,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find who is on which channel, from scores between conversation sides."""
    from spklink import show
    from spklink.assignment import assign as run
    from spklink.inference.plan import Budget
    from spklink.posterior import Options

    options = Options(method.value, Budget(budget_seconds, budget_gb), seed, workers)
    with show.stages_on_stderr() as stages:
        result = run(
            table,
            scores,
            out,
            weight=weight.value,
            beta=beta,
            known=known,
            options=options,
            stages=stages,
        )
    found = result.summary()
    if as_json:
        _print_json(found | {"out": str(out)})
    else:
        show.summary(found, out)


@app.command(epilog="Example:  spklink evaluate results --key key.csv --json")
def evaluate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder written by assign.")],
    key: Annotated[Path, typer.Option("--key", help="The truth: conversation,channel,speaker.")],
    workers: Workers = 1,
    as_json: Json = False,
) -> None:
    """Measure results against the truth: the paper's Tables 2 and 3."""
    from spklink import show
    from spklink.assignment import load
    from spklink.evaluation import evaluate as run
    from spklink.labels import read_key

    database, options = load(out, workers=workers)
    labels = read_key(key, database.conversations)
    with show.stages_on_stderr() as stages, stages.stage("computing the posterior"):
        result = run(
            database.model,
            labels.bits,
            foreign_key_rows=labels.foreign,
            options=options,
            tell=stages.progress,
        )
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

    from spklink import show
    from spklink.entropy import levels
    from spklink.errors import SpklinkError

    if table is not None and (conversations is not None or speakers is not None):
        raise SpklinkError("give either a table or --conversations and --speakers, not both")
    if table is not None:
        from spklink.conversations import read_conversations

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
        typer.Option("--conversations", help="Number of conversations (star, network; 100)."),
    ] = None,
    world: World = WorldName.gaussian,
    eer: Eer = 7.0,
    seed: Seed = 0,
    npz: Annotated[bool, typer.Option("--npz", help="Write scores.npz, not scores.csv.")] = False,
    as_json: Json = False,
) -> None:
    """Make a database with a known truth: conversations.csv, scores, key.csv."""
    from spklink import show
    from spklink import simulate as source

    made = source.simulate(
        shape=shape.value, conversations=conversations, world=world.value, eer=eer, seed=seed
    )
    files = source.write_simulation(made, folder, npz=npz)
    if as_json:
        _print_json(
            {
                "conversations": len(made.conversations),
                "speakers": len(made.conversations.speakers),
                "scores": int(made.llr.size + len(made.non_targets[0])),
                "files": [str(path) for path in files],
            }
        )
        return
    show.text(
        f"{len(made.conversations)} conversations of {len(made.conversations.speakers)} speakers, "
        f"{made.llr.size} needed scores and {len(made.non_targets[0])} of known non-targets"
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
    from spklink import paper as source
    from spklink import show

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
    from spklink import show
    from spklink.check import describe

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
        sys.exit(app(standalone_mode=False))
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

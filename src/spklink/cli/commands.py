"""The commands, as the parser of the command line sees them.

Heavy imports stay inside the commands, so that `--help` is instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from spklink.cli import look, review, runs
from spklink.cli.parameters import named, parsed
from spklink.cli.parser import LOG, Command, Group, hoisted, in_order
from spklink.cli.talk import begin

COMPLETE = "_SPKLINK_COMPLETE"  # how shells ask what may come next
EXAMPLES: dict[Callable[..., Any], list[str]] = {  # every command; `parser` has their order
    look.init: [
        "spklink init recordings --audio '{caller}_{callee}_{date}.wav'",
        "spklink init --corpus kaldi:data/train -o tables/conversations.csv",
    ],
    runs.assign: ["spklink assign conversations.csv --scores scores.csv -o results"],
    runs.link: [
        "spklink link conversations.csv -o results --claimed claimed.csv",
        "spklink link --corpus cgn:/data/CGN --component c -o results",
    ],
    runs.watch: [
        "spklink watch conversations.csv -o results --no-report",
        "spklink watch recordings --audio '{caller}_{callee}_{date}.wav' -o results --json",
        "spklink watch conversations.csv -o results --once",
    ],
    runs.partition: [
        "spklink partition conversations.csv -o who",
        "spklink partition conversations.csv --scores scores.csv --speakers 12 -o who",
    ],
    runs.compare: [
        "spklink compare conversations.csv --recognizer gmm-ubm --embeddings vectors.npz -o both",
        "spklink compare conversations.csv --recognizer gmm-ubm:paper --scores scores.csv -o other",
    ],
    runs.calibrate: ["spklink calibrate conversations.csv --scores scores.csv -o calibration.json"],
    look.detect: ["spklink detect conversations.csv --scores scores.csv --key key.csv --json"],
    look.recognizers: ["spklink recognizers model.onnx", "spklink recognizers"],
    runs.demo: ["spklink demo", "spklink demo --meetings -o meetings-out"],
    look.export: [
        "spklink export results -o textgrids --to textgrid",
        "spklink export results -o data --to kaldi --only all",
    ],
    look.report: [
        "spklink report results --open",
        "spklink report results --key key.csv --claimed claimed.csv",
    ],
    review.review: [
        "spklink review results",
        "spklink review results --blind --reviewer anna",
    ],
    review.queue: ["spklink queue results", "spklink queue results --order paper --count 50"],
    review.decisions: [
        "spklink decisions results",
        "spklink decisions results -o handed-over --claimed claimed.csv",
        "spklink decisions handed-over/log.jsonl",
    ],
    look.evaluate: ["spklink evaluate results --key key.csv --json"],
    look.entropy: [
        "spklink entropy --conversations 348 --speakers 356",
        "spklink entropy conversations.csv --json",
    ],
    look.simulate: [
        "spklink simulate sim --shape cgn --world plda --eer 7 --seed 1",
        "spklink simulate sim --shape meetings --tracks 3-6 --missing 0.1 --absent 0.1",
    ],
    look.paper: ["spklink paper --databases 300 --world gaussian --eer 7"],
    look.check: [
        "spklink check conversations.csv",
        "spklink check calls.xlsx --columns 'audio=Datei,participants=Sprecher A;Sprecher B'",
        "spklink check conversations.csv --turns transcripts/",
    ],
    look.completion: ['eval "$(spklink completion bash)"'],
}

HELP = "Who is on which channel of every call, with calibrated probabilities."
_FUNCTIONS = {function.__name__: function for function in EXAMPLES}
ORDER = [_FUNCTIONS[n] for names in in_order(list(_FUNCTIONS)).values() for n in names]


def _version(asked: bool) -> None:
    if asked:
        from spklink import __version__

        print(__version__)
        raise typer.Exit


def options(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only results and errors.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="The time of each stage, also without a screen.")
    ] = False,
    log: Annotated[
        Path | None, typer.Option(LOG, help="Add what is done, and what goes wrong, to this file.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Who is on which channel of every call, with calibrated probabilities."""
    begin(quiet=quiet, verbose=verbose, log=log, words=sys.argv)


def parser(names: Collection[str]) -> typer.Typer:
    """The parser; only commands of these names know their options, which take time to describe."""
    made = typer.Typer(
        name="spklink",
        cls=Group,
        help=HELP,
        epilog="Start with:  spklink demo, then  spklink link conversations.csv -o results",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    made.callback()(options)
    for function in ORDER:
        epilog = "Example:  " + "\n\n         ".join(EXAMPLES[function])
        full = function.__name__ in names
        made.command(cls=Command, epilog=epilog)(parsed(function) if full else named(function))
    return made


def whole() -> typer.Typer:
    """The parser of all commands."""
    return parser(_FUNCTIONS)


def carry_out() -> Any:
    """What the words of the command line ask for; the exit code."""
    app = parser(sys.argv)
    if COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
        app = whole()
    try:
        code = app(hoisted(sys.argv[1:]), prog_name="spklink", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == 130:  # the parser turns an interrupt into this
        raise KeyboardInterrupt
    return code

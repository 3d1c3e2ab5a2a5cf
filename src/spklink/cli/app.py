"""The command line: its commands, and errors that a person can mend as one line and exit code 2.

Results go to standard output, progress and errors to standard error; `--debug` shows where an error
came from. Heavy imports stay inside the commands, so that `--help` is instant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from spklink.cli import look, runs
from spklink.cli.parameters import parsed
from spklink.errors import SpklinkError
from spklink.words import for_screen

EXAMPLES: dict[Callable[..., None], list[str]] = {  # every command, in the order of the help
    runs.assign: ["spklink assign conversations.csv --scores scores.csv -o results"],
    runs.link: ["spklink link conversations.csv -o results --claimed claimed.csv"],
    runs.calibrate: ["spklink calibrate conversations.csv --scores scores.csv -o calibration.json"],
    look.detect: ["spklink detect conversations.csv --scores scores.csv --key key.csv --json"],
    runs.demo: ["spklink demo", "spklink demo --meetings -o meetings-out"],
    look.report: [
        "spklink report results --open",
        "spklink report results --key key.csv --claimed claimed.csv",
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
    look.check: ["spklink check conversations.csv"],
}
LONGEST = 10_000  # characters of an error: whatever is in a file, it stays readable

app = typer.Typer(
    name="spklink",
    help="Who is on which channel of every two-channel call, with calibrated probabilities.",
    epilog="Start with:  spklink demo, then  spklink link conversations.csv -o results",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for function, examples in EXAMPLES.items():
    app.command(epilog="Example:  " + "\n\n         ".join(examples))(parsed(function))


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


def main() -> None:
    """Entry point: run, and turn what a person can mend into one line and exit code 2."""
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        code = app(standalone_mode=False)
        if code == 130:  # the parser turns an interrupt into this
            raise KeyboardInterrupt
        sys.exit(code)
    except (SpklinkError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has left
            sys.stderr.close()
            sys.exit(0)
        if "--debug" in sys.argv:
            _show_traceback()
        _fail(in_words(error))
    except (KeyboardInterrupt, typer.Abort):
        print("spklink: stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        # Errors of usage come from the option parser, whose classes have no public home.
        if not hasattr(error, "format_message"):
            _show_traceback()
        message = " ".join(error.format_message().splitlines())  # the parser's own lines
        _fail(f"{message} (spklink --help, spklink COMMAND --help)")


def in_words(error: Exception) -> str:
    """What went wrong, where, at what, and what can be done about it."""
    when = "".join(f" {note}" for note in getattr(error, "__notes__", [])[:1])
    if isinstance(error, MemoryError):
        return (
            f"out of memory{when} ({error or 'the system gave no more'}); give it more memory, "
            "fewer --workers or less --budget-gb"
        )
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename2 or error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}{when}{_room(error)}"
    return str(error)


def _room(error: OSError) -> str:
    """How much room there is, where there was not enough."""
    import errno
    import shutil
    from pathlib import Path

    if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not error.filename:
        return ""
    folder = next((p for p in Path(error.filename).parents if p.is_dir()), Path())
    free = shutil.disk_usage(folder).free / 1e6
    return f" ({free:.1f} MB are free there); make room and run the same command again"


def _fail(message: str) -> NoReturn:
    """Names and files in the message are shown, never carried out by the terminal."""
    words = for_screen(message)
    short = words if len(words) <= LONGEST else f"{words[:LONGEST]} …"
    print(f"spklink: {short}", file=sys.stderr)
    sys.exit(2)


def _show_traceback() -> NoReturn:
    """As Python does, line by line through the same sieve."""
    import traceback

    for line in traceback.format_exc().splitlines():
        print(for_screen(line), file=sys.stderr)
    sys.exit(1)

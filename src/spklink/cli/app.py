"""Where the command line begins and ends: what a person can mend is one line and an exit code.

Results go to standard output, progress and errors to standard error; `--debug` shows where an error
came from. Everything else is imported inside `main`, so that Ctrl-C is answered from the start.
"""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from spklink.errors import SpklinkError
from spklink.words import for_screen

GARBAGE = 20_000, 20, 20  # new objects between two looks for garbage: most live as long as a run
LONGEST = 10_000  # characters of an error: whatever is in a file, it stays readable
FINE, PROBLEMS, WRONG_INPUT, NO_RESOURCES, FAULT, INTERRUPTED = 0, 1, 2, 3, 70, 130
EXIT_CODES = {
    FINE: "all is well",
    PROBLEMS: (
        "finished, with problems to look at: recordings that are missing or cannot be used, or "
        "(check) input that a run would refuse"
    ),
    WRONG_INPUT: "something given is wrong; the message says what, where, and what to do",
    NO_RESOURCES: "out of memory, of room on the disk, or of open files",
    FAULT: "a fault of spklink itself: please report what it printed",
    INTERRUPTED: "interrupted (Ctrl-C); the same command goes on where it was",
}


def main() -> None:
    """Entry point: run, and turn what a person can mend into one line and an exit code."""
    from spklink.cli import talk

    gc.set_threshold(*GARBAGE)
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        code = _carried_out()
    except SystemExit as stop:  # nobody else ends the process
        code = stop.code if isinstance(stop.code, int) else FINE
    talk.end(code)
    gc.freeze()  # the process ends: to look for what nobody needs any more would take half a second
    sys.exit(code)


def _carried_out() -> int:
    try:
        from spklink.cli.commands import carry_out

        return int(carry_out() or FINE)
    except (SpklinkError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has left
            sys.stderr.close()
            sys.exit(FINE)
        _failed(in_words(error), NO_RESOURCES if is_resource(error) else WRONG_INPUT)
    except KeyboardInterrupt:
        print("spklink: stopped", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Exception as error:
        # Errors of usage come from the option parser, whose classes have no public home.
        if not hasattr(error, "format_message"):
            _show_traceback()
            sys.exit(FAULT)
        message = " ".join(error.format_message().splitlines())  # the parser's own lines
        _failed(f"{message} (spklink --help, spklink COMMAND --help)", WRONG_INPUT)


def is_resource(error: Exception) -> bool:
    """Whether the machine has too little of something."""
    import errno

    scarce = {errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM, getattr(errno, "EDQUOT", -1)}
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in scarce


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

    if error.errno not in (errno.ENOSPC, getattr(errno, "EDQUOT", -1)) or not error.filename:
        return ""
    folder = next((p for p in Path(error.filename).parents if p.is_dir()), Path())
    free = shutil.disk_usage(folder).free / 1e6
    return f" ({free:.1f} MB are free there); make room and run the same command again"


def _failed(message: str, code: int) -> NoReturn:
    """Names and files in the message are shown, never carried out by the terminal."""
    from spklink.cli.talk import TALK

    if "--debug" in sys.argv:
        _show_traceback()
    words = for_screen(message)
    short = words if len(words) <= LONGEST else f"{words[:LONGEST]} …"
    print(f"spklink: {short}", file=sys.stderr)
    TALK.note(f"error: {message}")
    if "--debug" not in sys.argv and TALK.file is not None:
        _log_traceback()
    sys.exit(code)


def _show_traceback() -> None:
    """As Python does, line by line through the same sieve."""
    import traceback

    for line in traceback.format_exc().splitlines():
        print(for_screen(line), file=sys.stderr)
    _log_traceback()


def _log_traceback() -> None:
    import traceback

    from spklink.cli.talk import TALK

    TALK.note(traceback.format_exc())

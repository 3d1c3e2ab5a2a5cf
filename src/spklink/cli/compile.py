"""python -m spklink.cli.compile: compile the fast code now, not in the first run.

It links and measures a few calls of artificial voices, so that just what such a run needs is
compiled, and kept where numba keeps it. A first run that listens has a process of its own compile
what solves cliques (`beside`), most of all that there is, while its helpers listen.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

CLIQUES = "cliques"
SHAPES = (("network", 60, 7.0), ("star", 40, 15.87))  # some pieces small, sparse, dense


def beside() -> subprocess.Popen[bytes] | None:
    """A process that compiles what solves cliques; None where none can be started. It ends with
    this one, which holds the other end of its input, and leaves interrupts to it."""
    words = [sys.executable, "-m", "spklink.cli.compile", CLIQUES]
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True
        )
    except OSError:
        return None


def _cliques() -> None:
    """Compile what solves cliques, lists that may be wrong and all."""
    from spklink.runs.assign import assign
    from spklink.worlds.simulate import simulate

    threading.Thread(target=_end_with_parent, daemon=True).start()
    for shape, count, eer in SHAPES:
        made = simulate(shape=shape, conversations=count, eer=eer)
        assign(made.table(), made.scores(), list_errors="auto", workers=1)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    from spklink.cli.progress import is_compiled, stages_on_stderr

    if CLIQUES in sys.argv[1:]:
        _cliques()
        return
    if is_compiled():
        return
    from spklink.report.write import write_report
    from spklink.runs.link import link
    from spklink.runs.measure import evaluate
    from spklink.worlds.voices import write_database

    with stages_on_stderr() as stages, TemporaryDirectory(prefix="spklink-") as folder:
        calls, results = Path(folder, "calls"), Path(folder, "results")
        with stages.stage("making calls"):
            write_database(calls, seconds=(8.0, 10.0))
        found = link(calls / "conversations.csv", results, stages=stages, workers=1)
        measured = evaluate(found, calls / "key.csv", stages=stages)
        write_report(results, result=found, evaluation=measured, stages=stages)


if __name__ == "__main__":
    main()

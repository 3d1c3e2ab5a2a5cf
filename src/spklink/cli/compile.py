"""python -m spklink.cli.compile: compile the fast code now, not in the first run.

It links and measures a few calls of artificial voices, so that just what such a run needs is
compiled, and kept where numba keeps it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from spklink.cli.progress import is_compiled, stages_on_stderr


def main() -> None:
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

"""python -m spklink.cli.compile: compile the fast code now, not in the first run.

It links and measures a few calls of artificial voices and solves simulated cliques of several
shapes, so that what usual runs need is compiled, and kept where numba keeps it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

SHAPES = (("network", 60, 7.0), ("star", 40, 15.87))  # some pieces small, sparse, dense


def main() -> None:
    from spklink.cli.progress import stages_on_stderr
    from spklink.report.write import write_report
    from spklink.runs.assign import assign
    from spklink.runs.link import link
    from spklink.runs.measure import evaluate
    from spklink.worlds.simulate import simulate
    from spklink.worlds.voices import write_database

    with stages_on_stderr() as stages, TemporaryDirectory(prefix="spklink-") as folder:
        calls, results = Path(folder, "calls"), Path(folder, "results")
        with stages.stage("making calls"):
            write_database(calls, seconds=(8.0, 10.0))
        found = link(calls / "conversations.csv", results, stages=stages, workers=1)
        measured = evaluate(found, calls / "key.csv", stages=stages)
        write_report(results, result=found, evaluation=measured, stages=stages)
        for shape, count, eer in SHAPES:
            made = simulate(shape=shape, conversations=count, eer=eer)
            assign(made.table(), made.scores(), list_errors="auto", workers=1, stages=stages)


if __name__ == "__main__":
    main()

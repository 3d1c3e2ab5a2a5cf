"""Write the report of a results folder: report.html, report.json, appendix.csv and figures/."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from spklink.decisions.log import last_entry
from spklink.errors import SpklinkError
from spklink.measures.evaluation import Evaluation
from spklink.report.results import read_results
from spklink.runs.inputs import read_inputs
from spklink.runs.result import Result
from spklink.runs.stages import Stages
from spklink.tables import Table, aside, write_bytes, write_csv, write_json

FOLDER, NUMBERS, PAGE = "figures", "report.json", "report.html"
APPENDIX_FILE = "appendix.csv"


def write_report(
    out: str | PathLike[str],
    *,
    result: Result | None = None,
    evaluation: Evaluation | None = None,
    key: Table | None = None,
    claimed: Table | None = None,
    verbal: str | None = None,
    workers: int | None = None,
    stages: Stages | None = None,
) -> Path:
    """Write report.html, report.json, appendix.csv and figures/ into a results folder; returns the
    page. `verbal` is a scale that says in words how strong evidence is: enfsi.

    A run that is at hand gives its `result`, and its `evaluation` against the key, so that nothing
    is computed twice.
    """
    from spklink.report import figures, numbers, page, provenance
    from spklink.report.evidence import APPENDIX, appendix_rows
    from spklink.runs.weighed import weigh

    folder, own = Path(out), Stages()
    if stages is not None:
        own.tell, own.progress, own.ended = stages.tell, stages.progress, stages.ended
    results = read_results(
        folder,
        result=result,
        evaluation=evaluation,
        key=key,
        claimed=claimed,
        workers=workers,
        stages=own,
    )
    with own.stage("gathering the numbers"):
        weighed = weigh(results.evidence, results.answer)
        found = numbers.gather(results, weighed, verbal)
    with aside(folder, older_than_days=1.0) as new:  # a run may be writing its results here
        with own.stage("drawing the figures"):
            drawn = figures.draw_all(found)
            write_figures(new / FOLDER, drawn)
        found["times"] = provenance.times(results, own)
        text = page.render(found, {name: svg for name, (svg, _) in drawn.items()})
        safe = bool(results.run["options"].get("safe_csv"))
        write_csv(new / APPENDIX_FILE, APPENDIX, appendix_rows(results, weighed), safe=safe)
        write_json(new / NUMBERS, found)
        write_bytes(new / PAGE, text.encode())
        _put_in_place(new, folder)
    return folder / PAGE


def report_at_hand(
    out: str | PathLike[str], key: Table | None, claimed: Table | None
) -> Path | None:
    """The page of a results folder, where it was made of the same key, claims and decisions and
    without a verbal scale; None where it has to be written. (It goes when its results do.)"""
    folder = Path(out)
    made = [folder / name for name in (PAGE, FOLDER, APPENDIX_FILE)]
    try:
        told = json.loads((folder / NUMBERS).read_bytes())
        of, scale = told["provenance"]["report_inputs"], told["strength"]["scale"]
        last = told.get("answers", {}).get("log")
    except (OSError, ValueError, LookupError, TypeError):
        return None
    same = of == read_inputs({"key": key, "claimed": claimed}).as_json(folder) and scale is None
    same &= last == last_entry(folder)
    return folder / PAGE if same and all(path.exists() for path in made) else None


def write_figures(folder: Path, drawn: dict[str, tuple[str, bytes]]) -> None:
    """Every figure as SVG and PDF."""
    folder.mkdir()
    for name, (svg, pdf) in drawn.items():
        write_bytes(folder / f"{name}.svg", svg.encode())
        write_bytes(folder / f"{name}.pdf", pdf)


def _put_in_place(new: Path, folder: Path) -> None:
    """The old page goes first and the new one comes last: a page that is there is about the figures
    and numbers beside it. Figures of an earlier report go; what others put there stays."""
    from spklink.report.figures import FIGURES

    try:
        (folder / FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise SpklinkError(f"{folder / FOLDER}: cannot be made ({error.strerror})") from None
    (folder / PAGE).unlink(missing_ok=True)
    figures = [f"{FOLDER}/{name}.{kind}" for name in FIGURES for kind in ("svg", "pdf")]
    for name in (*figures, APPENDIX_FILE, NUMBERS, PAGE):
        if (new / name).exists():
            (new / name).replace(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)

"""Every figure of a report, drawn from its table: SVG for the page, SVG and PDF for a paper.

In files colours are fixed; in the page each becomes a CSS variable, so that one drawing serves
light, dark and print, and style attributes, which the page's policy forbids, become attributes of
their own.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import lru_cache
from typing import Any

from spklink.processes import Died, in_processes, waiting
from spklink.report import database_plot, plots
from spklink.report.plots import (
    AMBER,
    BLUE,
    GREEN,
    GRID,
    INK,
    MUTED,
    PAPER,
    RED,
    SKY,
    Figure,
    Numbers,
)

VARIABLES = {
    **{INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper"},
    **{BLUE: "--blue", SKY: "--sky", AMBER: "--amber", RED: "--red", GREEN: "--green"},
}
STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "spklink",
    "pdf.fonttype": 42,
    "figure.constrained_layout.use": True,
}


Drawn = tuple[str, bytes]  # SVG text, PDF bytes


def draw_all(numbers: Numbers) -> dict[str, Drawn]:
    """Name → (SVG text, PDF bytes) of every figure for which there are numbers, by helpers where
    some were started ahead: to load what draws takes as long as to draw."""
    drawn = {}
    for name, one in zip(FIGURES, _painted(numbers), strict=True):
        mine = _drawn(name, numbers) if isinstance(one, Died) else one
        if mine is not None:
            drawn[name] = mine
    return drawn


def _painted(numbers: Numbers) -> Iterator[Drawn | Died | None]:
    """All figures in their order, by whoever is there."""
    painters = waiting(draw)
    if not painters:
        yield from (_drawn(name, numbers) for name in FIGURES)
        return
    data = pickle.dumps(numbers)
    with closing(in_processes(draw, [(name, data) for name in FIGURES], painters)) as found:
        yield from found


def draw(item: tuple[str, bytes]) -> Drawn | None:
    """In a helper: one figure."""
    name, data = item
    return _drawn(name, _read(data))


@lru_cache(maxsize=1)
def _read(data: bytes) -> Numbers:
    numbers: Numbers = pickle.loads(data)
    return numbers


def _drawn(name: str, numbers: Numbers) -> Drawn | None:
    """A figure; None where there is nothing to draw."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    paint, size = FIGURES[name]
    with matplotlib.rc_context():
        matplotlib.rcParams.update(matplotlib.rcParamsDefault)  # not what a user's file says
        matplotlib.rcParams.update(STYLE)
        figure = Canvas(figsize=size)
        if not paint(figure, numbers):
            return None
        figure.draw_without_rendering()  # sets the margins, once for both files
        figure.set_layout_engine("none")
        return svg_of(figure), _pdf(figure)


def svg_of(figure: Figure) -> str:
    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=nothing)
    return out.getvalue()


def _pdf(figure: Figure) -> bytes:
    out = io.BytesIO()
    nothing = dict.fromkeys(("CreationDate", "Creator", "Producer"))
    figure.savefig(out, format="pdf", metadata=nothing)
    return out.getvalue()


def for_page(name: str, svg: str) -> str:
    """The drawing to be put inside a page: variables for colours, no header, ids of its own."""
    svg = svg[svg.index("<svg") :]
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: _own_id(name, m[1]) if m[1] in used else "", svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: 'DejaVu Sans'; ", "")
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', svg, count=1)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r"<[^>]* style=[^>]*>", _without_style, svg)
    return re.sub(r">\s*\n\s*<", "><", svg)


def _without_style(tag: re.Match[str]) -> str:
    """A tag whose style="fill: none; opacity: .5" has become fill="none" opacity=".5"."""
    return re.sub(r' style="([^"]*)"', lambda style: _attributes(style[1]), tag[0])


def _attributes(style: str) -> str:
    parts = (part.partition(":") for part in style.split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in parts)


def _own_id(name: str, old: str) -> str:
    return f' id="{name}-{old}"'


FIGURES: dict[str, tuple[Callable[[Figure, Numbers], bool], tuple[float, float]]] = {
    "staircase": (plots.staircase, (6.6, 2.7)),
    "cliques": (plots.cliques, (6.6, 2.5)),
    "database": (database_plot.database, (8.4, 6.4)),
    "scores": (plots.scores, (6.6, 3.0)),
    "calibration": (plots.calibration, (4.1, 2.6)),
    "speech": (plots.speech, (4.1, 2.6)),
    "det": (plots.det, (4.1, 4.0)),
    "tippett": (plots.tippett, (4.1, 4.0)),
    "reliability": (plots.reliability, (4.1, 3.4)),
    "agreement": (plots.agreement, (8.4, 3.0)),
    "errors": (plots.errors, (4.1, 3.4)),
    "certainty": (plots.certainty, (4.1, 3.0)),
    "sizes": (plots.sizes, (4.1, 3.0)),
}

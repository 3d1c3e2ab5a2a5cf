"""Several recognizers as pictures: one a measure, and a page that has them all."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from spklink.report.figures import STYLE
from spklink.report.plots import BLUE, SKY, Figure
from spklink.runs.comparison import Compared, Comparison
from spklink.tables import write_bytes
from spklink.words import printable

PAGE, FOLDER = "compare.html", "figures"
Value = Callable[[Any], float | None]  # of Measures


def _share(name: str) -> Value:
    def value(measures: Any) -> float | None:
        found = getattr(measures, name)
        return None if found is None else 100.0 * found

    return value


def _plain(name: str, scale: float = 1.0) -> Value:
    def value(measures: Any) -> float | None:
        found = getattr(measures, name)
        return None if found is None else float(found) / scale

    return value


# Name of the file: title, axis, value, and another to be drawn beside it.
PICTURES: dict[str, tuple[str, str, Value, tuple[str, Value] | None]] = {
    "eer": ("Equal error rate", "per cent", _share("eer"), None),
    "cllr": ("Cllr", "bits", _plain("cllr"), ("at best", _plain("min_cllr"))),
    "bits": ("Cross entropy", "bits a conversation", _plain("cross_entropy_bits"), None),
    "confusion": ("Confusion F", "states a conversation", _plain("confusion"), None),
    "cliques": ("Cliques with an error, E", "per cent", _share("clique_error_rate"), None),
    "wrong": (
        *("Wrong, and expected to be", "conversations or tracks"),
        _plain("wrong"),
        ("expected", _plain("expected_wrong")),
    ),
    "evidence": ("Evidence", "bits a conversation", _plain("evidence_bits"), None),
    "errors": ("Errors it expects itself", "tracks", _plain("expected_errors"), None),
    "settled": ("Settled", "tracks", _plain("settled"), None),
    "time": (
        *("Time", "seconds"),
        _plain("seconds"),
        ("of it listening", _plain("listening_seconds")),
    ),
    "memory": ("Peak memory", "GB", _plain("peak_memory_bytes", 1e9), None),
}


def write_comparison(found: Comparison, out: Path) -> Path:
    """figures/compare-….svg and .png, and the page; returns the page."""
    drawn = draw(found)
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        for kind in ("svg", "png"):
            path = folder / f"compare-{name}.{kind}"
            if name in drawn:
                write_bytes(path, drawn[name][kind])
            else:
                path.unlink(missing_ok=True)  # of an earlier comparison
    write_bytes(out / PAGE, _page(found, list(drawn)).encode())
    return out / PAGE


def draw(found: Comparison) -> dict[str, dict[str, bytes]]:
    """Every picture for which there are figures, as SVG and PNG."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    runs, drawn = [one for one in found.runs if not one.failed], {}
    with matplotlib.rc_context():
        matplotlib.rcParams.update(matplotlib.rcParamsDefault)
        matplotlib.rcParams.update(STYLE | {"figure.facecolor": "white"})
        for name in PICTURES:
            figure = Canvas(figsize=(6.4, 0.9 + 0.38 * len(runs)))
            if _bars(figure, name, runs):
                drawn[name] = {kind: _saved(figure, kind) for kind in ("svg", "png")}
    return drawn


def _bars(figure: Figure, name: str, runs: list[Compared]) -> bool:
    """A bar a run, with its value; a thinner one for what stands beside it."""
    title, axis, value, beside = PICTURES[name]
    values = [value(one.measures) for one in runs]
    if all(one is None for one in values):
        return False
    axes, places = figure.subplots(), range(len(runs))
    axes.barh(places, [one or 0.0 for one in values], height=0.62, color=BLUE)
    if beside is not None:
        second = [beside[1](one.measures) or 0.0 for one in runs]
        axes.barh(places, second, height=0.26, color=SKY, label=beside[0])
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    for place, one in zip(places, values, strict=True):
        axes.annotate(
            "–" if one is None else f"{one:.4g}",
            (one or 0.0, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    axes.set_yticks(list(places), [printable(one.name) for one in runs])
    axes.invert_yaxis()
    axes.margins(x=0.14)
    axes.set_xlim(left=min(0.0, *(one or 0.0 for one in values)))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(axis)
    axes.set_title(title, loc="left", fontsize=10)
    return True


def _saved(figure: Figure, kind: str) -> bytes:
    out = io.BytesIO()
    nothing = dict.fromkeys(
        ("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",)
    )
    figure.savefig(out, format=kind, metadata=nothing, dpi=120)
    return out.getvalue()


def _page(found: Comparison, drawn: list[str]) -> str:
    """Plain HTML: nothing in it runs, all names are text."""
    columns, rows = found._rows()
    table = _table([column.replace("_", " ") for column in columns], rows)
    disputes = _table(*found.disputes())
    pictures = "".join(
        f'<figure><img src="{FOLDER}/compare-{name}.svg" alt="{PICTURES[name][0]}"></figure>'
        for name in drawn
    )
    notes = "".join(f"<li>{_cell(note)}</li>" for note in found.notes)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
        "img-src 'self' file:; style-src 'unsafe-inline'\">"
        "<title>Recognizers compared</title><style>body{font:15px sans-serif;margin:2em;"
        "max-width:75em}table{border-collapse:collapse;display:block;overflow-x:auto}"
        "td,th{padding:.2em .6em;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}"
        "figure{display:inline-block;margin:0 1em 1em 0}img{max-width:36em;width:100%}</style>"
        f"</head><body><h1>Recognizers compared</h1><p>{_cell(found._sentence())}</p>"
        f"<ul>{notes}</ul>{pictures}<h2>All figures</h2>{table}"
        f"<h2>Tracks on which they disagree</h2>{disputes}</body></html>\n"
    )


def _table(columns: Any, rows: Any) -> str:
    head = "".join(f"<th>{_cell(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td><bdi>{_cell(value)}</bdi></td>' for value in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else escape(printable(str(value)))

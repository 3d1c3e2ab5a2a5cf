"""A partition as one page: what was found, how sure, how many people, which pairs are in doubt."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from spklink.report import cells, page
from spklink.report.figures import STYLE, svg_of
from spklink.report.plots import BLUE, SKY, Figure
from spklink.runs.partition_folder import Saved, read_partition
from spklink.tables import write_bytes
from spklink.words import counted

PAGE = "report.html"
LARGEST = 30  # groups that are shown
DOUBTFUL = 50  # pairs
SURE = 0.9  # probability of a pair up to which, and from one minus which, it is in doubt
LEVELS = {
    1: "Nothing was known: any sides might be one person.",
    2: "The number of speakers was known.",
    3: "The sides of a call were known to be different people.",
}
WORTH = {
    "exact": "All partitions were counted: the figures are exact.",
    "certified": "The intervals provably hold the exact figures.",
    "sampled": "The figures come from chains that agree; each interval holds with 99 %.",
    "estimated": "The figures are estimates: nothing is promised of them.",
}


def write_partition_page(folder: str | PathLike[str]) -> Path:
    """Write report.html into a folder that `partition` wrote; returns it."""
    saved, path = read_partition(folder), Path(folder) / PAGE
    write_bytes(path, render(saved).encode())
    return path


def render(saved: Saved) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    names = page.Names()
    css = page.own_file("page.css")
    environment = Environment(
        loader=FileSystemLoader(page.HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=page.visible,
    )
    environment.globals |= {
        "name": names.show,
        "percent": cells.percent,
        "plural": counted,
        "text": names.text,
        "cell": cells.cell,
        "ending": page.table_ending(saved.run["options"]),
    }
    figures = drawn(saved)
    return environment.get_template("partition.html").render(
        run=saved.run,
        result=saved.run["result"],
        five=_five(saved),
        sentence=_sentence(saved),
        known=LEVELS[int(saved.run["options"]["level"])],
        worth=WORTH[saved.run["result"]["certainty"]],
        groups=groups(saved),
        pairs=doubtful(saved),
        count=_count(saved),
        svg={key: _svg(key, *about) for key, about in figures.items()},
        css=css,
        policy=page.policy(css, ""),
    )


def _sentence(saved: Saved) -> str:
    said = saved.run["result"]
    return (
        f"{counted(said['sides'] - said['unused_sides'], 'side')} of "
        f"{counted(said['conversations'], 'call')} are {counted(said['speakers'], 'speaker')}."
    )


def _five(saved: Saved) -> list[tuple[str, Any]]:
    said = saved.run["result"]
    return [
        ("speakers found", said["speakers"]),
        ("sides of the largest", said["largest"]),
        ("speakers of one side", said["alone"]),
        ("sides sure at 99 %", said["sure_sides"]),
        ("sides not usable", said["unused_sides"]),
    ]


def groups(saved: Saved) -> list[dict[str, Any]]:
    """The largest groups: their sides, and how probable their pairs are."""
    label = saved.label
    size = np.bincount(label[label >= 0])
    within = label[saved.one] == label[saved.two]
    total = np.bincount(label[saved.one[within]], saved.chance[within], len(size))
    pairs = size * (size - 1) / 2.0
    found = []
    for block in np.argsort(-size, kind="stable")[:LARGEST].tolist():
        sides = np.flatnonzero(label == block)
        mean = float(total[block] / pairs[block]) if pairs[block] else None
        found.append(
            {
                "number": block + 1,
                "sides": len(sides),
                "mean": None if mean is None else min(mean, 1.0),
                "members": [_side(saved, int(side)) for side in sides[:8]],
                "more": max(0, len(sides) - 8),
            }
        )
    return found


def doubtful(saved: Saved) -> list[dict[str, Any]]:
    """Pairs that may or may not be one person, the most doubtful first."""
    doubt = np.abs(saved.chance - 0.5)
    order = np.argsort(doubt, kind="stable")
    order = order[doubt[order] <= SURE - 0.5][:DOUBTFUL]
    return [
        {
            "one": _side(saved, int(saved.one[k])),
            "two": _side(saved, int(saved.two[k])),
            "chance": float(saved.chance[k]),
            "together": bool(saved.label[saved.one[k]] == saved.label[saved.two[k]]),
        }
        for k in order.tolist()
    ]


def _side(saved: Saved, side: int) -> tuple[str, int]:
    sides = saved.conversations.sides
    name = saved.conversations.ids[int(sides.conversation[side])]
    return name, int(sides.position[side]) + 1


def _count(saved: Saved) -> list[tuple[int, float]]:
    return [(number, chance) for number, chance in saved.count if chance >= 0.0005]


def drawn(saved: Saved) -> dict[str, tuple[str, str, str]]:
    """Name → (SVG, label, caption)."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    found = {}
    with matplotlib.rc_context():
        matplotlib.rcParams.update(matplotlib.rcParamsDefault)
        matplotlib.rcParams.update(STYLE)
        count = _count(saved)
        if len(count) > 1:
            figure = Canvas(figsize=(6.4, 2.6))
            _bars(figure, [n for n, _ in count], [p for _, p in count], "speakers", "probability")
            caption = "How probable every number of speakers is."
            found["count"] = svg_of(figure), "Number of speakers", caption
        size = np.bincount(saved.label[saved.label >= 0])
        sizes, numbers = np.unique(size, return_counts=True)
        figure = Canvas(figsize=(6.4, 2.6))
        _bars(figure, sizes.tolist(), numbers.tolist(), "sides of a speaker", "speakers", SKY)
        caption = "How many speakers have so many sides."
        found["sizes"] = svg_of(figure), "Sizes of the groups", caption
    return found


def _bars(
    figure: Figure, x: list[int], y: list[float], across: str, up: str, colour: str = BLUE
) -> None:
    axes = figure.subplots()
    axes.bar(x, y, color=colour, width=0.8)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0.0)
    axes.grid(visible=False, axis="x")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _svg(key: str, svg: str, label: str, caption: str) -> Markup:
    figure = page.with_text(key, svg, label, caption)
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(figure, caption)

"""Cliques as SVG to be put inside the page: small, with a handle to the details of every edge, or
of every cell where a clique is a table of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup

from spklink.report.layout import Drawing, in_order, layout
from spklink.words import counted, isolated, readable

# A class of drawings goes up to so many conversations or half as many speakers: its name, width and
# most height, in units.
SIZES = ((12, "s", 100.0, 78.0), (40, "m", 220.0, 180.0), (120, "l", 380.0, 320.0))
LARGEST = ("x", 720.0, 620.0)
MOST_LABELS = 40
LABEL = 12  # letters
# Of a table: its width, the room for names, the largest cell, and the least that holds a number.
TABLE, LEFT, ABOVE, CELL, COUNTED = 720.0, 104.0, 92.0, 34.0, 13.0


def graph(drawing: Drawing) -> dict[str, Any]:
    """The drawing, its size class and a caption."""
    size, width, height = _canvas(drawing)
    what = (
        f"group {drawing['clique']}: {counted(drawing['conversations'], 'conversation')} between "
        f"{counted(drawing['speakers'], 'person', several='people')}, "
        f"{drawing['settled']:,} sure{_open(drawing['bits'])}"
    )
    if drawing["circles"]:
        size, (height, parts) = "x", _table(drawing)
    else:
        margin = 7.0 if size == "s" else 42.0
        place = _fit(layout(drawing), width, height, margin)
        height = float(place[:, 1].max() + margin)
        parts = [*_edges(drawing, place), *_nodes(drawing, place, size)]
    head = Markup('<svg viewBox="0 0 {} {}" role="group" aria-label="{}">').format(
        round(width), round(height), what
    )
    left = drawing["conversations"] - drawing["settled"]
    open_ = f"{left:,} open" if left else "sure"
    short = f"{drawing['clique']:,}: {open_ if drawing['bits'] is None else _bits(drawing['bits'])}"
    caption = short if size == "s" else what[0].upper() + what[1:]
    svg = Markup("").join([head, *parts, Markup("</svg>")])
    return {"svg": svg, "size": size, "caption": caption}


def _table(drawing: Drawing) -> tuple[float, list[Markup]]:
    """People by people: its height, and every cell with all conversations of the two."""
    order = in_order(drawing)
    at, cell = {node: k for k, node in enumerate(order)}, min(CELL, (TABLE - LEFT) / len(order))
    parts = [*_table_names(drawing, order, cell)]
    for edge in drawing["edges"]:
        a, b = (at[end] for end in edge["ends"])
        for row, column in dict.fromkeys([(a, b), (b, a)]):
            parts.append(_cell(drawing, edge, LEFT + column * cell, ABOVE + row * cell, cell))
    return ABOVE + len(order) * cell + 2.0, parts


def _table_names(drawing: Drawing, order: list[int], cell: float) -> Iterator[Markup]:
    """Rows and columns, and a line under each."""
    long = len(order) * cell
    for k, node in enumerate(order):
        one, middle = drawing["nodes"][node], (k + 0.5) * cell
        text = _label(one["speaker"], LABEL)
        text += f" +{one['speakers'] - 1:,}" if one["speakers"] > 1 else ""
        x, y = LEFT + middle, ABOVE + middle
        yield Markup('<path class="g" d="M{:.1f} {:.1f}h{:.1f}M{:.1f} {:.1f}v{:.1f}"/>').format(
            LEFT, y, long, x, ABOVE, long
        )
        yield Markup('<text x="{:.0f}" y="{:.1f}" text-anchor="end">{}</text>').format(
            LEFT - 6.0, y + 4.0, text
        )
        yield Markup('<text transform="translate({:.1f} {:.0f}) rotate(-60)">{}</text>').format(
            x + 3.0, ABOVE - 6.0, text
        )


def _cell(drawing: Drawing, edge: dict[str, Any], x: float, y: float, cell: float) -> Markup:
    made = Markup(
        '<rect class="e cell {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" data-t="{}" '
        'data-e data-c="{}"/>'
    ).format(
        edge["kind"],
        x + 0.5,
        y + 0.5,
        cell - 1.0,
        cell - 1.0,
        _told(drawing, edge),
        " ".join(map(str, edge["rows"])),
    )
    if cell >= COUNTED:
        number = Markup('<text class="count" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
        made += number.format(x + cell / 2.0, y + cell / 2.0 + 4.0, f"{edge['conversations']:,}")
    return made + _suspect((x + cell - 4.0, y + 4.0), 3.0) if edge["suspicious"] else made


def _told(drawing: Drawing, edge: dict[str, Any]) -> str:
    """A cell in words."""
    one, two = (drawing["nodes"][k] for k in edge["ends"])
    names = [_label(node["speaker"], 40) for node in (one, two)]
    crowd = one["speakers"] > 1 or two["speakers"] > 1
    if edge["ends"][0] == edge["ends"][1]:
        where = f"within the circle of {names[0]}" if crowd else f"of {names[0]}"
    else:
        where = f"between {'the circles of ' if crowd else ''}{names[0]} and {names[1]}"
    return (
        f"{counted(edge['conversations'], 'conversation')} {where}: {edge['settled']:,} sure"
        f"{_open(edge['bits'])}"
    )


def _canvas(drawing: Drawing) -> tuple[str, float, float]:
    for most, name, width, height in SIZES:
        nodes = drawing["speakers"] + 2 * drawing["hubs"]  # with lines to all around them
        if max(drawing["conversations"], 2 * nodes) <= most:
            return name, width, height
    return LARGEST


def _fit(place: Any, width: float, height: float, margin: float) -> Any:
    """From the unit square to the canvas, as large as it will go."""
    low, span = place.min(axis=0), np.ptp(place, axis=0)
    room = np.array([width, height]) - 2.0 * margin
    scale = min(r / s if s > 1e-9 else np.inf for r, s in zip(room, span, strict=True))
    scale = scale if np.isfinite(scale) else 1.0
    shift = np.array([(width - scale * span[0]) / 2.0, margin])
    return (place - low) * scale + shift


def _edges(drawing: Drawing, place: Any) -> list[Markup]:
    """Doubtful edges last, so that they lie on top; parallel ones are bent apart."""
    among = Counter(tuple(sorted(edge["ends"])) for edge in drawing["edges"])
    seen: Counter[tuple[int, ...]] = Counter()
    made: list[tuple[int, Markup]] = []
    for edge in drawing["edges"]:
        a, b = sorted(edge["ends"])
        turn = seen[a, b] - (among[a, b] - 1) / 2.0
        seen[a, b] += 1
        middle = _middle(place[a], place[b], turn)
        made.append((DOUBT[edge["kind"]], _edge(edge, place[a], place[b], middle)))
        if edge["suspicious"]:
            made.append((ON_TOP, _suspect((place[a] + place[b] + 2.0 * middle) / 4.0)))
    return [text for _, text in sorted(made, key=lambda pair: pair[0])]


DOUBT = {"unresolvable": 0, "settled": 1, "likely": 2, "leaning": 3, "open": 4}
ON_TOP = 5


def _middle(start: Any, end: Any, turn: float) -> Any:
    """Where an edge is drawn towards: its middle, or beside it for one of several."""
    along = end - start
    length = float(np.hypot(*along)) or 1.0
    across = np.array([-along[1], along[0]]) / length
    return (start + end) / 2.0 + across * turn * min(18.0, 0.28 * length)


def _suspect(at: Any, radius: float = 4.0) -> Markup:
    dot = Markup('<circle class="suspect" cx="{:.1f}" cy="{:.1f}" r="{:g}"/>')
    return dot.format(*at, radius)


def _edge(edge: dict[str, Any], start: Any, end: Any, middle: Any) -> Markup:
    path = f"M{_pair(start)}Q{_pair(middle)} {_pair(end)}"
    rows = " ".join(map(str, edge["rows"]))
    # Without details there is nothing to point at.
    handle = Markup(' data-c="{}"').format(rows) if rows else Markup("")
    return Markup('<path class="e {}" d="{}"{}/>').format(edge["kind"], path, handle)


def _nodes(drawing: Drawing, place: Any, size: str) -> list[Markup]:
    radius = 3.0 if size == "s" else 4.5
    made = [
        _dot(x, y, radius) if node["speakers"] else _hub(node, x, y, radius)
        for node, (x, y) in zip(drawing["nodes"], place, strict=True)
    ]
    if size == "s" or len(place) > MOST_LABELS:
        return made
    for node, (x, y) in zip(drawing["nodes"], place, strict=True):
        if node["speakers"]:
            text = _label(node["speaker"], LABEL)
            made.append(
                Markup('<text x="{:.0f}" y="{:.0f}" text-anchor="middle">{}</text>').format(
                    x, y - 8.0, text
                )
            )
    return made


def _dot(x: float, y: float, radius: float) -> Markup:
    return Markup('<circle class="n" cx="{:.0f}" cy="{:.0f}" r="{:g}"/>').format(x, y, radius)


def _hub(node: dict[str, Any], x: float, y: float, radius: float) -> Markup:
    """A conversation with lines to the people it lists: a square."""
    rows = " ".join(map(str, node["rows"]))
    handle = Markup(' data-c="{}"').format(rows) if rows else Markup("")
    box = Markup('<rect class="e h {}" x="{:.1f}" y="{:.1f}" width="{:g}" height="{:g}"{}/>')
    made = box.format(node["kind"], x - radius, y - radius, 2 * radius, 2 * radius, handle)
    return made + _suspect((x, y)) if node["suspicious"] else made


def _open(bits: float | None) -> str:
    return "" if bits is None else f", {_bits(bits)} open"


def _bits(value: float) -> str:
    return "under .01 bits" if 0.0 < value < 0.01 else f"{value:.2f} bits"


def _label(text: str, longest: int) -> str:
    """A name, cut, with a direction of its own: it stands inside other text."""
    text = readable(text)
    return isolated(text if len(text) <= longest else text[: longest - 1] + "…")


def _pair(point: Any) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"

"""Cliques as SVG to be put inside the page: small, with a handle to the details of every edge."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from markupsafe import Markup

from spklink.report.graphs import Drawing, layout
from spklink.words import counted, isolated, readable

# A class of drawings goes up to so many conversations or half as many speakers: its name, width and
# most height, in units.
SIZES = ((12, "s", 100.0, 78.0), (40, "m", 220.0, 180.0), (120, "l", 380.0, 320.0))
LARGEST = ("x", 720.0, 620.0)
MOST_LABELS = 40
MOST_CIRCLE_LABELS = 14
LABEL = 12  # letters


def graph(drawing: Drawing) -> dict[str, Any]:
    """The drawing, its size class and a caption."""
    size, width, height = _canvas(drawing)
    margin = 7.0 if size == "s" else 42.0
    place = _fit(layout(drawing), width, height, margin)
    height = float(place[:, 1].max() + margin)
    what = (
        f"clique {drawing['clique']}: {counted(drawing['conversations'], 'conversation')} between "
        f"{counted(drawing['speakers'], 'speaker')}, {drawing['settled']:,} settled"
        f"{_open(drawing['bits'])}"
    )
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            round(width), round(height), what
        ),
        *_edges(drawing, place),
        *_nodes(drawing, place, size),
        Markup("</svg>"),
    ]
    left = drawing["conversations"] - drawing["settled"]
    open_ = f"{left:,} open" if left else "settled"
    short = f"{drawing['clique']:,}: {open_ if drawing['bits'] is None else _bits(drawing['bits'])}"
    caption = short if size == "s" else what[0].upper() + what[1:]
    return {"svg": Markup("").join(parts), "size": size, "caption": caption}


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
    most = max((edge["conversations"] for edge in drawing["edges"]), default=1)
    made: list[tuple[int, Markup]] = []
    for edge in drawing["edges"]:
        a, b = sorted(edge["ends"])
        turn = seen[a, b] - (among[a, b] - 1) / 2.0
        seen[a, b] += 1
        middle = _middle(place[a], place[b], turn)
        made.append((DOUBT[edge["kind"]], _edge(drawing, edge, place[a], place[b], middle, most)))
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


def _suspect(at: Any) -> Markup:
    return Markup('<circle class="suspect" cx="{:.0f}" cy="{:.0f}" r="4"/>').format(*at)


def _edge(
    drawing: Drawing, edge: dict[str, Any], start: Any, end: Any, middle: Any, most: int
) -> Markup:
    path = f"M{_pair(start)}Q{_pair(middle)} {_pair(end)}"
    rows = " ".join(map(str, edge["rows"]))
    if drawing["circles"]:
        return _bundle(drawing, edge, start, path, rows, most)
    # Without details there is nothing to point at.
    handle = Markup(' data-c="{}"').format(rows) if rows else Markup("")
    return Markup('<path class="e {}" d="{}"{}/>').format(edge["kind"], path, handle)


def _bundle(
    drawing: Drawing, edge: dict[str, Any], start: Any, path: str, rows: str, most: int
) -> Markup:
    """All conversations between two circles, or within one: a ring around its dot."""
    names = [_label(drawing["nodes"][k]["speaker"], 40) for k in edge["ends"]]
    where = (
        f"within the circle of {names[0]}"
        if edge["ends"][0] == edge["ends"][1]
        else (f"between the circles of {names[0]} and {names[1]}")
    )
    text = (
        f"{counted(edge['conversations'], 'conversation')} {where}: {edge['settled']:,} settled"
        f"{_open(edge['bits'])}"
    )
    share = edge["conversations"] / most
    width = f"{1.0 + 7.0 * share**0.5:.1f}"
    rest = Markup(' class="e b {}" stroke-width="{}" data-t="{}" data-e data-c="{}"/>')
    if edge["ends"][0] == edge["ends"][1]:
        shape = Markup('<circle cx="{:.0f}" cy="{:.0f}" r="{:.0f}"').format(*start, 9 + 8 * share)
    else:
        shape = Markup('<path d="{}"').format(path)
    return shape + rest.format(edge["kind"], width, text, rows)


def _nodes(drawing: Drawing, place: Any, size: str) -> list[Markup]:
    radius = 3.0 if size == "s" else 4.5
    made = [
        _dot(x, y, radius) if node["speakers"] else _hub(node, x, y, radius)
        for node, (x, y) in zip(drawing["nodes"], place, strict=True)
    ]
    if size == "s" or len(place) > MOST_LABELS:
        return made
    people = sorted((node["speakers"] for node in drawing["nodes"]), reverse=True)
    least = people[min(MOST_CIRCLE_LABELS, len(people)) - 1] if drawing["circles"] else 0
    for node, (x, y) in zip(drawing["nodes"], place, strict=True):
        if node["speakers"] < max(least, 1):
            continue
        text = _label(node["speaker"], LABEL)
        if node["speakers"] > 1:
            text += f" +{node['speakers'] - 1:,}"
        made.append(
            Markup('<text x="{:.0f}" y="{:.0f}" text-anchor="middle">{}</text>').format(
                x, y - (18.0 if drawing["circles"] else 8.0), text
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

"""The figure of the drawn cliques, for a paper; the page has the same with details."""

from __future__ import annotations

from typing import Any

import numpy as np

from spklink.report.layout import in_order, layout
from spklink.report.plots import INK, KIND_COLOURS, Figure, Numbers


def database(figure: Figure, numbers: Numbers) -> bool:
    """The drawn cliques side by side; the page has the same with details to each conversation."""
    drawn = numbers["database"]["drawn"][:40]
    if not drawn:
        return False
    axes = figure.subplots()  # one for all: forty would take seconds
    axes.set_axis_off()
    axes.set_aspect("equal")
    wide = min(len(drawn), 1 if drawn[0]["conversations"] > 60 else 8)
    for k, drawing in enumerate(drawn):
        _graph(axes, drawing, 1.3 * np.array([k % wide, k // wide]))
    axes.autoscale_view()
    axes.invert_yaxis()
    return True


def _table(axes: Any, drawing: Numbers, corner: Any) -> None:
    """People by people, a cell all conversations of the two."""
    from matplotlib.collections import PolyCollection

    at = {node: k for k, node in enumerate(in_order(drawing))}
    cells, colours = [], []
    square = np.array([[0.05, 0.05], [0.95, 0.05], [0.95, 0.95], [0.05, 0.95]])
    for edge in drawing["edges"]:
        a, b = (at[end] for end in edge["ends"])
        for place in {(a, b), (b, a)}:
            cells.append((square + place) / len(at) + corner)
            colours.append(KIND_COLOURS[edge["kind"]])
    axes.add_collection(PolyCollection(cells, facecolors=colours, linewidths=0))


def _graph(axes: Any, drawing: Numbers, corner: Any) -> None:
    from matplotlib.collections import LineCollection

    if drawing["circles"]:
        return _table(axes, drawing, corner)
    place = layout(drawing) + corner
    ends = np.array([edge["ends"] for edge in drawing["edges"]], np.int64)
    colours = [KIND_COLOURS[edge["kind"]] for edge in drawing["edges"]]
    lines = place[ends] if len(ends) else []
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=1.2, zorder=1))
    people = np.array([node["speakers"] for node in drawing["nodes"]])
    hub = people == 0
    axes.scatter(*place[~hub].T, s=12.0, color=INK, zorder=2, linewidths=0)
    hubs = [KIND_COLOURS[node["kind"]] for node in drawing["nodes"] if not node["speakers"]]
    axes.scatter(*place[hub].T, s=12.0, c=hubs, marker="s", zorder=2, linewidths=0)

"""Small drawings of the page: signed bars, how far the work is, and a clique."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from spklink.database.lists import OTHERS
from spklink.report.layout import layout
from spklink.review.progress import Progress
from spklink.review.views import Graph, Node
from spklink.words import counted, isolated, readable

WIDTH, HEIGHT, MARGIN = 420.0, 300.0, 34.0  # of a clique, in units
LABEL = 14  # letters
MOST_LABELS = 40
DOUBT = ("decided", "settled", "unresolvable", "likely", "leaning", "open", "disagreement")
SURE = (("likely", 0.9), ("leaning", 0.75))  # of what is not settled
WORDS = {
    "decided": "decided by a person",
    "settled": "settled, 99 % or more",
    "likely": "90 to 99 %",
    "leaning": "75 to 90 %",
    "open": "below 75 %",
    "unresolvable": "no voice can tell",
    "disagreement": "reviewers disagree",
}


def bar(value: float, scale: float) -> Markup:
    """A bar to the right of the middle for what speaks for, to the left for what speaks against."""
    width = 100.0 * min(1.0, abs(value) / scale)
    kind, left = ("for", 100.0) if value >= 0 else ("against", 100.0 - width)
    return Markup(
        '<svg class="bar" viewBox="0 0 200 12" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="{}" x="{:.1f}" y="1" width="{:.1f}" height="10"/>'
        '<path class="middle" d="M100 0V12"/></svg>'
    ).format(kind, left, max(width, 0.6))


def shares(progress: Progress) -> Markup:
    """How many conversations are decided, settled by that and what was known, and open."""
    parts = [("decided", progress.decided), ("settled", progress.settled), ("open", progress.open)]
    total = sum(count for _, count in parts) or 1
    made, at = [], 0.0
    for kind, count in parts:
        width = 1000.0 * count / total
        made.append(
            Markup('<rect class="{}" x="{:.2f}" y="0" width="{:.2f}" height="8"/>').format(
                kind, at, width
            )
        )
        at += width
    head = Markup(
        '<svg class="shares" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">'
    )
    return head + Markup("").join(made) + Markup("</svg>")


def clique(graph: Graph, here: int, base: str) -> dict[str, Any] | None:
    """People as dots, conversations as lines (squares where more or fewer than two people are
    listed), each a link, coloured by how certain it is."""
    people: dict[str, int] = {}
    ends = tuple(
        tuple(sorted(people.setdefault(who, len(people)) for who in node.names if who != OTHERS))
        for node in graph.nodes
    )
    if not people:
        return None
    place, hubs = _places(len(people), ends)
    lines: list[tuple[int, Markup]] = []
    bent = _bends(ends)
    for k, node in enumerate(graph.nodes):
        shape = _hub(place, ends[k], hubs[k]) if hubs[k] else _line(place, ends[k], bent[k])
        on_top = len(DOUBT) if node.m == here else DOUBT.index(kind_of(node))
        lines.append((on_top, _link(node, node.m == here, shape, base)))
    dots = [_dot(x, y) for x, y in place[: len(people)]]
    if len(people) <= MOST_LABELS:
        dots += [_label(who, *place[k]) for who, k in people.items()]
    height = float(place[:, 1].max() + MARGIN)
    among = "1 person" if len(people) == 1 else f"{len(people)} people"
    svg = Markup('<svg viewBox="0 0 {} {:.0f}" role="group" aria-label="{}">{}{}</svg>').format(
        round(WIDTH),
        height,
        f"{counted(len(graph.nodes), 'conversation')} of {among}",
        Markup("").join(line for _, line in sorted(lines, key=lambda pair: pair[0])),
        Markup("").join(dots),
    )
    there = {kind_of(node) for node in graph.nodes}
    legend = [(kind, WORDS[kind]) for kind in DOUBT if kind in there]
    return {"svg": svg, "legend": legend, "more": graph.conversations - len(graph.nodes)}


def kind_of(node: Node) -> str:
    """The class of a line: what was said of it, else how certain it is."""
    if node.kind != "open":
        return node.kind
    return next((kind for kind, least in SURE if node.probability >= least), "open")


@lru_cache(64)
def _places(
    people: int, ends: tuple[tuple[int, ...], ...]
) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """(nodes, 2) where people lie, then conversations that are not of two; and which node each of
    these is, 0 for the others."""
    pairs: list[tuple[int, int]] = []
    hubs, count = [], people
    for own in ends:
        if len(own) == 2:
            pairs.append((own[0], own[1]))
            hubs.append(0)
            continue
        pairs += [(count, person) for person in own]
        hubs.append(count)
        count += 1
    nodes = [None] * count
    place = layout({"nodes": nodes, "edges": [{"ends": pair} for pair in pairs]})
    return _fit(place), tuple(hubs)


def _fit(place: NDArray[np.float64]) -> NDArray[np.float64]:
    low, span = place.min(axis=0), np.ptp(place, axis=0)
    room = np.array([WIDTH, HEIGHT]) - 2.0 * MARGIN
    scale = min((r / s for r, s in zip(room, span, strict=True) if s > 1e-9), default=1.0)
    shift = np.array([(WIDTH - scale * span[0]) / 2.0, MARGIN])
    return np.asarray((place - low) * scale + shift)


def _bends(ends: Sequence[tuple[int, ...]]) -> list[float]:
    """How far each line is bent, where several join the same two people."""
    among: dict[tuple[int, ...], int] = {}
    turn = [among.setdefault(own, 0) for own in ends]
    for k, own in enumerate(ends):
        turn[k] = among[own]
        among[own] += 1
    return [own - (among[pair] - 1) / 2.0 for own, pair in zip(turn, ends, strict=True)]


def _line(place: NDArray[np.float64], ends: tuple[int, ...], bend: float) -> str:
    start, end = place[ends[0]], place[ends[1]]
    along = end - start
    length = float(np.hypot(*along)) or 1.0
    across = np.array([-along[1], along[0]]) / length
    middle = (start + end) / 2.0 + across * bend * min(22.0, 0.3 * length)
    return f"M{_pair(start)}Q{_pair(middle)} {_pair(end)}"


def _hub(place: NDArray[np.float64], ends: tuple[int, ...], hub: int) -> str:
    x, y = place[hub]
    spokes = "".join(f"M{_pair(place[hub])}L{_pair(place[person])}" for person in ends)
    return f"{spokes}M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"


def _link(node: Node, here: bool, shape: str, base: str) -> Markup:
    """A line that can be followed; the wide one under it is easier to hit."""
    kind = kind_of(node)
    label = f"{readable(node.conversation)[:60]}, {WORDS[kind]}"
    current = Markup(' aria-current="true"') if here else Markup("")
    return Markup(
        '<a href="{0}/c/{1}" data-m="{1}" aria-label="{2}"{3}><title>{2}</title>'
        '<path class="hit" d="{4}"/><path class="e {5}{6}" d="{4}"/></a>'
    ).format(base, node.m, label, current, shape, kind, " here" if here else "")


def _dot(x: float, y: float) -> Markup:
    return Markup('<circle class="n" cx="{:.1f}" cy="{:.1f}" r="4.5"/>').format(x, y)


def _label(text: str, x: float, y: float) -> Markup:
    shown = readable(text)
    cut = shown if len(shown) <= LABEL else shown[: LABEL - 1] + "…"
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>').format(
        x, y - 9.0, isolated(cut)
    )


def _pair(point: NDArray[np.float64]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"

"""The figures one by one, each from its table; False where there is nothing to draw.

Colours are safe for colour-blind readers (Okabe & Ito). No figure shows a name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spklink.report.glossary import HEADINGS
from spklink.words import readable

Numbers = dict[str, Any]
Figure = Any
INK, MUTED, GRID, PAPER = "#1d2126", "#5f6770", "#dfe3e8", "#fdfdfc"
BLUE, SKY, AMBER, RED, GREEN = "#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#009e73"
FEWEST = 3  # points or bars: fewer are told by a table
KIND_COLOURS = {
    "settled": BLUE,
    "likely": SKY,
    "leaning": AMBER,
    "open": RED,
    "unresolvable": MUTED,
}
CLASS_COLOURS = {
    "known non-targets": AMBER,
    "expected non-targets": AMBER,
    "expected targets": BLUE,
    "non-targets by the key": RED,
    "targets by the key": GREEN,
}
AGREE = ((BLUE, "o"), (AMBER, "s"), (GREEN, "^"), (RED, "D"), (SKY, "v"))  # kinds that are drawn


def _column(table: Numbers, name: str) -> list[Any]:
    at = table["columns"].index(name)
    return [row[at] for row in table["rows"]]


def staircase(figure: Figure, numbers: Numbers) -> bool:
    table = numbers["staircase"]
    if table is None:
        return False
    names, bits, f = (_column(table, name) for name in ("level", "bits", "confusion F"))
    ends = zip(*(_column(table, f"bits, {end} end") for end in ("low", "high")), strict=True)
    axes = figure.subplots()
    place = np.arange(len(names))[::-1]
    colours = {"attainable": GREEN} | dict.fromkeys(("linked", "other evidence", "reviewed"), BLUE)
    axes.barh(place, bits, color=[colours.get(name, MUTED) for name in names], height=0.62)
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    top = max(1.0, *bits)
    axes.set_xlim(0.0, (top + 1.0) ** 1.45)
    axes.xaxis.set_major_locator(_decades(top))
    axes.xaxis.set_minor_locator(_no_ticks())
    axes.xaxis.set_major_formatter(lambda v, _: f"{v:,.0f}")
    axes.set_yticks(place, [f"level {n}" if n in ("I", "II", "III", "IV") else n for n in names])
    for y, b, c, (low, high) in zip(place, bits, f, ends, strict=True):
        exact = f"{low:,.2f}" == f"{high:,.2f}"
        label = f"{b:,.2f} bits" if exact else f"{low:,.2f} to {high:,.2f} bits"
        label += f", F {_equals(c, exact)}"
        axes.annotate(label, (b, y), (5, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_xlabel("bits not known about who speaks where")
    axes.grid(visible=False, axis="y")
    return True


def _equals(value: float | None, exact: bool) -> str:
    text = _short(value)
    return text if text.startswith("under") else f"{'=' if exact else 'about'} {text}"


def _short(value: float | None) -> str:
    if value is None:
        return "∞"
    if 0.0 < value < 0.0005:
        return "under 0.001"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _decades(top: float) -> Any:
    from matplotlib.ticker import FixedLocator

    powers = [10.0**k for k in range(0, 12) if 10.0**k <= top * 1.01]
    return FixedLocator([0.0, *powers[:: max(1, len(powers) // 5)]])


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def cliques(figure: Figure, numbers: Numbers) -> bool:
    table = numbers["database"]["by_size"]
    if len(table["rows"]) < FEWEST:
        return False
    names, count = (_column(table, name) for name in table["columns"][:2])
    alone = np.array(_column(table, "unresolvable cliques"))
    axes = figure.subplots()
    place = np.arange(len(names))
    axes.bar(place, np.array(count) - alone, color=BLUE, label="voices can tell", width=0.7)
    bottom = np.array(count) - alone
    axes.bar(place, alone, bottom=bottom, color=AMBER, label="no voice can tell", width=0.7)
    for x, n in zip(place, count, strict=True):
        axes.text(x, n, f"{n:,}", ha="center", va="bottom", fontsize=8.5)
    axes.set_xticks(place, names, rotation=45 if len(names) > 10 else 0)
    axes.set_xlim(-0.8, len(names) - 0.2)
    axes.set_ylim(0.0, 1.15 * max(count))
    axes.set_xlabel("conversations a group")
    axes.set_ylabel("groups")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(visible=False, axis="x")
    axes.legend()
    return True


def scores(figure: Figure, numbers: Numbers) -> bool:
    panels = [p for p in numbers["recognizer"]["histograms"] if p["table"]["rows"]]
    if not panels:
        return False
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _histogram(axes, panel["table"])
        axes.set_xlabel(
            "score, before calibration"
            if panel["name"] == "scores"
            else "log-likelihood-ratio" + (", after calibration" if len(panels) > 1 else "")
        )
        axes.set_yticks([])
    return True


def _histogram(axes: Any, table: Numbers) -> None:
    edges = [*_column(table, "from"), table["rows"][-1][1]]
    for name in table["columns"][2:]:
        by_key = name.endswith("key")
        axes.stairs(
            _column(table, name),
            edges,
            fill=not by_key,
            color=CLASS_COLOURS[name],
            alpha=None if by_key else 0.55,
            linewidth=1.6,
            label=HEADINGS.get(name, name),
        )
    axes.set_ylabel("share of the class")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.06, 1.0), ncols=1, fontsize=8)


def speech(figure: Figure, numbers: Numbers) -> bool:
    table = numbers["recognizer"]["speech"]
    if table is None or not table["hours"]:
        return False
    axes = figure.subplots()
    edges = [*_column(table, "from"), table["rows"][-1][1]]
    used, unused = (np.array(_column(table, n)) for n in ("sides used", "sides not used"))
    axes.stairs(used, edges, fill=True, color=BLUE, label="used")
    if unused.any():
        axes.stairs(used + unused, edges, baseline=used, fill=True, color=RED, label="not used")
        axes.legend()
    axes.set_xlabel("seconds of speech a channel")
    axes.set_ylabel("channels")
    axes.set_ylim(bottom=0.0)
    axes.set_xlim(left=0.0)
    return True


def calibration(figure: Figure, numbers: Numbers) -> bool:
    found = numbers["recognizer"]["calibration"]
    steps = found["history"] if found is not None else {"rows": []}
    if len(steps["rows"]) < FEWEST + 1 or "scale" not in steps["columns"]:
        return False
    rounds, scale = (_column(steps, name) for name in ("round", "scale"))
    axes = figure.subplots()
    axes.plot(rounds, scale, "o-", color=BLUE)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("round of calibration")
    axes.set_ylabel("scale")
    return True


def det(figure: Figure, numbers: Numbers) -> bool:
    """Misses against false alarms on axes where Gaussian scores give a straight line."""
    table = numbers["recognizer"]["det"]
    if table is None:
        return False
    from scipy.special import ndtri

    axes = figure.subplots()
    low, high = 2e-4, 0.6
    rates = np.clip(np.array(table["rows"], float), low, high)
    axes.plot(*ndtri(rates).T, color=BLUE, linewidth=1.8)
    ticks = np.array([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])
    axes.axline((0.0, 0.0), slope=1.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    names = [f"{100.0 * t:g}" for t in ticks]
    axes.set_xticks(ndtri(ticks), names)
    axes.set_yticks(ndtri(ticks), names)
    axes.set_xlim(ndtri(low), ndtri(high))
    axes.set_ylim(ndtri(low), ndtri(high))
    axes.set_aspect("equal")
    axes.set_xlabel("false alarms, %")
    axes.set_ylabel("misses, %")
    return True


def tippett(figure: Figure, numbers: Numbers) -> bool:
    table = numbers["recognizer"]["tippett"]
    if table is None:
        return False
    axes = figure.subplots()
    at = _column(table, "log-likelihood-ratio")
    axes.step(at, _column(table, "targets above"), color=BLUE, label="same person")
    axes.step(at, _column(table, "non-targets above"), color=AMBER, label="different people")
    axes.axvline(0.0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlabel("log-likelihood-ratio")
    axes.set_ylabel("share above")
    axes.set_ylim(0.0, 1.02)
    axes.legend()
    return True


def reliability(figure: Figure, numbers: Numbers) -> bool:
    """Answers by their probability; bins and 95 % bands as `evaluate` gives them."""
    measured = numbers["evaluation"] or {}
    kinds = [
        ("groups", measured.get("reliability"), BLUE, "o"),
        ("conversations", measured.get("marginals", {}).get("reliability"), AMBER, "s"),
    ]
    kinds = [kind for kind in kinds if kind[1]]
    if max((len(kind[1]) for kind in kinds), default=0) < FEWEST:
        return False
    axes = figure.subplots()
    axes.plot([0.0, 1.0], [0.0, 1.0], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    least = min(_calibrated(axes, *kind) for kind in kinds)
    axes.set_xlabel("probability of the answer")
    axes.set_ylabel("share that is right")
    axes.set_xlim(least - 0.05, 1.02)
    axes.set_ylim(0.0, 1.02)
    axes.legend(loc="upper left")
    return True


def _calibrated(axes: Any, name: str, rows: list[Numbers], colour: str, mark: str) -> float:
    """Predicted against observed shares with their bands; returns the least probability."""
    predicted, seen, low, high = (
        np.array([row[key] for row in rows])
        for key in ("predicted", "observed", "observed_low", "observed_high")
    )
    band = np.maximum([seen - low, high - seen], 0.0)
    axes.errorbar(predicted, seen, band, fmt=mark, color=colour, capsize=3, label=name)
    return min(0.45, float(predicted.min()))


def agreement(figure: Figure, numbers: Numbers) -> bool:
    """How often every two kinds of evidence agree, against how often they should."""
    rows = numbers.get("cues", {}).get("agreement", {}).get("rows", [])
    if not rows:
        return False
    axes, least = figure.subplots(), 1.0
    axes.plot([0.0, 1.0], [0.0, 1.0], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    keys = ("predicted", "observed", "observed_low", "observed_high")
    kinds = list(dict.fromkeys(row[0] for row in rows))
    for kind, look in zip(kinds, AGREE, strict=False):
        own = [dict(zip(keys, row[3:], strict=True)) for row in rows if row[0] == kind]
        least = min(least, _calibrated(axes, readable(kind), own, *look))
    axes.set_xlabel("probability to agree")
    axes.set_ylabel("share that agrees")
    axes.set_xlim(least - 0.05, 1.02)
    axes.set_ylim(0.0, 1.02)
    axes.legend(loc="lower right")
    return True


def certainty(figure: Figure, numbers: Numbers) -> bool:
    """Conversations, or tracks, by the probability of what is said of them."""
    of_bits = numbers["posterior"] is not None
    table = numbers["posterior" if of_bits else "seating"]["maximum"]
    if len(table["rows"]) < FEWEST:
        return False
    axes = figure.subplots()
    counted = "conversations" if of_bits else "tracks"
    place, count = np.arange(len(table["rows"])), _column(table, counted)
    axes.bar(place, count, color=BLUE, width=0.75)
    for x, n in zip(place, count, strict=True):
        axes.text(x, n, f"{n:,}", ha="center", va="bottom", fontsize=8.5)
    names = [f"{100 * row[0]:g}–{100 * row[1]:g}" for row in table["rows"]]
    axes.set_xticks(place, names, fontsize=8.5, rotation=30 if len(names) > 6 else 0)
    axes.set_xlim(-0.8, len(names) - 0.2)
    axes.set_ylim(0.0, 1.12 * max(count))
    axes.set_xlabel("probability of the assignment, %")
    axes.set_ylabel(counted)
    axes.grid(visible=False, axis="x")
    return True


def errors(figure: Figure, numbers: Numbers) -> bool:
    """Wrong conversations, expected and observed, by probability; only with a key."""
    table = (numbers["posterior"] or {"maximum": {"rows": []}})["maximum"]
    if len(table["rows"]) < FEWEST or "observed wrong" not in table["columns"]:
        return False
    expected, seen = _column(table, "of these expected wrong"), _column(table, "observed wrong")
    if max(*expected, *seen) < 0.01:  # an empty picture
        return False
    axes = figure.subplots()
    place = np.arange(len(table["rows"]))
    axes.bar(place - 0.19, expected, color=SKY, width=0.36, label="expected")
    axes.bar(place + 0.19, seen, color=RED, width=0.36, label="observed")
    names = [f"{100 * row[0]:g}–{100 * row[1]:g}" for row in table["rows"]]
    axes.set_xticks(place, names, fontsize=8.5, rotation=30 if len(names) > 6 else 0)
    axes.set_xlim(-0.8, len(names) - 0.2)
    axes.set_xlabel("probability of the assignment, %")
    axes.set_ylabel("wrong conversations")
    axes.set_ylim(0.0, max(1.0, 1.15 * max(*expected, *seen)))
    axes.grid(visible=False, axis="x")
    axes.legend()
    return True


def sizes(figure: Figure, numbers: Numbers) -> bool:
    """How certainty grows with the size of a clique."""
    table = (numbers["posterior"] or {"by_size": {"rows": []}})["by_size"]
    if len(table["rows"]) < FEWEST:
        return False
    axes = figure.subplots()
    size = _column(table, "mean size")
    axes.plot(size, _column(table, "open bits a conversation"), "o-", color=BLUE)
    if max(size) > 20:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda v, _: f"{v:,.0f}")
    else:
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("conversations a group")
    axes.set_ylabel("open bits a conversation")
    axes.set_ylim(bottom=0.0)
    return True

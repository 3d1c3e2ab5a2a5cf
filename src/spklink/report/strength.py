"""How strong evidence is said to be: in numbers, in words, and never beyond what data vouch for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spklink.measures.bounds import Bounds, elub
from spklink.report.recognizer import Pairs

# ENFSI Guideline for Evaluative Reporting in Forensic Science (2015): from which likelihood ratio
# on the findings provide so much support. Nothing stands there between 1 and 2.
ENFSI = (
    (1e6, "extremely strong support"),
    (1e4, "very strong support"),
    (1e3, "strong support"),
    (1e2, "moderately strong support"),
    (1e1, "moderate support"),
    (2.0, "weak support"),
    (0.0, "no support for either"),
)
SCALES = {"enfsi": ENFSI}


def bounds_of(pairs: Pairs) -> Bounds:
    """What the log-likelihood-ratios of a run vouch for: by the key where there is one for enough,
    else from pairs as probable as they are to be one person and from people certainly different,
    or where there are none from those pairs as probable as they are not to be."""
    if (pairs.target == 1).any() and (pairs.target == 0).any():
        same, other = (pairs.score[pairs.target == value] for value in (1, 0))
        return elub(same, other, by_key=True)
    said = ~np.isnan(pairs.same) & ~pairs.stranger
    score, chance = pairs.score[said], pairs.same[said]
    if pairs.stranger.any():
        other = pairs.score[pairs.stranger]
        return elub(score, other, (chance, np.ones(len(other))))
    return elub(score, score, (chance, 1.0 - chance))


def as_json(bounds: Bounds, scale: str | None) -> dict[str, Any]:
    """What the page says about it."""
    return {
        "low": bounds.low,
        "high": bounds.high,
        "most": times(bounds.high),
        "targets": bounds.targets,
        "nontargets": bounds.nontargets,
        "by_key": bounds.by_key,
        "scale": scale,
        "levels": [] if scale is None else levels(scale),
    }


def times(log10: float) -> str:
    """A likelihood ratio as people say it, with two digits: 1.7, 65, 2,900."""
    ratio = _two_digits(log10)
    return f"{ratio:,.0f}" if ratio >= 10.0 else f"{ratio:.1f}"


def _two_digits(log10: float) -> float:
    return float(f"{10.0 ** min(abs(log10), 300.0):.2g}")


def in_words(scale: str | None, log10: float) -> str | None:
    """What a verbal scale says of a ratio as `times` prints it, whichever way it points."""
    if scale is None:
        return None
    ratio = _two_digits(log10)
    return next(words for least, words in SCALES[scale] if ratio >= least)


def levels(scale: str) -> list[list[str]]:
    """The scale itself: from which ratio to which, and its words."""
    found, above = [], math.inf
    for least, words in SCALES[scale]:
        if least == 0.0:
            found.append([f"below {above:g}", words])
        elif above == math.inf:
            found.append([f"{least:,.0f} and more", words])
        else:
            found.append([f"{least:,.0f} to {above:,.0f}", words])
        above = least
    return found


def rounded_to_sum(values: Sequence[float], digits: int = 2) -> tuple[list[float], float]:
    """Values with so many digits that add up, digit by digit, to their rounded sum: what is left
    over by rounding goes to those that were cut most."""
    unit = 10**digits
    whole = [math.floor(value * unit) for value in values]
    total = round(math.fsum(values) * unit)
    left = total - sum(whole)
    by_cut = sorted(range(len(values)), key=lambda k: (whole[k] - values[k] * unit, k))
    for k in range(left):
        whole[by_cut[k % len(values)]] += 1
    for k in range(-left):
        whole[by_cut[-1 - k % len(values)]] -= 1
    return [one / unit for one in whole], total / unit

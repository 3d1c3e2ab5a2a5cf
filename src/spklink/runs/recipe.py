"""What is done with the scores of a recognizer, under one published name."""

from __future__ import annotations

from dataclasses import dataclass

from spklink.errors import SpklinkError


@dataclass(frozen=True)
class Recipe:
    """The steps from raw scores to log-likelihood-ratios."""

    name: str
    normalise: bool  # against strangers
    link_wccn: bool  # compare once more, as the links teach
    kind: str  # of calibration


RECIPES = {
    "default": Recipe("default", normalise=True, link_wccn=True, kind="lr-dur"),
    "paper": Recipe("paper", normalise=False, link_wccn=False, kind="cmlg"),
}


def recipe_of(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise SpklinkError(f"preset {name!r} is not one of {', '.join(RECIPES)}")
    return RECIPES[name]

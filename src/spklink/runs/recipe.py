"""What is done with the scores of a recognizer, under one published name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spklink.errors import SpklinkError


@dataclass(frozen=True)
class Recipe:
    """The steps from raw scores to log-likelihood-ratios."""

    name: str
    normalise: bool  # against strangers
    back_end: str  # of the second comparison, as the links teach; cosine: there is none
    kind: str  # of calibration


RECIPES = {
    "default": Recipe("default", normalise=True, back_end="wccn", kind="lr-dur"),
    "paper": Recipe("paper", normalise=False, back_end="cosine", kind="cmlg"),
}
AUTO, ONCE = "auto", "cosine"
LABELLED = "plda"  # the back-end that a background with known speakers teaches
UNUSED = "who speaks in the background (speakers.csv) is not used; --back-end plda uses it"
# What measured best (examples/backends.py, docs/back-ends.md), by the name of a recognizer; the
# others are as NETWORKS has it.
MEASURED = {"gmm-ubm": "wccn"}
NETWORKS = "plda"


def recipe_of(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise SpklinkError(f"preset {name!r} is not one of {', '.join(RECIPES)}")
    return RECIPES[name]


def with_back_end(recipe: Recipe, asked: str, recognizer: str, *, twice: bool) -> Recipe:
    """The recipe with the back-end that was asked for: `auto` is what measured best with this
    recognizer, where the recipe compares twice at all. Not `twice`: none."""
    if not twice or (asked == AUTO and recipe.back_end == ONCE):
        return replace(recipe, back_end=ONCE)
    if asked == AUTO:
        asked = MEASURED.get(recognizer, NETWORKS)
    return replace(recipe, back_end=asked)

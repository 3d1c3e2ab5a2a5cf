"""A model: all that a run learned from its database and that later scores depend on, kept by name.

It holds which recognizer compares voices and the middle of the vectors; the pool of sides against
which any side is set, and what it said of the sides that were there (mu, sigma); what the links
taught, and who may be judged by it; the curve, the weight rule and the rate of list errors (the
answer's, and the one under which frequent voices settle); what the conversations looked like that
it was learned on, for the test of drift. Its name is a hash of all that, so a name in run.json
stands for the same numbers for ever; models stay in the cache.

A model is used for a table that still has nearly all conversations it was learned on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.cache import Kept, Store, key_of
from spklink.database.sides import Numbering, numbered
from spklink.json_files import ANYTHING, Each, misfit
from spklink.posterior.likelihood import Weight
from spklink.posterior.list_errors import Rate
from spklink.recognizers.link_wccn import LinkScorer, Plda, Reduction, View, Whitening
from spklink.recognizers.plda import TwoCovariance
from spklink.runs.call_keys import Keys, Match, matched

VERSION = 3  # of models in the cache
STILL_THERE = 0.9  # share of its conversations that a table must have. A choice
ABOUT = {  # what is said about a model, checked when it is read
    "version": int,
    "spklink": str,
    "asked": str,
    "learned_on": {"conversations": int, "sides": int, "usable_sides": int},
    "recognizer": Each(ANYTHING),
    "back_end": str,
    "reasons": [str],
    "calibration": Each(ANYTHING),
    "weight": {"rule": str, "beta": (float, None)},
    "rate": (None, Each((float, bool))),
    "settled_at": float,
    "notes": {"compared": str, "calibrated": str},
    "why": str,
}


@dataclass(frozen=True)
class Model:
    """What was learned: numbers and words, and arrays by name."""

    name: str
    about: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    @property
    def keys(self) -> Keys:
        """(M,) of the conversations it was learned on."""
        return np.asarray(self.arrays["call"])

    @property
    def sides(self) -> Numbering:
        """Those of these conversations."""
        return numbered(self.arrays["tracks"].tolist())

    @property
    def reasons(self) -> list[str]:
        """Why scores are not normalised, a layer each; empty where they are."""
        return list(self.about["reasons"])

    @property
    def weight(self) -> Weight:
        return Weight(self.about["weight"]["rule"], self.about["weight"]["beta"])

    @property
    def rate(self) -> Rate | None:
        """Of list errors; None where lists were taken at their word."""
        said = self.about["rate"]
        return None if said is None else Rate.from_json(said)

    @property
    def view(self) -> View | None:
        """What the links taught; None where voices are compared once."""
        arrays = self.arrays
        if "basis" not in arrays:
            return None
        reduction = Reduction(np.array(arrays["reduction_mean"]), np.array(arrays["basis"]))
        if "root" in arrays:
            one, two = (
                Whitening(np.array(arrays["root"][f]), np.array(arrays["centre_of"][f]))
                for f in (0, 1)
            )
            return View(reduction, (one, two))
        names = ("plda_mean", "plda_turn", "plda_ratio")
        three, four = (
            Plda(TwoCovariance(*(np.array(arrays[name][f]) for name in names))) for f in (0, 1)
        )
        return View(reduction, (three, four))

    def told(self, conversations: int) -> dict[str, Any]:
        """What run.json says about it."""
        learned = dict(self.about["learned_on"])
        more = {"new": conversations, "made_by": f"spklink {self.about['spklink']}"}
        return {"name": self.name, "learned_on": learned, **more, "why": self.about["why"]}


def named(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Model:
    """A model, named by its content."""
    digests = {
        key: hashlib.sha256(np.ascontiguousarray(one).tobytes()).hexdigest()
        for key, one in arrays.items()
    }
    return Model(key_of({"about": about, "arrays": digests}), about, dict(arrays))


def taught_arrays(again: LinkScorer | None) -> dict[str, NDArray[Any]]:
    """What the links taught, as arrays."""
    if again is None:
        return {}
    reduction, learned = again.view.reduction, again.view.learned
    found: dict[str, NDArray[Any]] = {"reduction_mean": reduction.mean, "basis": reduction.basis}
    if isinstance(learned[0], Whitening) and isinstance(learned[1], Whitening):
        found["root"] = np.stack([learned[0].root, learned[1].root])
        found["centre_of"] = np.stack([learned[0].centre, learned[1].centre])
    elif isinstance(learned[0], Plda) and isinstance(learned[1], Plda):
        for name in ("mean", "turn", "ratio"):
            both = [getattr(one, name) for one in (learned[0].model, learned[1].model)]
            found[f"plda_{name}"] = np.stack(both)
    return found


def keep(store: Store, model: Model) -> None:
    """Write a model, unless it is there."""
    if store.about(model.name) is None:
        store.write(model.name, dict(model.about), model.arrays)


def find(store: Store, asked: str, keys: Keys, sides: Numbering) -> tuple[Model, Match] | None:
    """The model for these options that was learned on the most conversations, nearly all of which
    are in the table; and which these are."""
    fits = [
        (about["learned_on"]["conversations"], name)
        for name, about in store.listed()
        if not misfit(about, ABOUT) and about["version"] == VERSION and about["asked"] == asked
    ]
    for _, name in sorted(fits, reverse=True):
        model = _read(store, name)
        if model is None:
            continue
        match = matched(keys, sides, model.keys, model.sides)
        if match.gone <= (1.0 - STILL_THERE) * match.earlier:
            return model, match
    return None


def _read(store: Store, name: str) -> Model | None:
    """A model as it was written; None where it is damaged, or not what its name says."""
    kept: Kept | None = store.load(name)
    if kept is None:
        return None
    model = named(kept.about, kept.arrays)
    if model.name != name:
        store.reject(name)
        return None
    return model
